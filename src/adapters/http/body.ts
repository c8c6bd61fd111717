/**
 * Reads bodies: bounded, and JSON.
 *
 * @module
 */

import { systemClock, TIME_OVER, within } from "../../tool/mod.ts";
import { type Problem, ProblemError, RequestError } from "./responses.ts";

/** How large a body may be, and how long it may take to come. */
export interface BodyBounds {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/** A request whose body may be read by a way of its own, such as Hono's, which keeps it for others. */
export interface BodySource {
  readonly raw: Request;
  text?(): Promise<string>;
}

/**
 * The text of a request's body.
 *
 * @throws {ProblemError} 413, if it has more than `maxBytes` bytes; 408, if it does not come in time;
 * 400, if it ends early.
 */
export async function readBody(request: BodySource, bounds: BodyBounds): Promise<string> {
  const { maxBytes, timeoutMs } = bounds;
  // That the owner's code has read the body is the owner's error, and not the client's.
  const { bodyUsed } = request.raw;
  let text: string | undefined | typeof TIME_OVER;
  try {
    text = await within(systemClock, timeoutMs, readText(request, maxBytes));
  } catch (cause) {
    throw bodyUsed ? cause : new ProblemError(ENDED_EARLY, { cause });
  }
  if (typeof text === "string") return text;
  throw new ProblemError(
    text === TIME_OVER
      ? {
        status: 408,
        code: "request_timeout",
        detail: `The body must be here within ${timeoutMs / 1000} s`,
        retryable: true,
        headers: CLOSE,
      }
      : {
        status: 413,
        code: "payload_too_large",
        detail: `The body must have at most ${maxBytes} bytes`,
        headers: CLOSE,
      },
  );
}

/** What is left of the body is not the beginning of another request. */
const CLOSE = { connection: "close" };

const ENDED_EARLY: Problem = {
  status: 400,
  code: "bad_request",
  detail: "The body ended before it was complete",
};

/** The text; `undefined` if it has more than `maxBytes` bytes. */
async function readText(request: BodySource, maxBytes: number): Promise<string | undefined> {
  const { raw } = request;
  const { headers } = raw;
  const declared = headers.get("content-length");
  // The server holds a client to the length that it declared. `has` would make Deno read all headers.
  const isDeclared = declared !== null && headers.get("transfer-encoding") === null;
  if (isDeclared && Number(declared) <= maxBytes) return await (request.text?.() ?? raw.text());
  const text = isDeclared ? undefined : await boundedText(raw.body, maxBytes);
  if (text === undefined) await drain(raw.body);
  return text;
}

/** How much of a body that is too large is read, so that its client comes to read the answer. */
const MAX_DRAINED = 8 * 1_024 * 1_024;

async function drain(body: ReadableStream<Uint8Array> | null): Promise<void> {
  const reader = body?.getReader();
  for (let size = 0; reader !== undefined && size <= MAX_DRAINED;) {
    const { done, value } = await reader.read();
    if (done) return;
    size += value.byteLength;
  }
  reader?.releaseLock();
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
