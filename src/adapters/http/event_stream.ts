/**
 * Server-sent events, whose source is read only as fast as the client reads the stream. Also the part
 * for `GET /events`, which streams a caller's listing: the registry's events would name hidden tools.
 */

import { Quotas } from "../../execute/durable/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import { attemptOr, MAX_TIMEOUT_MS, once, originalOf, type Tool } from "../../tool/mod.ts";
import type { HttpPart, ToolRequest, ToolServer } from "./request.ts";
import { type Problem, problemResponse, refuseQuery, UNCACHED_HEADERS } from "./responses.ts";

export interface FrameSource {
  /** The next frame, as {@linkcode frame} writes it; `undefined` at the end. */
  next(): Promise<string | undefined>;
  /** Stops the source because the reader has left. Resolves when it has stopped. Must not reject. */
  cancel(): void | Promise<void>;
}

export interface EventStreamOptions {
  readonly heartbeatMs: number;
  /** The request's signal, which aborts when the reader leaves. */
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  onError(error: unknown): void;
}

export interface EventStream {
  readonly response: Response;
  /** Resolves when the source has ended, or has been cancelled. Never rejects. */
  readonly ended: Promise<void>;
}

const encoder = new TextEncoder();
const COMMENT = encoder.encode(":\n\n");

/** The maximum number of frames that wait for the reader, including the first comment. */
const READY = 2;

/** Writes one event. `data` is JSON without line breaks. */
export function frame(id: number, event: string, data: unknown): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

export const EVENT_STREAM_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  // nginx would buffer the events otherwise.
  "x-accel-buffering": "no",
  ...UNCACHED_HEADERS,
};

/**
 * Makes a response of the frames of a source. The first comment causes the headers to be sent. Further
 * comments follow at each heartbeat, unless earlier frames are unread: workerd detects a disconnected
 * client only on a write.
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
    // close() throws if the reader has already closed the stream.
    attemptOr(undefined, () => controller?.close());
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
    response: new Response(body, { headers: { ...EVENT_STREAM_HEADERS, ...headers } }),
    ended,
  };
}

/** Returns a copy of a response. `ended` resolves when the body was read or the reader has left. */
export function untilRead(response: Response): EventStream {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  // `pipeTo` rejects when the reader leaves, and the producer of the body is cancelled.
  const ended = response.body?.pipeTo(writable).catch(() => {}) ?? Promise.resolve();
  return { response: new Response(readable, response), ended };
}

const openStreams = new WeakMap<ToolServer, Quotas<string | undefined>>();

/** Takes a slot for a stream. Returns the function that releases it; `undefined` if none is free. */
export function takeSlot(
  { server, caller: { principal } }: Pick<ToolRequest, "server" | "caller">,
): (() => void) | undefined {
  const { maxStreams, maxStreamsPerPrincipal } = server;
  const open = once(openStreams, server, () => new Quotas(maxStreams, maxStreamsPerPrincipal));
  if (open.exceeded(principal, 1) !== undefined) return undefined;
  open.add(principal, 1);
  let amount = -1;
  return () => {
    open.add(principal, amount);
    amount = 0;
  };
}

/** The message does not name the exceeded limit: this would reveal the number of other callers. */
const TOO_MANY_STREAMS: Problem = {
  status: 503,
  code: "overloaded",
  detail: "Cannot follow the tools: too many streams are open",
  headers: { "retry-after": "60" },
};

export function followingResponse(request: ToolRequest, follow: () => FrameSource): Response {
  const release = takeSlot(request);
  if (release === undefined) return problemResponse(TOO_MANY_STREAMS);
  const { raw, server } = request;
  const source = follow();
  const { response, ended } = eventStream(source, {
    heartbeatMs: server.heartbeatMs,
    signal: raw.signal,
    onError(error) {
      server.log(error);
      void source.cancel();
    },
  });
  void ended.then(release);
  request.streamsUntil(ended);
  return response;
}

/** Calls `end` when a caller's token expires. The returned function stops the timer. */
export function atExpiry(expiresAt: number = Infinity, end: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wait = (): void => {
    const leftMs = expiresAt - Date.now();
    if (leftMs === Infinity) return;
    const pauseMs = Math.min(Math.max(leftMs, 0), MAX_TIMEOUT_MS);
    timer = setTimeout(() => expiresAt <= Date.now() ? end() : wait(), pauseMs);
  };
  wait();
  return () => clearTimeout(timer);
}

export interface ListingChange {
  readonly type: "added" | "removed" | "updated";
  readonly id: string;
}

