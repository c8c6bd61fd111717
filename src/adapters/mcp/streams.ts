/**
 * Streams slow responses, at the pace of the client. Comments in a stream keep the connection open
 * and reveal a disconnected client, which Workers detect only on writes.
 */

import { watchLater } from "../../tool/mod.ts";
import { type CallClient, eventStream, type EventStreamOptions } from "../http/mod.ts";

export interface SlowAnswerOptions extends Pick<EventStreamOptions, "heartbeatMs" | "onError"> {
  /** The time to wait for the response before its stream begins, in milliseconds. */
  readonly patienceMs: number;
  /** The request, whose signal is read only if a stream begins. */
  readonly client: CallClient;
  onLeave(): void;
}

/** Waits for a response, and streams it if it is slow. */
export function streamIfSlow(
  work: Promise<Response>,
  options: SlowAnswerOptions,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    let hasEnded = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = (): void => {
      hasEnded = true;
      clearTimeout(timer);
    };
    work.then(resolve, reject);
    work.then(end, end);
    const slow = (): void => resolve(streamOf(work, options));
    const wait = {
      waitsFor: () => !hasEnded,
      watch: () => void (timer = setTimeout(slow, options.patienceMs)),
    };
    watchLater(wait, undefined, TURNS_OF_A_SHORT_CALL);
  });
}

/**
 * The number of microtask turns within which a call without I/O ends. Such calls start no timer,
 * which on Deno takes a third of a response's time.
 */
const TURNS_OF_A_SHORT_CALL = 20;

function streamOf(work: Promise<Response>, options: SlowAnswerOptions): Response {
  const frames = framesOf(work);
  const { response, ended } = eventStream({
    async next() {
      const { value } = await frames.next();
      return value;
    },
    async cancel() {
      options.onLeave();
      await frames.return(undefined).catch(() => {});
    },
  }, { heartbeatMs: options.heartbeatMs, signal: options.client.signal, onError: options.onError });
  return cancelledIfUnread(response, ended, UNREAD_HEARTBEATS * options.heartbeatMs);
}

/** The number of heartbeats after which an unread response is cancelled. */
const UNREAD_HEARTBEATS = 2;

/** Cancels a body that is not read: Workers drop the response of a client that has left, silently. */
function cancelledIfUnread(response: Response, ended: Promise<void>, afterMs: number): Response {
  const reader = response.body?.getReader();
  const timer = setTimeout(() => void reader?.cancel(), afterMs);
  void ended.then(() => clearTimeout(timer));
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      clearTimeout(timer);
      const { done, value } = await reader?.read() ?? { done: true };
      if (value !== undefined) controller.enqueue(value);
      if (done) controller.close();
    },
    cancel(reason) {
      clearTimeout(timer);
      return reader?.cancel(reason);
    },
  }, { highWaterMark: 0 });
  return new Response(body, response);
}

/** Yields the events of a response that is a stream; otherwise one event with the whole body. */
async function* framesOf(work: Promise<Response>): AsyncGenerator<string, undefined> {
  const response = await work;
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("text/event-stream")) {
    // JSON contains no line breaks, so it is one line of the event.
    yield `event: message\ndata: ${await response.text()}\n\n`;
    return undefined;
  }
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader?.read() ?? { done: true };
      if (done) return undefined;
      if (value !== undefined) yield value;
    }
  } finally {
    await reader?.cancel();
  }
}

/** The maximum number of messages between two reads. Further progress and metadata are dropped. */
const MAX_AHEAD = 256;

/**
 * The pace at which a client reads its response. The SDK's streams buffer without bound: a tool
 * that yields faster than its client reads would fill the memory.
 */
export class ReaderPace {
  #isStream = false;
  #hasEnded = false;
  #isReading = false;
  /** True if the client has read all messages, and waits for more. */
  #isWaiting = false;
  #ahead = 0;
  readonly #waiting = new Set<() => void>();

  /** Resolves when the client reads; immediately if the response is not a stream. */
  async ready(): Promise<void> {
    await this.#until(() => this.#isReading);
    // The next message waits for the next read.
    this.#isReading = false;
  }

  /** Resolves when the client waits for more; immediately if the response is not a stream. */
  async idle(): Promise<void> {
    await this.#until(() => this.#isWaiting);
  }

  async #until(isMet: () => boolean): Promise<void> {
    while (this.#isStream && !this.#hasEnded && !isMet()) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** Returns true if another message of progress or metadata may be sent. */
  tryReserve(): boolean {
    return ++this.#ahead <= MAX_AHEAD;
  }

  observe(response: Response): Response {
    const type = response.headers.get("content-type") ?? "";
    if (response.body === null || !type.startsWith("text/event-stream")) return response;
    const reader = response.body.getReader();
    this.#isStream = true;
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        this.#ahead = 0;
        this.#isReading = true;
        this.#isWaiting = true;
        this.#wake();
        try {
          const { done, value } = await reader.read();
          this.#isWaiting = false;
          if (!done) return controller.enqueue(value);
          this.#end();
          controller.close();
        } catch (error) {
          this.#end();
          throw error;
        }
      },
      cancel: (reason) => {
        this.#end();
        return reader.cancel(reason);
      },
    }, { highWaterMark: 0 });
    return new Response(body, response);
  }

  #end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
