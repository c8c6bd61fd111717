/**
 * `network-fetch`: one HTTP request to the public internet.
 *
 * Refused, unless the tool is configured with `allowPrivate`: every address that is not of the
 * public internet, in the URL, behind a name, and after each redirect.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { networkRefusal, type Resolver, sendChecked } from "../checked_request.ts";
import { answer, Refusal } from "../refusal.ts";

const MAX_REDIRECTS = 5;

/** Headers that the connection needs for itself. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...["host", "connection", "content-length", "transfer-encoding", "upgrade", "expect", "te"],
  ...["trailer", "keep-alive", "proxy-authorization", "proxy-connection", "accept-encoding"],
]);
/** The only headers that follow a redirect to another origin. Any other may hold a secret. */
const FOLLOWING_HEADERS: ReadonlySet<string> = new Set(["accept", "accept-language", "user-agent"]);

const Parameters = Type.Object({
  url: Type.String({ description: "http or https.", minLength: 8, maxLength: 8_192 }),
  method: Type.Optional(
    Type.Enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], { default: "GET" }),
  ),
  headers: Type.Optional(
    Type.Record(
      Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$" }),
      Type.String({ maxLength: 8_192, pattern: "^[\\t\\x20-\\x7e]*$" }),
      { description: "Request headers.", maxProperties: 50, additionalProperties: false },
    ),
  ),
  body: Type.Optional(
    Type.String({ description: "The request's body, as text.", maxLength: 500_000 }),
  ),
  maxBytes: Type.Optional(
    Type.Integer({
      description: "How many bytes of the response's body to answer.",
      minimum: 1,
      maximum: 500_000,
      default: 150_000,
    }),
  ),
  timeoutMs: Type.Optional(
    Type.Integer({
      description: "How long the request may take in all, in milliseconds.",
      minimum: 1,
      maximum: 60_000,
      default: 30_000,
    }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  url: Type.String({ description: "Where the response came from, after redirects." }),
  status: Type.Integer(),
  headers: Type.Record(Type.String(), Type.String()),
  body: Type.String(),
  encoding: Type.Enum(["utf8", "base64"], { description: "How body is written." }),
  bytes: Type.Integer({ description: "How many bytes of the body were answered." }),
  truncated: Type.Boolean({ description: "The body was longer." }),
  redirects: Type.Array(Type.String(), { description: "The URLs that led on." }),
});

const Config = Type.Object({
  /** Addresses that are not public are allowed too: all of them, or those in the list. */
  allowPrivate: Type.Union([Type.Boolean(), Type.Array(Type.String())], { default: false }),
}, { additionalProperties: false });

type Params = Static<typeof Parameters>;
type Context = ToolContext<Static<typeof Config> | undefined>;

/** The tool `network-fetch`. */
export const networkFetch: Tool = defineTool({
  name: "network-fetch",
  title: "Fetch a URL",
  description: "Sends one HTTP request and answers the response: status, headers and body (text, " +
    "or base64 if it is not). Follows up to 5 redirects; to another origin only GET and HEAD, with " +
    "no other headers than accept, accept-language and user-agent. Addresses that are not of the " +
    "public internet are refused.",
  parameters: Parameters,
  returns: Returns,
  config: Config,
  category: "network",
  // A request can carry data out of the workspace, and change things elsewhere.
  risk: "high",
  tags: ["network"],
  timeoutMs: 65_000,
  examples: [{ input: { url: "https://example.com/", maxBytes: 10_000 } }],
  execute: (params, context) => answer(() => fetchUrl(params, context)),
});

async function fetchUrl(params: Params, context: Context): Promise<Static<typeof Returns>> {
  const { timeoutMs = 30_000, maxBytes = 150_000 } = params;
  const timeout = new AbortController();
  const timer = setTimeout(
    () =>
      timeout.abort(
        new Refusal("unavailable", `Cannot fetch the URL: it took longer than ${timeoutMs} ms`, {
          retryable: true,
        }),
      ),
    timeoutMs,
  );
  const signal = AbortSignal.any([context.signal, timeout.signal]);
  try {
    const { response, url, redirects } = await follow(params, context, signal);
    const { bytes, truncated } = await readBody(response, url, maxBytes, signal);
    const { body, encoding } = bodyText(bytes, truncated);
    return {
      url: url.href,
      status: response.statusCode ?? 0,
      headers: headersOf(response),
      body,
      encoding,
      bytes: bytes.length,
      truncated,
      redirects,
    };
  } finally {
    clearTimeout(timer);
  }
}