/**
 * The changes from one listing to another. Callers with equal permissions have the same listings, so a
 * change of 5,000 tools is compared once. To compare it for each of 1,000 streams would take seconds.
 */
const compared = new WeakMap<
  readonly Tool[],
  WeakMap<readonly Tool[], readonly ListingChange[]>
>();

function compare(before: readonly Tool[], after: readonly Tool[]): readonly ListingChange[] {
  const old = new Map(before.map((tool) => [tool.id, tool]));
  const changes: ListingChange[] = [];
  for (const tool of after) {
    const { id } = tool;
    const was = old.get(id);
    old.delete(id);
    if (was === undefined) changes.push({ type: "added", id });
    else if (
      was !== tool &&
      (originalOf(was) !== originalOf(tool) || was.description !== tool.description)
    ) changes.push({ type: "updated", id });
  }
  for (const id of old.keys()) changes.push({ type: "removed", id });
  return changes.sort((a, b) => a.id < b.id ? -1 : 1);
}

export interface WatchedListing {
  /** `undefined` if the list never changes. */
  readonly registry: Registry | undefined;
  list(): readonly Tool[];
  /** The end of the watch, in milliseconds since 1970: the expiry of the caller's token. */
  readonly expiresAt: number | undefined;
  onStop(): void;
}

/** Follows one caller's list. Changes of tools that are hidden from the caller are ignored. */
export class ListingWatch {
  readonly #watched: WatchedListing;
  #listing: readonly Tool[];
  #hasChanged = false;
  /** True if the registry is disposed of. */
  #hasEnded = false;
  #isOver = false;
  #wake: (() => void) | undefined;
  readonly #stopWaiting: () => void;
  readonly #unsubscribe: (() => void) | undefined;

  constructor(watched: WatchedListing) {
    this.#watched = watched;
    this.#listing = watched.list();
    // Only resolves a promise: on workerd, the request that causes a change cannot run this one's code.
    this.#unsubscribe = watched.registry?.subscribe(() => {
      this.#hasChanged = true;
      this.#wake?.();
    }, () => {
      this.#hasEnded = true;
      this.#wake?.();
    });
    this.#stopWaiting = atExpiry(watched.expiresAt, () => this.stop());
  }

  /** Waits for changes of the list. Returns an empty array at the end of the watch. */
  async changes(): Promise<readonly ListingChange[]> {
    const { expiresAt = Infinity } = this.#watched;
    while (!this.#isOver && expiresAt > Date.now()) {
      if (!this.#hasChanged) {
        if (this.#hasEnded) break;
        await new Promise<void>((resolve) => this.#wake = resolve);
        continue;
      }
      this.#hasChanged = false;
      const before = this.#listing;
      this.#listing = this.#watched.list();
      const after = this.#listing;
      const comparisons = once(compared, after, () => new WeakMap());
      const changes = once(comparisons, before, () => compare(before, after));
      if (changes.length > 0) return changes;
    }
    this.stop();
    return [];
  }

  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWaiting();
    this.#unsubscribe?.();
    this.#wake?.();
    this.#watched.onStop();
  }
}

/** Makes the handler's part that streams the changes of the caller's tools: `GET /events`. */
export function serveEvents(): HttpPart {
  return () => ({ routes: [{ method: "GET", path: "/events", answer: followTools }] });
}

/**
 * Streams the events `added`, `removed` and `updated`. The watch begins before the headers are sent, so
 * a client that requests a listing after the headers misses no change.
 */
function followTools(request: ToolRequest): Response {
  const { raw, caller, server } = request;
  refuseQuery(raw.url);
  // A toolset does not change. After 204, an EventSource does not connect again.
  if (server.source instanceof Toolset) return new Response(null, { status: 204 });
  // A server ignores the body of a response to HEAD: a stream would never be closed.
  if (raw.method === "HEAD") return new Response(null, { headers: EVENT_STREAM_HEADERS });
  const { source: registry } = server;
  return followingResponse(request, () => {
    const watch = new ListingWatch({
      registry,
      list: () => request.toolsetNow().available(),
      expiresAt: caller.expiresAt,
      onStop() {},
    });
    let waiting: readonly ListingChange[] = [];
    let next = 0;
    let count = 0;
    return {
      async next() {
        if (next === waiting.length) {
          waiting = await watch.changes();
          next = 0;
        }
        const change = waiting[next++];
        return change && frame(count++, change.type, change);
      },
      cancel: () => watch.stop(),
    };
  });
}
