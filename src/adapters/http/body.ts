/**
 * Reads bodies: bounded, and JSON.
 *
 * @module
 */

import { ProblemError, RequestError } from "./responses.ts";

/**
 * The text of a request's body.
 *
 * @param request May read the text by a way of its own, such as Hono's, which keeps it for others.
 * @throws {ProblemError} 413, if it has more than `maxBytes` bytes. It is not read whole then.
 */
export async function readBody(
  request: { readonly raw: Request; text?(): Promise<string> },
  maxBytes: number,
): Promise<string> {
  const { raw } = request;
  const { headers } = raw;
  const declared = headers.get("content-length");
  // The server holds a client to the length that it declared. `has` would make Deno read all headers.
  const text = declared === null || headers.get("transfer-encoding") !== null
    ? await boundedText(raw.body, maxBytes)
    : Number(declared) <= maxBytes
    ? await (request.text?.() ?? raw.text())
    : undefined;
  if (text !== undefined) return text;
  throw new ProblemError({
    status: 413,
    code: "payload_too_large",
    detail: `The body must have at most ${maxBytes} bytes`,
  });
}

/**
 * Refuses a body that is not declared to be JSON: a web page may send other types to any server
 * without asking.
 *
 * @throws {ProblemError} 415.
 */
export function requireJson(headers: Headers): void {
  const type = headers.get("content-type") ?? "";
  if (type === "application/json" || /^application\/json\s*(;|$)/i.test(type)) return;
  throw new ProblemError({
    status: 415,
    code: "unsupported_media_type",
    detail: 'The body must be JSON, with the header "content-type: application/json"',
  });
}

/**
 * Parses a body.
 *
 * @throws {RequestError} If it is not JSON. The engine's message would echo a part of the body.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError("Cannot read the body: it is not JSON");
  }
}

/**
 * Reads a stream of text.
 *
 * @returns `undefined` if it has more than `maxBytes` bytes. The rest is not read then.
 */
export async function boundedText(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<string | undefined> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  let text = "";
  let size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (chunk === undefined || chunk.done) return text + decoder.decode();
    size += chunk.value.byteLength;
    if (size > maxBytes) {
      reader?.releaseLock();
      return undefined;
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
}
