/**
 * `network-fetch`: reads one URL of the public internet.
 *
 * Unless the workspace allows private networks, every address outside the public internet is
 * rejected: in the URL, behind a name and after each redirect.
 */

import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { checkedGet, networkRefusal } from "../checked_request.ts";
import { answer, Refusal } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

const Parameters = Type.Object({
  url: Type.String({ description: "http or https.", minLength: 8, maxLength: 8_192 }),
  maxBytes: Type.Optional(
    Type.Integer({
      description: "The maximum number of bytes of the body.",
      minimum: 1,
      maximum: 500_000,
      default: 150_000,
    }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  url: Type.String({ description: "The URL of the response, after redirects." }),
  status: Type.Integer(),
  headers: Type.Record(Type.String(), Type.String()),
  body: Type.String(),
  encoding: Type.Enum(["utf8", "base64"], { description: "The encoding of body." }),
  truncated: Type.Boolean({ description: "True if the body was longer." }),
  redirects: Type.Array(Type.String(), { description: "The URLs that redirected." }),
});

type Params = Static<typeof Parameters>;

/** The tool `network-fetch`. */
export const networkFetch: Tool = defineTool({
  name: "network-fetch",
  title: "Fetch a URL",
  description: "Sends a GET request and returns the response: status, headers and body (text, or " +
    `base64 if it is not UTF-8). Follows up to ${MAX_REDIRECTS} redirects. Addresses outside the ` +
    "public internet are rejected.",
  parameters: Parameters,
  returns: Returns,
  category: "network",
  // A URL can carry data out of the workspace.
  risk: "high",
  tags: ["network"],
  timeoutMs: 30_000,
  examples: [{ input: { url: "https://example.com/", maxBytes: 10_000 } }],
  execute: (params, context) => answer(() => fetchUrl(params, context)),
});

async function fetchUrl(params: Params, context: ToolContext): Promise<Static<typeof Returns>> {
  const { signal, services } = context;
  const redirects: string[] = [];
  for (let url = parseUrl(params.url);;) {
    const response = await checkedGet(url, workspaceOf(services).network, signal);
    const { location } = response.headers;
    if (!REDIRECTS.has(response.statusCode) || location === undefined) {
      const { bytes, truncated } = await readBody(
        response,
        url,
        params.maxBytes ?? 150_000,
        signal,
      );
      const headers = Object.entries(response.headers)
        .map(([name, value = ""]) => [name, Array.isArray(value) ? value.join(", ") : value]);
      return {
        url: url.href,
        status: response.statusCode ?? 0,
        headers: Object.fromEntries(headers),
        ...bodyText(bytes, truncated),
        truncated,
        redirects,
      };
    }
    response.destroy();
    if (redirects.push(url.href) > MAX_REDIRECTS) {
      throw new Refusal(
        "unavailable",
        `Cannot fetch the URL: more than ${MAX_REDIRECTS} redirects`,
        {
          pointer: "/url",
        },
      );
    }
    url = parseUrl(location, url);
  }
}

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base);
  const invalid = (why: string) =>
    new Refusal("invalid_arguments", `Cannot fetch "${text.slice(0, 200)}": ${why}`, {
      pointer: "/url",
    });
  if (url === null) throw invalid("it is not an absolute URL");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw invalid("it must begin with http: or https:");
  }
  if (url.username !== "" || url.password !== "") {
    throw invalid("it contains a name or a password, which are not sent");
  }
  url.hash = "";
  return url;
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

/** Returns the body as text if it is UTF-8, without a character that the limit cut in two. */
function bodyText(
  bytes: Buffer,
  truncated: boolean,
): { readonly body: string; readonly encoding: "utf8" | "base64" } {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    const body = decoder.decode(bytes, { stream: truncated });
    if (!body.includes("\0")) return { body, encoding: "utf8" };
  } catch {
    // Not UTF-8.
  }
  return { body: bytes.toString("base64"), encoding: "base64" };
}
