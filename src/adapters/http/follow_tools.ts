/**
 * `GET /events`: the changes of a caller's tools, and the slots that bound the number of open streams.
 *
 * @module
 */

import { Toolset } from "../../select/mod.ts";
import { EVENT_STREAM_HEADERS, eventStream, frame } from "./event_stream.ts";
import { type ListingChange, ListingWatch } from "./listing_changes.ts";
import type { HttpPart } from "./handler.ts";
import type { ToolRequest, ToolServer } from "./request.ts";
import { type Problem, problemResponse, refuseQuery } from "./responses.ts";

/** The slots for open streams: in all, and for one principal, which must not take all of them. */
export class StreamSlots {
  readonly #max: number;
  readonly #maxPerPrincipal: number;
  readonly #taken = new Map<string | undefined, number>();
  #total = 0;

  /**
   * @param max The maximum number of open streams.
   * @param maxPerPrincipal The maximum number of one principal's open streams. Without `authorize`,
   * all callers are one principal.
   */
  constructor(max: number, maxPerPrincipal: number = Math.ceil(max / 16)) {
    this.#max = max;
    this.#maxPerPrincipal = maxPerPrincipal;
  }

  /**
   * Takes a slot.
   *
   * @param principal Callers without one share theirs.
   * @returns A function that releases the slot; `undefined` if none is free.
   */
  take(principal: string | undefined): (() => void) | undefined {
    const own = this.#taken.get(principal) ?? 0;
    if (this.#total >= this.#max || own >= this.#maxPerPrincipal) return undefined;
    this.#total++;
    this.#taken.set(principal, own + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#total--;
      const left = (this.#taken.get(principal) ?? 1) - 1;
      if (left === 0) this.#taken.delete(principal);
      else this.#taken.set(principal, left);
    };
  }
}

const MAX_STREAMS = 1_024;

/**
 * Makes the slots of a server.
 *
 * @param max The maximum number of open streams. @default {1_024}
 * @param maxPerPrincipal The maximum number of one principal's open streams; not used without
 * `authorize`.
 */
export function slotsFor(
  { authorizes }: Pick<ToolServer, "authorizes">,
  max: number = MAX_STREAMS,
  maxPerPrincipal?: number,
): StreamSlots {
  return new StreamSlots(max, authorizes ? maxPerPrincipal : Infinity);
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

/** Options for {@linkcode serveEvents}. */
export interface ServeEventsOptions {
  /** The slots for clients that follow the tools. @default {1_024 slots} */
  readonly slots?: StreamSlots;
}

/** The part that streams how the caller's tools change: `GET /events`. */
export function serveEvents({ slots }: ServeEventsOptions = {}): HttpPart {
  return (server) => {
    const own = slots ?? slotsFor(server);
    return {
      routes: [
        { method: "GET", path: "/events", answer: (request) => followTools(request, own) },
      ],
    };
  };
}

/**
 * Streams `added`, `removed` and `updated` events, each `{"type", "id"}`. The stream begins before
 * its headers are sent: a listing that the client requests afterwards is not older than the first
 * event.
 */
function followTools(request: ToolRequest, slots: StreamSlots): Response {
  const { raw, caller, server } = request;
  refuseQuery(raw.url);
  // A toolset does not change. After 204, an EventSource does not connect again.
  if (server.source instanceof Toolset) return new Response(null, { status: 204 });
  // The body of an answer to HEAD is dropped: a stream would never be closed.
  if (raw.method === "HEAD") return new Response(null, { headers: EVENT_STREAM_HEADERS });
  const release = slots.take(caller.principal);
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
      try {
        if (next === waiting.length) {
          waiting = await watch.changes();
          next = 0;
        }
        const change = waiting[next++];
        return change && frame(count++, change.type, change);
      } catch (error) {
        server.log(error);
        return void watch.stop();
      }
    },
    cancel: () => Promise.resolve(watch.stop()),
  }, { heartbeatMs: server.heartbeatMs, signal: raw.signal });
  request.streamsUntil(ended);
  return response;
}
