/**
 * `GET /events`: how the tools of a caller change.
 *
 * @module
 */

import { Toolset } from "../../select/mod.ts";
import { EVENT_STREAM_HEADERS, eventStream, frame } from "./event_stream.ts";
import { type ListingChange, ListingWatch } from "./listing_changes.ts";
import type { HttpPart } from "./part.ts";
import { refuseQuery } from "./refuse_query.ts";
import type { ToolRequest } from "./request.ts";
import { problemResponse } from "./responses.ts";
import { slotsFor, type StreamSlots, TOO_MANY_STREAMS } from "./stream_slots.ts";

/** Options for {@linkcode serveEvents}. */
export interface ServeEventsOptions {
  /** Bounds how many clients may follow at once. @default {1_024 slots} */
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
 * Streams `added`, `removed` and `updated` events, each `{"type", "id"}`. The client follows from
 * the moment that it has the headers: what it lists after that is not older than the first event.
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