async function follow(params: Params, context: Context, signal: AbortSignal): Promise<{
  readonly response: IncomingMessage;
  readonly url: URL;
  readonly redirects: string[];
}> {
  let url = parseUrl(params.url);
  let method = params.method ?? "GET";
  let body = params.body === undefined ? undefined : Buffer.from(params.body, "utf8");
  if (body !== undefined && (method === "GET" || method === "HEAD")) {
    throw new Refusal("invalid_arguments", `Cannot send a body with ${method}`, {
      pointer: "/body",
    });
  }
  const headers = requestHeaders(params.headers ?? {});
  const redirects: string[] = [];
  for (;;) {
    const response = await sendChecked({
      url,
      method,
      headers,
      body,
      signal,
      allowPrivate: context.config?.allowPrivate ?? false,
      resolve: resolverOf(context),
    });
    const { location } = response.headers;
    const status = response.statusCode ?? 0;
    if (![301, 302, 303, 307, 308].includes(status) || location === undefined) {
      return { response, url, redirects };
    }
    response.destroy();
    if (redirects.length === MAX_REDIRECTS) {
      throw new Refusal(
        "unavailable",
        `Cannot fetch from "${parseUrl(params.url).host}": more than ${MAX_REDIRECTS} redirects`,
        { pointer: "/url" },
      );
    }
    redirects.push(url.href);
    const next = parseUrl(location, url);
    if (status === 303 || (status < 303 && method === "POST")) {
      if (method !== "HEAD") method = "GET";
      body = undefined;
      headers.delete("content-type");
    }
    if (next.origin !== url.origin) {
      if (method !== "GET" && method !== "HEAD") {
        throw new Refusal(
          "denied",
          `Cannot fetch from "${url.host}": it redirects a ${method} to ${
            JSON.stringify(next.origin)
          }, another origin; send it there if that is right`,
          { pointer: "/url" },
        );
      }
      for (const name of headers.keys()) {
        if (!FOLLOWING_HEADERS.has(name)) headers.delete(name);
      }
    }
    url = next;
  }
}

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base);
  const wrong = (why: string) =>
    new Refusal("invalid_arguments", `Cannot fetch "${text.slice(0, 200)}": ${why}`, {
      pointer: "/url",
    });
  if (url === null) throw wrong("it is not an absolute URL");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw wrong("it must begin with http: or https:");
  }
  if (url.username !== "" || url.password !== "") {
    throw wrong("it holds a name or password; use the header authorization");
  }
  url.hash = "";
  return url;
}

function requestHeaders(given: Readonly<Record<string, string>>): Map<string, string> {
  const headers = new Map([["user-agent", "plue network-fetch"], ["accept", "*/*"]]);
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase();
    if (RESERVED_HEADERS.has(lower)) {
      throw new Refusal("invalid_arguments", `Cannot set the header "${lower}": it is not free`, {
        pointer: "/headers",
      });
    }
    headers.set(lower, value);
  }
  return headers;
}

function headersOf(response: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(response.headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]]
    ),
  );
}

async function readBody(
  response: IncomingMessage,
  url: URL,
  maxBytes: number,
  signal: AbortSignal,
): Promise<{ readonly bytes: Buffer; readonly truncated: boolean }> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of response) {
      parts.push(part);
      length += part.length;
      if (length > maxBytes) break;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw networkRefusal(url, error);
  } finally {
    response.destroy();
  }
  signal.throwIfAborted();
  return { bytes: Buffer.concat(parts).subarray(0, maxBytes), truncated: length > maxBytes };
}

/** The body as text if it is UTF-8, without a character that the limit cut in two. */
function bodyText(
  bytes: Buffer,
  truncated: boolean,
): { readonly body: string; readonly encoding: "utf8" | "base64" } {
  if (!bytes.includes(0)) {
    try {
      const decoder = new TextDecoder("utf-8", { fatal: true });
      return { body: decoder.decode(bytes, { stream: truncated }), encoding: "utf8" };
    } catch {
      // Not UTF-8.
    }
  }
  return { body: bytes.toString("base64"), encoding: "base64" };
}

/** A registry may be given its own name resolution, as the service `resolve`. */
function resolverOf({ services }: Context): Resolver | undefined {
  const { resolve } = services;
  return typeof resolve === "function" ? resolve as Resolver : undefined;
}
