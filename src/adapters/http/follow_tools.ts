/**
 * `GET /events`: the changes of a caller's tools. They follow from comparing listings, and not from
 * the registry's events: a tool that the caller does not see is never named, a tool that becomes
 * visible is `added`, and unread changes are merged.
 *
 * @module
 */

import type { Registry } from "../../registry/mod.ts";
import { Toolset } from "../../select/mod.ts";
import { once, originalOf, type Tool } from "../../tool/mod.ts";
import {
  EVENT_STREAM_HEADERS,
  eventStream,
  frame,
  takeSlot,
  TOO_MANY_STREAMS,
} from "./event_stream.ts";
import type { HttpPart } from "./handler.ts";
import type { ToolRequest } from "./request.ts";
import { problemResponse, refuseQuery } from "./responses.ts";

/** How one tool of a listing changed. */
export interface ListingChange {
  readonly type: "added" | "removed" | "updated";
  readonly id: string;
}

/**
 * The changes from one listing to another. Callers of one kind have the same listings, so a change of
 * 5,000 tools is compared once, and not once per stream: 1,000 streams would take seconds.
 */
const compared = new WeakMap<
  readonly Tool[],
  WeakMap<readonly Tool[], readonly ListingChange[]>
>();

function listingChanges(before: readonly Tool[], after: readonly Tool[]): readonly ListingChange[] {
  if (before === after) return [];
  return once(
    once(compared, after, () => new WeakMap()),
    before,
    () => compare(before, after),
  );
}

/** Compares two listings. Returns the changes, in order of id. */
function compare(before: readonly Tool[], after: readonly Tool[]): readonly ListingChange[] {
  const old = new Map(before.map((tool) => [tool.id, tool]));
  const now = new Set(after.map(({ id }) => id));
  const changes: ListingChange[] = before.flatMap(({ id }) =>
    now.has(id) ? [] : [{ type: "removed", id }]
  );
  for (const tool of after) {
    const was = old.get(tool.id);
    if (was === undefined) changes.push({ type: "added", id: tool.id });
    else if (!isSame(was, tool)) changes.push({ type: "updated", id: tool.id });
  }
  return changes.sort((a, b) => a.id < b.id ? -1 : 1);
}

/** Returns true if two tools are one, with the same description. */
function isSame(old: Tool, now: Tool): boolean {
  return old === now ||
    originalOf(old) === originalOf(now) && old.description === now.description;
}

/** The listing that a {@linkcode ListingWatch} follows. */
export interface WatchedListing {
  /** `undefined` if the list does not change. */
  readonly registry: Registry | undefined;
  /** Gives the tools that the caller sees now. */
  list(): readonly Tool[];
  /** When the caller's token ends, in milliseconds since 1970: then the watch is over. */
  readonly expiresAt: number | undefined;
  /** Is called once, when the watch is over. */
  onStop(): void;
}

/** The maximum delay of a timer, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647;

/** Follows one caller's list. Changes of tools that the caller does not see do not count. */
export class ListingWatch {
  readonly #watched: WatchedListing;
  #listing: readonly Tool[];
  /** The registry has changed since the last look. Several changes are one. */
  #hasChanged = false;
  /** The registry can change no more. */
  #hasEnded = false;
  #isOver = false;
  #wake: (() => void) | undefined;
  #expiry: ReturnType<typeof setTimeout> | undefined;
  readonly #unsubscribe: (() => void) | undefined;

  constructor(watched: WatchedListing) {
    this.#watched = watched;
    this.#listing = watched.list();
    // The subscribers only resolve a promise: in workerd, the request that changes the registry must
    // not run code of another request.
    this.#unsubscribe = watched.registry?.subscribe(() => {
      this.#hasChanged = true;
      this.#wake?.();
    }, () => {
      this.#hasEnded = true;
      this.#wake?.();
    });
    this.#awaitExpiry();
  }

  /**
   * Waits until the list is another one.
   *
   * @returns How it changed since the last time; nothing if the watch is over.
   */
  async changes(): Promise<readonly ListingChange[]> {
    while (!this.#isOver && this.#leftMs() > 0) {
      if (!this.#hasChanged) {
        if (this.#hasEnded) break;
        await new Promise<void>((resolve) => this.#wake = resolve);
        continue;
      }
      this.#hasChanged = false;
      const before = this.#listing;
      this.#listing = this.#watched.list();
      const changes = listingChanges(before, this.#listing);
      if (changes.length > 0) return changes;
    }
    this.stop();
    return [];
  }

  /** Stops following. */
  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#expiry);
    this.#unsubscribe?.();
    this.#wake?.();
    this.#watched.onStop();
  }

  #leftMs(): number {
    return (this.#watched.expiresAt ?? Infinity) - Date.now();
  }

  /** Ends the watch when the token expires, even if the registry does not change. */
  #awaitExpiry(): void {
    const leftMs = this.#leftMs();
    if (leftMs === Infinity) return;
    this.#expiry = setTimeout(
      () => this.#leftMs() > 0 ? this.#awaitExpiry() : this.stop(),
      Math.min(Math.max(leftMs, 0), MAX_TIMER_MS),
    );
  }
}

/** The part that streams how the caller's tools change: `GET /events`. */
export function serveEvents(): HttpPart {
  return () => ({ routes: [{ method: "GET", path: "/events", answer: followTools }] });
}

/**
 * Streams `added`, `removed` and `updated` events, each `{"type", "id"}`. The stream begins before
 * its headers are sent: a listing that the client requests afterwards is not older than the first
 * event.
 */
function followTools(request: ToolRequest): Response {
  const { raw, caller, server } = request;
  refuseQuery(raw.url);
  // A toolset does not change. After 204, an EventSource does not connect again.
  if (server.source instanceof Toolset) return new Response(null, { status: 204 });
  // The body of an answer to HEAD is dropped: a stream would never be closed.
  if (raw.method === "HEAD") return new Response(null, { headers: EVENT_STREAM_HEADERS });
  const release = takeSlot(request);
  if (release === undefined) return problemResponse(TOO_MANY_STREAMS);
  const watch = new ListingWatch({
    registry: server.source,
    list: () => request.toolsetNow().available(),
    expiresAt: caller.expiresAt,
    onStop: release,
  });
  let waiting: readonly ListingChange[] = [];
  let next = 0;
  let count = 0;
  const { response, ended } = eventStream({
    async next() {
      if (next === waiting.length) {
        waiting = await watch.changes();
        next = 0;
      }
      const change = waiting[next++];
      return change && frame(count++, change.type, change);
    },
    cancel: () => watch.stop(),
  }, {
    heartbeatMs: server.heartbeatMs,
    signal: raw.signal,
    onError(error) {
      server.log(error);
      watch.stop();
    },
  });
  request.streamsUntil(ended);
  return response;
}
