/**
 * Refuses requests for other hosts, and requests of web pages of other sites. This keeps a page in a
 * user's browser from calling a server on that user's machine, by a plain request or by DNS
 * rebinding.
 *
 * @module
 */

import { badRequest, type Problem } from "./responses.ts";

/** Which hosts and origins a request may name. */
export interface GuardOptions {
  /**
   * Host names that this server answers to, without a port; `"any"` for a server behind a proxy
   * that checks them.
   *
   * @default {["localhost", "127.0.0.1", "[::1]"]}
   */
  readonly allowedHosts?: readonly string[] | "any";
  /**
   * Origins of web pages that may call, such as `https://app.example.com`, besides pages of this
   * very server.
   *
   * @default {[]}
   */
  readonly allowedOrigins?: readonly string[];
}

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Makes the check of a request's `Host` and `Origin`.
 *
 * @throws {TypeError} If a host or an origin is not written as one.
 */
export function createGuard(options: GuardOptions): (request: Request) => Problem | undefined {
  const { allowedHosts = LOOPBACK, allowedOrigins = [] } = options;
  const hosts = allowedHosts === "any" ? undefined : new Set(allowedHosts.map(hostName));
  const origins = new Set(allowedOrigins.map(originOf));

  /** Returns the origin of a URL whose host is allowed, or the problem. */
  function originOrProblem(start: string): string | Problem {
    // workerd joins two Host headers, and hands the result on.
    if (!URL.canParse(start)) return badRequest("The request must name one host");
    const { hostname, origin } = new URL(start);
    if (hosts === undefined || hosts.has(hostname)) return origin;
    return {
      status: 421,
      code: "forbidden_host",
      detail: `This server does not answer to host ${JSON.stringify(hostname.slice(0, 255))}: ` +
        "allowedHosts does not list it",
    };
  }

  // Most requests of a server name the same host: its URL is parsed once.
  let known: { readonly start: string; readonly verdict: string | Problem } | undefined;

  return (request) => {
    // The URL's host is the Host header's: every runtime builds the one from the other.
    const { url } = request;
    if (known === undefined || !url.startsWith(known.start)) {
      const start = startOf(url);
      known = { start, verdict: originOrProblem(start) };
    }
    const { verdict } = known;
    if (typeof verdict !== "string") return verdict;
    const origin = request.headers.get("origin");
    if (origin !== null && origin !== verdict && !origins.has(origin)) {
      return {
        status: 403,
        code: "forbidden_origin",
        detail:
          `Pages of origin ${JSON.stringify(origin.slice(0, 255))} may not call this server: ` +
          "allowedOrigins does not list it",
      };
    }
    return undefined;
  };
}

/** A request's URL up to the "/" after the host: with it, no longer host begins with a known one. */
function startOf(url: string): string {
  const end = url.indexOf("/", url.indexOf("//") + 2);
  return end === -1 ? `${url}/` : url.slice(0, end + 1);
}

function hostName(host: string): string {
  if (URL.canParse(`http://${host}/`)) {
    const url = new URL(`http://${host}/`);
    if (url.port === "" && url.pathname === "/" && url.username === "" && !host.includes("*")) {
      return url.hostname;
    }
  }
  throw new TypeError(
    `Cannot create a tool handler: "${host}" in allowedHosts must be a host name without a port ` +
      'and without "*"',
  );
}

function originOf(origin: string): string {
  // "*" would be compared literally, and would match no origin.
  if (URL.canParse(origin) && new URL(origin).origin === origin && !origin.includes("*")) {
    return origin;
  }
  throw new TypeError(
    `Cannot create a tool handler: "${origin}" in allowedOrigins must be an origin without "*", ` +
      'such as "https://app.example.com"',
  );
}
