/**
 * Lets pages of other origins read the answers. Off unless asked for.
 *
 * @module
 */

import { type Check, checkFlag, isListOf, must, wholeFrom } from "../../tool/mod.ts";
import { checkOptions } from "./checks.ts";
import { type Header, withHeaders } from "./headers.ts";
import { problemResponse } from "./problem.ts";

/** Options for pages of the origins in `allowedOrigins`. */
export interface CorsOptions {
  /**
   * Whether a browser may send cookies and client certificates. Bearer tokens need it not.
   *
   * @default {false}
   */
  readonly credentials?: boolean;
  /** Request headers besides those that the handler knows. */
  readonly headers?: readonly string[];
  /**
   * How long a browser may remember the answer to its question, in seconds.
   *
   * @default {600}
   */
  readonly maxAgeS?: number;
}

/** Answers for pages of other origins. */
export interface Cors {
  /** The headers for whatever a request is answered, problems too. */
  headersFor(request: Request): readonly Header[];
  /** The answer, with those headers. */
  open(request: Request, response: Response): Response;
  /** Answers a browser that asks before it sends: what `OPTIONS` is answered. */
  preflight(request: Request): Response;
}

/** What the routes read, and what MCP clients send. */
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

/** MCP's headers for arguments: which there are, the tools say. */
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
  maxAgeS: wholeFrom(0),
} satisfies { readonly [Option in keyof CorsOptions]-?: Check };

/**
 * Makes the answers.
 *
 * @param origins Whose pages may read; the guard refuses the others.
 * @throws {TypeError} If there are no origins, or an option is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function createCors(
  options: CorsOptions,
  origins: readonly string[],
): Cors {
  const { credentials = false, headers = [], maxAgeS = 600 } = checkOptions(
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
    // Always: a cache must not give one origin's answer to another.
    const vary: Header = ["vary", "origin"];
    if (origin === null || !allowed.has(origin)) return [vary];
    return [
      vary,
      ["access-control-allow-origin", origin],
      ["access-control-expose-headers", RESPONSE_HEADERS],
      ...(credentials ? [["access-control-allow-credentials", "true"] as const] : []),
    ];
  };
  const open = (request: Request, response: Response): Response =>
    withHeaders(response, headersFor(request));
  return {
    headersFor,
    open,
    preflight(request) {
      if (request.headers.get("access-control-request-method") === null) {
        return open(
          request,
          problemResponse({
            status: 405,
            code: "method_not_allowed",
            detail: "OPTIONS is for browsers that ask before they send",
          }),
        );
      }
      const asked = request.headers.get("access-control-request-headers") ?? "";
      const headers = new Headers({
        "access-control-allow-headers": [requestHeaders, ...argumentHeaders(asked)].join(", "),
        // DELETE ends an MCP session. It is refused, and the page may read why.
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-max-age": String(maxAgeS),
      });
      return open(request, new Response(null, { status: 204, headers }));
    },
  };
}

function argumentHeaders(asked: string): readonly string[] {
  const names = asked.slice(0, MAX_ASKED).toLowerCase().split(/[\s,]+/);
  return names.filter((name) => ARGUMENT_HEADER.test(name));
}
