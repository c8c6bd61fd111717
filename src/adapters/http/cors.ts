/**
 * Lets pages of other origins read the responses (CORS). Off by default.
 *
 * @module
 */

import { type Check, checkFlag, isListOf, must } from "../../tool/mod.ts";
import { checkOptions } from "./checks.ts";
import type { HttpPart } from "./handler.ts";
import { type Header, problemResponse } from "./responses.ts";

/** Options for pages of the origins in `allowedOrigins`. */
export interface CorsOptions {
  /**
   * True if a browser may send cookies and client certificates. Bearer tokens do not need it.
   *
   * @default {false}
   */
  readonly credentials?: boolean;
  /**
   * Further request headers that pages may send, in addition to the headers of the handler's
   * routes.
   */
  readonly headers?: readonly string[];
}

/** The headers and responses for pages of other origins. */
export interface Cors {
  /** The headers for every response to a request, problems too. */
  headers(request: Request): readonly Header[];
  /** The response to a preflight request, which browsers send with `OPTIONS`. */
  preflight(request: Request): Response;
}

/** The headers that the routes read and that MCP clients send. */
const REQUEST_HEADERS = [
  "accept",
  "authorization",
  "content-type",
  "idempotency-key",
  "if-none-match",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
  "traceparent",
  "tracestate",
  "x-call-id",
  "x-message-id",
  "x-session-id",
];

/** MCP's headers for arguments: each tool has its own. */
const ARGUMENT_HEADER = /^mcp-param-[a-z0-9-]{1,64}$/;
const MAX_ASKED = 4_096;

const RESPONSE_HEADERS = [
  "allow",
  "etag",
  "mcp-session-id",
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "server-timing",
  "traceparent",
  "www-authenticate",
  "x-call-id",
].join(", ");

const CHECKS = {
  credentials: checkFlag,
  headers: must(
    "a list of names of headers",
    (value): value is readonly string[] =>
      isListOf(
        value,
        (name): name is string => typeof name === "string" && /^[\w-]{1,64}$/.test(name),
      ),
  ),
} satisfies { readonly [Option in keyof CorsOptions]-?: Check };

/**
 * Makes the headers and responses for the origins.
 *
 * @param origins The origins whose pages may read; the guard rejects the others.
 * @throws {TypeError} If there are no origins, or an option is unknown or wrong.
 */
export function createCors(options: CorsOptions, origins: readonly string[]): Cors {
  const { credentials = false, headers = [] } = checkOptions(
    "serve other origins (cors)",
    options,
    CHECKS,
  );
  if (origins.length === 0) {
    throw new TypeError(
      "Cannot serve other origins (cors): it needs the origins in allowedOrigins",
    );
  }
  const allowed = new Set(origins);
  const requestHeaders = [...REQUEST_HEADERS, ...headers].join(", ");
  const headersFor = (request: Request): readonly Header[] => {
    const origin = request.headers.get("origin");
    // On every response: a cache must not give one origin's response to another.
    const vary: Header = ["vary", "origin"];
    if (origin === null || !allowed.has(origin)) return [vary];
    return [
      vary,
      ["access-control-allow-origin", origin],
      ["access-control-expose-headers", RESPONSE_HEADERS],
      ...(credentials ? [["access-control-allow-credentials", "true"] as const] : []),
    ];
  };
  return {
    headers: headersFor,
    preflight(request) {
      if (request.headers.get("access-control-request-method") === null) {
        return problemResponse({
          status: 405,
          code: "method_not_allowed",
          detail: "OPTIONS is for preflight requests of browsers",
        });
      }
      const asked = request.headers.get("access-control-request-headers") ?? "";
      const headers = new Headers({
        "access-control-allow-headers": [requestHeaders, ...argumentHeaders(asked)].join(", "),
        // DELETE would end an MCP session. It is rejected, and a page may read why.
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-max-age": "600",
      });
      return new Response(null, { status: 204, headers });
    },
  };
}

/**
 * The part that lets pages of the handler's `allowedOrigins` read its responses.
 *
 * @throws {TypeError} If there are no origins, or an option is unknown or wrong.
 */
export function allowCrossOrigin(options: CorsOptions = {}): HttpPart {
  return ({ allowedOrigins }) => createCors(options, allowedOrigins);
}

function argumentHeaders(asked: string): readonly string[] {
  const names = asked.slice(0, MAX_ASKED).toLowerCase().split(/[\s,]+/);
  return names.filter((name) => ARGUMENT_HEADER.test(name));
}
