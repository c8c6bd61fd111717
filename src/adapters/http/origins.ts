/**
 * Rejects requests for other hosts and from pages of other origins: a page in a user's browser must
 * not call a server on that user's machine. Also the part for CORS, which is off by default.
 */

import { fail } from "../../tool/mod.ts";
import { type GuardOptions, parseUrl } from "./options.ts";
import { badRequest, type Header, type Problem, problemResponse } from "./responses.ts";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

export function createGuard(options: GuardOptions): (request: Request) => Problem | undefined {
  const { allowedHosts = LOOPBACK, allowedOrigins = [] } = options;
  const hosts = allowedHosts === "any" ? undefined : new Set(allowedHosts.map(hostName));
  const others = allowedOrigins.map(originOf);

  /** Returns the origins whose pages may call a host, and `null` for requests without an origin. */
  function originsOrProblem(start: string): readonly (string | null)[] | Problem {
    // workerd joins two Host headers to one, which makes the URL invalid.
    if (!URL.canParse(start)) return badRequest("The request must name one host");
    const { hostname, origin } = new URL(start);
    if (hosts === undefined || hosts.has(hostname)) {
      // A proxy may have ended TLS.
      return [null, origin, origin.replace("http:", "https:"), ...others];
    }
    return {
      status: 421,
      code: "forbidden_host",
      detail: `This server does not answer to host ${JSON.stringify(hostname.slice(0, 255))}: ` +
        "allowedHosts does not list it",
    };
  }

  // Most requests of a server name the same host.
  let known: undefined | {
    readonly start: string;
    readonly verdict: ReturnType<typeof originsOrProblem>;
  };

  return (request) => {
    // Every runtime derives the host of the URL from the Host header.
    const { url } = request;
    if (known === undefined || !url.startsWith(known.start)) {
      const start = startOf(url);
      known = { start, verdict: originsOrProblem(start) };
    }
    const { verdict } = known;
    if ("code" in verdict) return verdict;
    const origin = request.headers.get("origin");
    return verdict.includes(origin) ? undefined : {
      status: 403,
      code: "forbidden_origin",
      detail: `This server does not answer to pages of ${JSON.stringify(origin?.slice(0, 255))}: ` +
        "allowedOrigins does not list it",
    };
  };
}

function startOf(url: string): string {
  const end = url.indexOf("/", url.indexOf("//") + 2);
  return end === -1 ? `${url}/` : url.slice(0, end + 1);
}

function hostName(host: string): string {
  const url = parseUrl(`http://${host}/`);
  if (url?.port === "" && url.pathname === "/" && url.username === "" && !host.includes("*")) {
    return url.hostname;
  }
  return fail(
    "create a tool handler",
    `"${host}" in allowedHosts must be a host name without a port and without "*"`,
  );
}

function originOf(origin: string): string {
  if (parseUrl(origin)?.origin === origin && !origin.includes("*")) return origin;
  return fail(
    "create a tool handler",
    `"${origin}" in allowedOrigins must be an origin without "*", such as "https://app.example.com"`,
  );
}

interface Cors {
  headers(request: Request): readonly Header[];
  preflight(request: Request): Response;
}

/** The headers that the routes read and that MCP clients send. */
const REQUEST_HEADERS = "accept, authorization, content-type, idempotency-key, if-none-match, " +
  "last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, traceparent, " +
  "tracestate, x-call-id, x-message-id, x-session-id";

/** MCP's headers for arguments: each tool has its own. */
const ARGUMENT_HEADER = /^mcp-param-[a-z0-9-]{1,64}$/;
const MAX_WANTED = 4_096;

const RESPONSE_HEADERS = "allow, etag, mcp-session-id, ratelimit, ratelimit-policy, retry-after, " +
  "traceparent, www-authenticate, x-call-id";

/**
 * Makes the part that lets pages of the handler's `allowedOrigins` read its responses. A browser first
 * sends a preflight request, with `OPTIONS`.
 *
 * @throws {TypeError} If there are no origins.
 */
export function allowCrossOrigin(): (
  server: { readonly allowedOrigins: readonly string[] },
) => Cors {
  return ({ allowedOrigins }) => {
    if (allowedOrigins.length === 0) {
      fail("serve other origins (cors)", "allowedOrigins is empty; list the origins in it");
    }
    const allowed = new Set(allowedOrigins);
    return {
      headers(request) {
        const origin = request.headers.get("origin");
        // A cache must not use the response to one origin for another.
        const vary: Header = ["vary", "origin"];
        return origin === null || !allowed.has(origin) ? [vary] : [
          vary,
          ["access-control-allow-origin", origin],
          ["access-control-expose-headers", RESPONSE_HEADERS],
        ];
      },
      preflight({ headers }) {
        if (headers.get("access-control-request-method") === null) {
          const detail = "OPTIONS is for preflight requests";
          return problemResponse({ status: 405, code: "method_not_allowed", detail });
        }
        const wanted = headers.get("access-control-request-headers") ?? "";
        const names = wanted.slice(0, MAX_WANTED).toLowerCase().split(/[\s,]+/)
          .filter((name) => ARGUMENT_HEADER.test(name));
        return new Response(null, {
          status: 204,
          headers: {
            "access-control-allow-headers": [REQUEST_HEADERS, ...names].join(", "),
            // DELETE ends a session in MCP. The server rejects it, but a page can read the reason.
            "access-control-allow-methods": "GET, POST, DELETE",
            "access-control-max-age": "600",
          },
        });
      },
    };
  };
}
