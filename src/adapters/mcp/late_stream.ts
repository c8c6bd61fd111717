/**
 * Answers that become streams when they take long. What is there soon is sent as it is; after that,
 * comments keep the connection open, and show whether the client is still there: Workers notice
 * only when they write.
 *
 * @module
 */

import { eventStream } from "../hono/event_stream.ts";

/** How long is long, and what then. */
export interface LateStreamOptions {
  /** How long to wait for the answer before its stream begins, in milliseconds. */
  readonly patienceMs: number;
  /** How long to wait between two comments, in milliseconds. */
  readonly heartbeatMs: number;
  /** The request's signal. */
  readonly signal: AbortSignal;
  /** The client has left its stream. */
  onLeave(): void;
  /** The answer failed when its stream had begun. */
  onError(error: unknown): void;
}

/**
 * Waits for an answer, and streams it if it takes long.
 *
 * @throws What `work` rejects with, if it does so soon.
 */
export function streamIfLate(
  work: Promise<Response>,
  options: LateStreamOptions,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(lateStream(work, options)), options.patienceMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function lateStream(work: Promise<Response>, options: LateStreamOptions): Response {
  const frames = framesOf(work);
  const { response, ended } = eventStream({
    async next() {
      try {
        const { value } = await frames.next();
        return value;
      } catch (error) {
        options.onError(error);
        return undefined;
      }
    },
    async cancel() {
      options.onLeave();
      await frames.return(undefined).catch(() => {});
    },
  }, options);
  return givenUpUnread(response, ended, UNREAD_HEARTBEATS * options.heartbeatMs);
}

/** A runtime that sends a response reads it at once. */
const UNREAD_HEARTBEATS = 2;

/**
 * Cancels a body that nobody begins to read: Workers drop the response of a client that was gone
 * before there was one, and do not say so.
 */
function givenUpUnread(response: Response, ended: Promise<void>, afterMs: number): Response {
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

/** The events of an answer: its own if it is a stream, else one that is the whole of it. */
async function* framesOf(work: Promise<Response>): AsyncGenerator<string, undefined> {
  const response = await work;
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("text/event-stream")) {
    // JSON, as it is written here, has no line breaks.
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
