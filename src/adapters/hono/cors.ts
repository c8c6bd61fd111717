/**
 * Lets pages of other origins read the answers. Off unless asked for.
 *
 * @module
 */

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

type Header = readonly [name: string, value: string];

/** Answers for pages of other origins. */
export interface Cors {
  /** The headers for an answer to a page of that origin. */
  headersFor(request: Request): readonly Header[];
  /** Answers a browser that asks before it sends. */
  preflight(request: Request): Response;
}

const REQUEST_HEADERS = [
  "accept",
  "authorization",
  "content-type",
  "idempotency-key",
  "if-none-match",
  "traceparent",
  "tracestate",
  "x-call-id",
  "x-message-id",
  "x-session-id",
];

const RESPONSE_HEADERS = [
  "etag",
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "server-timing",
  "traceparent",
  "www-authenticate",
  "x-call-id",
].join(", ");

/**
 * Makes the answers.
 *
 * @param origins Whose pages may read; the guard refuses the others.
 * @throws {TypeError} If there are no origins, or an option is wrong.
 */
export function createCors(
  options: CorsOptions,
  origins: readonly string[],
): Cors {
  const { credentials = false, headers = [], maxAgeS = 600 } = options;
  if (origins.length === 0) {
    throw new TypeError(
      "Cannot create a tool handler: cors needs the origins in allowedOrigins",
    );
  }
  if (!headers.every((name) => /^[\w-]{1,64}$/.test(name))) {
    throw new TypeError(
      "Cannot create a tool handler: cors.headers must be names of headers",
    );
  }
  if (!(Number.isSafeInteger(maxAgeS) && maxAgeS >= 0)) {
    throw new TypeError(
      "Cannot create a tool handler: cors.maxAgeS must be a whole number",
    );
  }
  const allowed = new Set(origins);
  const requestHeaders = [...REQUEST_HEADERS, ...headers].join(", ");
  const shared = (request: Request): Header[] => {
    const origin = request.headers.get("origin");
    // Always: a cache must not give one origin's answer to another.
    const vary: Header = ["vary", "origin"];
    if (origin === null || !allowed.has(origin)) return [vary];
    return [
      vary,
      ["access-control-allow-origin", origin],
      ...(credentials ? [["access-control-allow-credentials", "true"] as const] : []),
    ];
  };
  return {
    headersFor: (request) => [
      ...shared(request),
      ["access-control-expose-headers", RESPONSE_HEADERS],
    ],
    preflight(request) {
      if (request.headers.get("access-control-request-method") === null) {
        return problemResponse({
          status: 405,
          code: "method_not_allowed",
          detail: "OPTIONS is for browsers that ask before they send",
        });
      }
      return new Response(null, {
        status: 204,
        headers: [
          ...shared(request),
          ["access-control-allow-methods", "GET, POST"],
          ["access-control-allow-headers", requestHeaders],
          ["access-control-max-age", String(maxAgeS)],
        ].map(([name, value]) => [name ?? "", value ?? ""]),
      });
    },
  };
}
