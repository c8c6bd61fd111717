/**
 * Server-sent events: responses that are sent event by event, at the pace of their reader. And the
 * slots that bound the number of open streams.
 *
 * @module
 */

import { once } from "../../tool/mod.ts";
import type { ToolRequest, ToolServer } from "./request.ts";
import { type Problem, SAFE_HEADERS } from "./responses.ts";

/** The source of the events. */
export interface FrameSource {
  /** The next frame, as {@linkcode frame} writes it; `undefined` at the end. */
  next(): Promise<string | undefined>;
  /** Stops the source because the reader has left. Resolves when it has stopped. Must not reject. */
  cancel(): void | Promise<void>;
}

/** Options for {@linkcode eventStream}. */
export interface EventStreamOptions {
  /** The interval between comments, in milliseconds. */
  readonly heartbeatMs: number;
  /** The request's signal, which aborts when the reader leaves. */
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** Receives an error of the source, which ends the stream. */
  onError(error: unknown): void;
}

/** A stream of events that has begun. */
export interface EventStream {
  readonly response: Response;
  /** Resolves when the source has ended, or has been cancelled. Never rejects. */
  readonly ended: Promise<void>;
}

const encoder = new TextEncoder();
const COMMENT = encoder.encode(":\n\n");

/** The number of frames that wait for the reader: two, because the first comment is one. */
const READY = 2;

/** Writes one event. `data` is JSON without line breaks. */
export function frame(id: number, event: string, data: unknown): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** The headers of every event stream. */
export const EVENT_STREAM_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  // nginx would buffer the events otherwise.
  "x-accel-buffering": "no",
  ...SAFE_HEADERS,
};

/**
 * Makes a response of the frames of a source. A frame is read when the reader can take it.
 *
 * The first comment is sent immediately, so that the headers are sent. Further comments follow at
 * each heartbeat, unless earlier frames are still unread. workerd detects only on a write that a
 * client has disconnected.
 */
export function eventStream(source: FrameSource, options: EventStreamOptions): EventStream {
  const { heartbeatMs, signal, headers = {} } = options;
  let isOver = false;
  let settle = (): void => {};
  const ended = new Promise<void>((resolve) => settle = resolve);
  let timer: ReturnType<typeof setInterval> | undefined;
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  function stop(): void {
    isOver = true;
    clearInterval(timer);
    signal.removeEventListener("abort", leave);
  }
  async function cancel(): Promise<void> {
    if (isOver) return;
    stop();
    await source.cancel();
    settle();
  }
  /** Ends the stream when the request is aborted, even if the reader has not cancelled it. */
  function leave(): void {
    void cancel();
    try {
      controller?.close();
    } catch {
      // The reader was quicker.
    }
  }

  const body = new ReadableStream<Uint8Array>({
    start(own) {
      controller = own;
      own.enqueue(COMMENT);
      timer = setInterval(() => {
        if ((own.desiredSize ?? 0) > 0) own.enqueue(COMMENT);
      }, heartbeatMs);
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    },
    async pull(own) {
      let next: string | undefined;
      try {
        next = await source.next();
      } catch (error) {
        options.onError(error);
      }
      if (isOver) return;
      if (next !== undefined) return own.enqueue(encoder.encode(next));
      stop();
      own.close();
      settle();
    },
    cancel,
  }, { highWaterMark: READY });
  return {
    response: new Response(body, {
      headers: { ...EVENT_STREAM_HEADERS, ...headers },
    }),
    ended,
  };
}

/** An answer whose body somebody else makes, and when it has been read or its reader has left. */
export function untilRead(response: Response): EventStream {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  // It rejects when the reader leaves, and the producer of the body is cancelled.
  const ended = response.body?.pipeTo(writable).catch(() => {}) ?? Promise.resolve();
  return { response: new Response(readable, response), ended };
}

/** The numbers of open streams of a server, in all and by principal. */
interface OpenStreams {
  total: number;
  readonly byPrincipal: Map<string | undefined, number>;
}

const openStreams = new WeakMap<ToolServer, OpenStreams>();

/**
 * Takes a slot for a stream of a caller. Callers without a principal share theirs.
 *
 * @returns A function that releases the slot; `undefined` if none is free.
 */
export function takeSlot(
  { server, caller: { principal } }: Pick<ToolRequest, "server" | "caller">,
): (() => void) | undefined {
  const open = once(openStreams, server, () => ({ total: 0, byPrincipal: new Map() }));
  const own = open.byPrincipal.get(principal) ?? 0;
  if (open.total >= server.maxStreams || own >= server.maxStreamsPerPrincipal) return undefined;
  open.total++;
  open.byPrincipal.set(principal, own + 1);
  let isTaken = true;
  return () => {
    if (!isTaken) return;
    isTaken = false;
    open.total--;
    const left = (open.byPrincipal.get(principal) ?? 1) - 1;
    if (left === 0) open.byPrincipal.delete(principal);
    else open.byPrincipal.set(principal, left);
  };
}

/**
 * The message does not name the principals of the streams: a caller must not learn how many others
 * there are.
 */
export const TOO_MANY_STREAMS: Problem = {
  status: 503,
  code: "overloaded",
  detail: "Cannot follow the tools: too many streams are open",
  headers: { "retry-after": "60" },
};
