/** Reads JSON bodies of bounded size. */

import { systemClock, TIME_OVER, within } from "../../tool/mod.ts";
import { badRequest, ProblemError, RequestError } from "./responses.ts";
import { IS_BUN, IS_DENO, IS_WORKERS, readText } from "./runtime.ts";

/** A request. Hono reads its body even after middleware has read it. */
export interface BodySource {
  readonly raw: Request;
  text?(): Promise<string>;
}

interface PendingBody {
  readonly body: Promise<unknown>;
  readonly deadline: number;
  readonly reject: (error: ProblemError) => void;
  /** The time to call `onSlow`; `Infinity` without `onSlow`, or once it was called. */
  slowAt: number;
  readonly onSlow: OnSlow | undefined;
}

/** A browser's timer is a number, without these methods. */
interface Timer {
  ref?(): void;
  unref?(): void;
}

type OnSlow = (body: Promise<unknown>) => void;

const SLOW_MS = 1_000;

const READS_JSON = IS_DENO || IS_BUN;

export class BodyReader {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly #pending = new Set<PendingBody>();
  #timer: Timer | undefined;

  constructor(maxBytes: number, timeoutMs: number) {
    this.maxBytes = maxBytes;
    this.timeoutMs = timeoutMs;
  }

  /**
   * Returns the body as JSON, and `empty` for an empty one, which is otherwise rejected.
   *
   * @param onSlow Is called if the body has not arrived within a second.
   */
  json(source: BodySource, empty?: unknown, onSlow?: OnSlow): Promise<unknown> {
    const { raw, raw: { headers } } = source;
    const declared = headers.get("content-length");
    // The server enforces a declared length. `get`, because `has` makes Deno read all headers.
    const length = declared === null || headers.get("transfer-encoding") !== null
      ? undefined
      : Number(declared);
    const isBounded = length !== undefined && length <= this.maxBytes;
    // json() is the fastest way: Deno's is synchronous for a body that arrived with its headers,
    // unless `bodyUsed` was read; Bun's parses the bytes without a string.
    if (READS_JSON && source.text === undefined && isBounded && length > 0) {
      return this.#inTime(raw.json(), (read) => read, undefined, onSlow);
    }
    // A body that was read before is an error of the server, not of the client.
    const { bodyUsed } = raw;
    return this.#inTime(
      isBounded ? source.text?.() ?? raw.text() : readUndeclared(raw.body, length, this.maxBytes),
      (text): unknown => text === "" && empty !== undefined ? empty : JSON.parse(text),
      bodyUsed,
      onSlow,
    );
  }

  /**
   * Waits for a body until its deadline. One timer serves all bodies: on Deno, a timer per body takes
   * 1.5 µs, as long as reading the body. Not on Workers, where a timer ends with its request.
   */
  #inTime<Body, Value>(
    body: Promise<Body>,
    read: (body: Body) => Value,
    wasUsed?: boolean,
    onSlow?: OnSlow,
  ): Promise<Value> {
    if (IS_WORKERS) {
      return within(systemClock, this.timeoutMs, body)
        .then((value) => value === TIME_OVER ? Promise.reject(this.#tooLate()) : read(value))
        .catch((error: unknown) => Promise.reject(failureOf(error, wasUsed)));
    }
    return new Promise((resolve, reject) => {
      const now = systemClock.now();
      const slowAt = onSlow === undefined ? Infinity : now + SLOW_MS;
      const pending = { body, deadline: now + this.timeoutMs, reject, slowAt, onSlow };
      this.#pending.add(pending);
      if (this.#timer === undefined) this.#watch(Math.min(pending.deadline, slowAt) - now);
      else if (this.#pending.size === 1) this.#timer.ref?.();
      body.then((value) => {
        this.#remove(pending);
        try {
          resolve(read(value));
        } catch (error) {
          reject(failureOf(error, wasUsed));
        }
      }, (error: unknown) => {
        this.#remove(pending);
        reject(failureOf(error, wasUsed));
      });
    });
  }

  #watch(ms: number): void {
    this.#timer = setTimeout(() => this.#rejectLate(), ms) as unknown as Timer;
  }

  /** Without a body to wait for, the timer must not keep a process running. */
  #remove(pending: PendingBody): void {
    this.#pending.delete(pending);
    if (this.#pending.size === 0) this.#timer?.unref?.();
  }

  #rejectLate(): void {
    this.#timer = undefined;
    const now = systemClock.now();
    let earliest = Infinity;
    for (const pending of this.#pending) {
      if (pending.deadline <= now) {
        this.#pending.delete(pending);
        pending.reject(this.#tooLate());
        continue;
      }
      if (pending.slowAt <= now) {
        pending.slowAt = Infinity;
        pending.onSlow?.(pending.body);
      }
      earliest = Math.min(earliest, pending.deadline, pending.slowAt);
      // Bodies are in the order of their arrival, so the following ones have later times.
      if (pending.onSlow === undefined || pending.slowAt < Infinity) break;
    }
    if (earliest < Infinity) this.#watch(earliest - now);
  }

  #tooLate(): ProblemError {
    return new ProblemError({
      status: 408,
      code: "request_timeout",
      detail: `The body must arrive within ${this.timeoutMs / 1000} s`,
      retryable: true,
      headers: CLOSE,
    });
  }
}

/** @param wasUsed By default, the message of the error shows whether the body was read before. */
function failureOf(cause: unknown, wasUsed: boolean | undefined): unknown {
  if (cause instanceof ProblemError) return cause;
  // The message of the engine would repeat a part of the body.
  if (cause instanceof SyntaxError) return new RequestError("Cannot read the body: it is not JSON");
  const isTwice = wasUsed ?? (cause instanceof TypeError && /already/.test(cause.message));
  return isTwice
    ? cause
    : new ProblemError(badRequest("The body ended before it was complete"), { cause });
}

/** Closes the connection: otherwise the rest of the body could be parsed as another request. */
const CLOSE = { connection: "close" };

async function readUndeclared(
  body: Request["body"],
  length: number | undefined,
  maxBytes: number,
): Promise<string> {
  const reader = body?.getReader();
  if (length === undefined) {
    const { text, isWhole } = await readText(reader, maxBytes);
    if (isWhole) return text;
  }
  // A client that is still sending would not read the response.
  for (let size = 0; reader !== undefined && size <= MAX_DRAINED;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
  }
  reader?.releaseLock();
  throw new ProblemError({
    status: 413,
    code: "payload_too_large",
    detail: `The body must have at most ${maxBytes} bytes`,
    headers: CLOSE,
  });
}

const MAX_DRAINED = 8 * 1_024 * 1_024;

/**
 * Rejects a body that is not declared to be JSON: a web page may send other types to every server
 * without a preflight request.
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
