/** Bounds for the messages of imported servers. */

import type { FetchLike, JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { type Clock, isObject, systemClock } from "../../tool/mod.ts";
import { fetchOnce, IS_DENO } from "../http/runtime.ts";

export const MAX_MESSAGE_BYTES: number = 16 * 1024 * 1024;

/** The shortest and the longest delay of repeated work, in milliseconds. */
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/**
 * The delay before work that a server causes, such as reading its list again. There is no delay after
 * a quiet time. If the server causes the work again before a delay is over, the delay doubles.
 */
export class Pace {
  #lastAt = -Infinity;
  #waitMs = FIRST_WAIT_MS;
  #restUntil = -Infinity;

  /** Returns the delay before the work, in milliseconds. The work then counts as done. */
  next(now: number = systemClock.now()): number {
    const rest = this.#lastAt + this.#waitMs - now;
    if (rest > 0) this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
    else if (-rest > this.#waitMs) this.#waitMs = FIRST_WAIT_MS;
    const wait = Math.max(rest, this.#restUntil - now, 0);
    this.#lastAt = now + wait;
    return wait;
  }

  /** Delays the next work, so that work takes at most a tenth of the time of the process. */
  took(ms: number, now: number = systemClock.now()): void {
    this.#restUntil = now + Math.min(10 * ms, LONGEST_WAIT_MS);
  }
}

/**
 * Counts a server's messages without a request (notifications, requests, other responses), and the
 * bytes of its streams. Beyond a limit, reading pauses until the second is over.
 */
export class UnsolicitedMessages {
  readonly #clock: Clock;
  #count = 0;
  #bytes = 0;
  #since = -Infinity;
  #pausedUntil = -Infinity;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  get isPaused(): boolean {
    return this.#clock.now() < this.#pausedUntil;
  }

  /** Waits for the end of the pause, with a timer of its own: on Workers, a timer ends with its request. */
  waitForPause(): Promise<void> {
    const ms = Math.max(this.#pausedUntil - this.#clock.now(), 0);
    return new Promise((resolve) => void this.#clock.setTimeout(resolve, ms));
  }

  add(): void {
    this.#beginSecond();
    if (++this.#count >= 1_000) this.#pausedUntil = this.#since + 1_000;
  }

  read(bytes: number): void {
    this.#beginSecond();
    this.#bytes += bytes;
    if (this.#bytes > MAX_MESSAGE_BYTES) this.#pausedUntil = this.#since + 1_000;
  }

  #beginSecond(): void {
    const now = this.#clock.now();
    if (now - this.#since < 1_000) return;
    this.#since = now;
    this.#count = this.#bytes = 0;
  }
}

function tooMuch(count: number, what = "bytes in one message"): string {
  return `the server sent more than ${count} ${what}, which is the limit`;
}

/** The sizes that a list or an object, a line, and an event count in addition to their characters. */
const [LIST_BYTES, LINE_BYTES, EVENT_BYTES] = [32, 2_048, 12_288] as const;
const [LF, CR, QUOTE, COMMA, COLON, LIST, BACKSLASH, OBJECT] = [10, 13, 34, 44, 58, 91, 92, 123];

/**
 * Returns a function that adds a part of a message, and returns its cost for the reader and the limit
 * that the message exceeds. In JSON, an empty list takes as much time and memory as a text of hundreds
 * of bytes.
 *
 * @param isStream True for a stream of events, in which an empty line ends a message.
 */
function messageMeter(maxBytes: number, isStream: boolean = false) {
  // A list of tools has one value in ten bytes.
  const maxValues = Math.max(500_000, Math.floor(maxBytes / 32));
  let state = { bytes: 0, values: 0, last: LF, isText: false };
  return (part: Uint8Array): { readonly cost: number; readonly excess: string | undefined } => {
    let { bytes, values, last, isText } = state;
    let [cost, excess] = [part.length, undefined as string | undefined];
    for (let at = 0; at < part.length && excess === undefined; at++) {
      const byte = part[at] as number;
      bytes++;
      if (byte === LF || byte === CR) {
        // A text of JSON has no line breaks. Other lines of an event may have one quotation mark.
        isText = false;
        if (isStream) cost += LINE_BYTES;
        const isOver = !(byte === LF && last === CR) && (last === LF || last === CR);
        if (isOver && isStream) {
          bytes = values = 0;
          cost += EVENT_BYTES;
        }
      } else if (byte === QUOTE) isText = !isText || last === BACKSLASH;
      else if (!isText && (byte === LIST || byte === OBJECT)) {
        values++;
        cost += LIST_BYTES;
      } else if (!isText && (byte === COMMA || byte === COLON)) values++;
      if (bytes > maxBytes) excess = tooMuch(maxBytes);
      else if (values > maxValues) excess = tooMuch(maxValues, "JSON values in one message");
      last = byte === BACKSLASH && last === BACKSLASH ? 0 : byte;
    }
    state = { bytes, values, last, isText };
    return { cost, excess };
  };
}

/** The maximum size of the stream with one response, in messages of the maximum size. */
const MAX_STREAM = 4;

/**
 * Returns a `fetch` that limits bodies, and events in streams, to `maxBytes` bytes, and reads
 * streams and large bodies no faster than `unsolicited` allows.
 */
export function boundedFetch(
  base: FetchLike | undefined = fetchOnce,
  maxBytes: number,
  unsolicited: UnsolicitedMessages,
): FetchLike {
  return async (url, init) => {
    const response = await base(url, init);
    const { body, headers, status, statusText } = response;
    // A `Response` cannot be made with the status of an opaque redirect.
    if (body === null || status < 200) return response;
    const isStream = /^\s*text\/event-stream\s*(;|$)/i.test(headers.get("content-type") ?? "");
    const id = isStream ? requestId(init?.body) : undefined;
    const bounded = boundedBody(maxBytes, unsolicited, isStream, id);
    // After a garbage collection, Deno's own fetch does not end the body at an abort.
    const end = IS_DENO && init?.signal ? { signal: init.signal } : {};
    return new Response(body.pipeThrough(bounded, end), { status, statusText, headers });
  };
}

/**
 * The sizes of the parts in which a body is read, without and during a pause: a large chunk may have
 * many short events, which together cost more than passes in a pause.
 */
const [PART_BYTES, PAUSED_PART_BYTES] = [16_384, 1_024] as const;

/** The maximum cost, in the unit of `messageMeter`, of a response that is not counted. */
const FREE_COST = 1_048_576;
/** The cost of a response that passes after each wait, even if others have caused the next pause. */
const PAUSED_COST = 524_288;

/**
 * Bounds a body or, in a stream, each event, and the stream with the response to a request. If that
 * exceeds a bound, the SDK receives an error as the response: otherwise it would wait for the response.
 *
 * @param id The id of the request; `undefined` for a body, and for a stream of notifications.
 */
function boundedBody(
  maxBytes: number,
  unsolicited: UnsolicitedMessages,
  isStream: boolean,
  id: string | number | undefined,
): TransformStream<Uint8Array, Uint8Array> {
  const add = messageMeter(maxBytes, isStream);
  const isResponse = !isStream || id !== undefined;
  /** `left` is the cost of the parts that may still pass in this pause. */
  let [total, totalCost, left] = [0, 0, 0];
  return new TransformStream({
    async transform(chunk, controller) {
      for (let at = 0; at < chunk.byteLength;) {
        const part = chunk.subarray(
          at,
          at + (unsolicited.isPaused ? PAUSED_PART_BYTES : PART_BYTES),
        );
        at += part.byteLength;
        total += part.byteLength;
        const { cost, excess } = add(part);
        if (excess !== undefined || id !== undefined && total > MAX_STREAM * maxBytes) {
          const message = excess ??
            tooMuch(MAX_STREAM * maxBytes, "bytes in response to one request");
          if (id === undefined) throw new RangeError(message);
          const error = { code: -32_000, message };
          const answer = JSON.stringify({ jsonrpc: "2.0", id, error });
          controller.enqueue(encoder.encode(`\n\ndata: ${answer}\n\n`));
          return controller.terminate();
        }
        totalCost += cost;
        // Calls with many events must not delay the short responses of others.
        const isCounted = !isResponse || totalCost > FREE_COST;
        // Several streams may wait for the end of the same pause.
        while (isCounted && unsolicited.isPaused && cost > left) {
          await unsolicited.waitForPause();
          left = isResponse ? PAUSED_COST : 0;
        }
        left -= cost;
        controller.enqueue(part);
        if (isCounted) unsolicited.read(cost);
      }
    },
  });
}

function requestId(body: unknown): string | number | undefined {
  if (typeof body !== "string") return undefined;
  const message: unknown = JSON.parse(body);
  const id = isObject(message) && "method" in message ? message["id"] : undefined;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

const encoder = new TextEncoder();
const ID = /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)|"id"\s*:\s*(\d+)\s*\}\s*$/;

/**
 * Separates the messages of a program like the SDK's `ReadBuffer`, which takes quadratic time.
 * A message above the limit fails only the request that it answers, unless it does not end. During a
 * pause of `unsolicited`, there is no next message.
 *
 * @param requests The requests whose responses are due.
 */
export function readLines(
  maxBytes: number,
  unsolicited: UnsolicitedMessages,
  requests: ReadonlyMap<unknown, unknown>,
  parse: (line: string) => JSONRPCMessage,
) {
  const decoder = new TextDecoder();
  const maxLine = MAX_STREAM * maxBytes;
  /** The lines that were not read. The last one has not ended. Empty after the end. */
  let lines = [""];
  const read = (line: string): JSONRPCMessage => {
    const { cost, excess } = messageMeter(maxBytes)(encoder.encode(line));
    if (excess !== undefined) {
      const [, first, last = "-1"] = ID.exec(line) ?? [];
      const error = { code: -32_000, message: excess };
      return parse(JSON.stringify({ jsonrpc: "2.0", id: Number(first ?? last), error }));
    }
    const message = parse(line);
    if (requestOf(message, requests) === undefined) unsolicited.read(cost);
    return message;
  };
  return {
    append(chunk: Uint8Array): void {
      if (lines.length === 0) return;
      const [rest = "", ...next] = decoder.decode(chunk, { stream: true }).split("\n");
      const line = lines.pop() + rest;
      if (line.length > maxLine) throw new RangeError(tooMuch(maxLine));
      lines = [...lines, line, ...next];
    },
    /** Ends the connection: otherwise the pauses of a flood would continue for minutes. */
    clear(): void {
      lines = [];
    },
    readMessage(): JSONRPCMessage | null {
      while (lines.length > 1 && !unsolicited.isPaused) {
        try {
          return read(lines.shift() as string);
        } catch (error) {
          unsolicited.add();
          // Programs also write other texts than messages.
          if (!(error instanceof SyntaxError)) throw error;
        }
      }
      return null;
    },
  };
}

/** Returns the value of the request that a message answers. */
function requestOf<Value>(
  message: JSONRPCMessage,
  requests: ReadonlyMap<unknown, Value>,
): Value | undefined {
  return "method" in message ? undefined : requests.get(message.id);
}

/** A program does not read its input, so that further calls would fill the memory. */
export class UnreadInput extends Error {}

/** The code, which no server uses, of the error of a call whose stream has ended without a response. */
export const STREAM_ENDED: number = Number.MIN_SAFE_INTEGER;

const MAX_ANSWERS = 16;
/** The time in which a server can end the stream of a response, so that its connection is used again. */
const END_MS = 1_000;

/**
 * Limits the unsent responses to requests of a server that does not read them. Ends the HTTP request
 * of each request that is cancelled or answered: the SDK and many servers leave it open, and Bun limits
 * the concurrent requests to 256.
 *
 * @param requests Receives the requests whose responses are due.
 */
export function boundMessages(
  transport: Transport,
  unsolicited: UnsolicitedMessages,
  requests: Map<unknown, AbortController>,
): void {
  const send = transport.send.bind(transport);
  const end = (id: unknown): void => {
    requests.get(id)?.abort();
    requests.delete(id);
  };
  const count = (message: JSONRPCMessage): void => {
    const request = requestOf(message, requests);
    if (request === undefined) return unsolicited.add();
    // Immediately, because a timer may not outlive a request on Workers.
    requests.delete(Object(message).id);
    // Must not delay the end of the process.
    Object(setTimeout(() => request.abort(), END_MS)).unref?.();
  };
  let receive: Transport["onmessage"];
  // The SDK replaces it while it finds out the revision of the server.
  Object.defineProperty(transport, "onmessage", {
    get: () => receive,
    set: (next: typeof receive) => {
      receive = next && ((message, extra) => (count(message), next(message, extra)));
    },
  });
  let answers = 0;
  transport.send = async (message: JSONRPCMessage, options = {}) => {
    if ("method" in message) {
      if (message.method === "notifications/cancelled") end(message.params?.["requestId"]);
      if (!("id" in message)) return await send(message, options);
      const { id } = message;
      const request = new AbortController();
      requests.set(id, request);
      options.requestSignal?.addEventListener("abort", () => end(id));
      const onRequestStreamEnd = (): void => {
        // The SDK would wait for the response until the time limit of the call.
        const error = { code: STREAM_ENDED, message: "the stream of the response has ended" };
        const isCall = options.onRequestStreamEnd === undefined;
        if (isCall && requests.has(id)) receive?.({ jsonrpc: "2.0", id, error });
        end(id);
        options.onRequestStreamEnd?.();
      };
      const all = { ...options, requestSignal: request.signal, onRequestStreamEnd };
      return await send(message, all).catch((error) => {
        end(id);
        throw error;
      });
    }
    if (answers >= MAX_ANSWERS) return;
    answers++;
    try {
      await send(message, options);
    } finally {
      answers--;
    }
  };
}
