/** Reads bodies: bounded, and JSON. */

import { systemClock, TIME_OVER, within } from "../../tool/mod.ts";
import { type Problem, ProblemError, RequestError } from "./responses.ts";
import { IS_BUN, IS_DENO, IS_WORKERS, readText } from "./runtime.ts";

/** The limits of a body: its size, and how long it may take to arrive. */
export interface BodyBounds {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/** A request whose body may be read in another way, such as by Hono, which caches it. */
export interface BodySource {
  readonly raw: Request;
  text?(): Promise<string>;
}

interface PendingBody {
  readonly body: Promise<unknown>;
  readonly deadline: number;
  readonly reject: (error: ProblemError) => void;
  /** When `onSlow` is due; `Infinity` if it is not. */
  slowAt: number;
  readonly onSlow: OnSlow | undefined;
}

/** The timer of a runtime. In browsers it is a number. */
interface Timer {
  ref?(): void;
  unref?(): void;
}

type OnSlow = (body: Promise<unknown>) => void;

const SLOW_MS = 1_000;

const READS_JSON = IS_DENO || IS_BUN;

export class BodyReader implements BodyBounds {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** All have the same timeout, so the first one has the earliest deadline. */
  readonly #pending = new Set<PendingBody>();
  /** Runs while there may be bodies to wait for. */
  #timer: Timer | undefined;

  constructor({ maxBytes, timeoutMs }: BodyBounds) {
    this.maxBytes = maxBytes;
    this.timeoutMs = timeoutMs;
  }

  /**
   * Returns the body as JSON.
   *
   * @param empty The value of an empty body. By default, an empty body is rejected.
   * @param onSlow Is called if the body has not arrived within a second.
   * @throws {ProblemError} 413 if it has more than `maxBytes` bytes, 408 if it is late, 400 if it ends
   * early.
   * @throws {RequestError} If it is not JSON.
   */
  json(source: BodySource, empty?: unknown, onSlow?: OnSlow): Promise<unknown> {
    const { raw } = source;
    const length = declaredLength(raw.headers);
    const isBounded = length !== undefined && length <= this.maxBytes;
    // Deno returns a body that arrived with its headers synchronously, but only from json(). Reading
    // bodyUsed would make a stream of it. Bun parses the bytes without making a string of them.
    if (READS_JSON && source.text === undefined && isBounded && length > 0) {
      return this.#inTime(raw.json(), (read) => read, undefined, onSlow);
    }
    // Reading a body twice is an error of the server's code, and not of the client.
    const { bodyUsed } = raw;
    return this.#inTime(
      isBounded ? source.text?.() ?? raw.text() : readUndeclared(raw.body, length, this.maxBytes),
      (text): unknown => text === "" && empty !== undefined ? empty : JSON.parse(text),
      bodyUsed,
      onSlow,
    );
  }

  /**
   * Waits for a body until its deadline. One timer serves all bodies: one for each would take Deno
   * 1.5 µs, as long as reading the body. Workers end a timer with the request that set it.
   */
  #inTime<Body, Value>(
    body: Promise<Body>,
    read: (body: Body) => Value,
    wasUsed?: boolean,
    onSlow?: OnSlow,
  ): Promise<Value> {
    if (IS_WORKERS) {
      return within(systemClock, this.timeoutMs, body).then((value) => {
        if (value === TIME_OVER) throw tooLate(this.timeoutMs);
        return read(value);
      }).catch((error: unknown) => {
        throw failureOf(error, wasUsed);
      });
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
        pending.reject(tooLate(this.timeoutMs));
        continue;
      }
      if (pending.slowAt <= now) {
        pending.slowAt = Infinity;
        pending.onSlow?.(pending.body);
      }
      earliest = Math.min(earliest, pending.deadline, pending.slowAt);
      // The next ones began later, so they are due later, unless this one is known to be slow.
      if (pending.onSlow === undefined || pending.slowAt < Infinity) break;
    }
    if (earliest < Infinity) this.#watch(earliest - now);
  }
}

/** The length that a client declared, and that the server holds it to. */
function declaredLength(headers: Headers): number | undefined {
  const declared = headers.get("content-length");
  // `has` would make Deno read all headers.
  return declared !== null && headers.get("transfer-encoding") === null
    ? Number(declared)
    : undefined;
}

/** By default, the error alone shows whether the body was read before. */
function failureOf(cause: unknown, wasUsed: boolean | undefined): unknown {
  if (cause instanceof ProblemError) return cause;
  if (cause instanceof SyntaxError) return notJson();
  const isTwice = wasUsed ?? (cause instanceof TypeError && /already/.test(cause.message));
  return isTwice ? cause : new ProblemError(ENDED_EARLY, { cause });
}

function tooLate(timeoutMs: number): ProblemError {
  return new ProblemError({
    status: 408,
    code: "request_timeout",
    detail: `The body must be here within ${timeoutMs / 1000} s`,
    retryable: true,
    headers: CLOSE,
  });
}

/** The rest of the body must not be read as the beginning of another request. */
const CLOSE = { connection: "close" };

const ENDED_EARLY: Problem = {
  status: 400,
  code: "bad_request",
  detail: "The body ended before it was complete",
};

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

/** The message of the engine would repeat a part of the body. */
function notJson(): RequestError {
  return new RequestError("Cannot read the body: it is not JSON");
}
