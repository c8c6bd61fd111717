/**
 * `GET /events`: how the caller's tools change, as it happens.
 *
 * @module
 */

import { Toolset } from "../../../select/mod.ts";
import { ChangeSignal } from "../change_signal.ts";
import { EVENT_STREAM_HEADERS, eventStream, frame } from "../event_stream.ts";
import { type Answer, keepAlive } from "../exchange.ts";
import { type ListingChange, listingChanges } from "../listing_changes.ts";
import { problemResponse } from "../problem.ts";
import { refuseQuery } from "../query.ts";
import type { ToolService } from "../service.ts";

/**
 * Streams `added`, `removed` and `updated` events, each `{"type", "id"}`. The client follows from
 * the moment that it has the headers: what it lists after that is not older than the first event.
 */
export function followTools(service: ToolService): Answer {
  const { source, limits: { heartbeatMs, maxEventStreams } } = service;
  let streams = 0;
  return (c, { caller, toolset, exchange }) => {
    refuseQuery(c.req.url);
    // A toolset does not change. 204 tells an EventSource not to come again.
    if (source instanceof Toolset) return new Response(null, { status: 204 });
    // Hono answers HEAD with this route and drops the body, which nobody would ever close.
    if (c.req.method === "HEAD") {
      return new Response(null, { headers: EVENT_STREAM_HEADERS });
    }
    if (streams >= maxEventStreams) {
      return problemResponse({
        status: 503,
        code: "overloaded",
        detail: `Cannot follow the tools: ${maxEventStreams} clients do already`,
        headers: { "retry-after": "60" },
      });
    }
    streams++;
    const changed = new ChangeSignal(source);
    let listing = toolset.available();
    let waiting: readonly ListingChange[] = [];
    let next = 0;
    let count = 0;
    let isFollowing = true;
    const stop = (): void => {
      changed.stop();
      if (isFollowing) streams--;
      isFollowing = false;
    };
    const { response, ended } = eventStream({
      async next() {
        try {
          while (next >= waiting.length) {
            if (!await changed.next()) return void stop();
            const before = listing;
            listing = service.toolsetOf(caller).available();
            waiting = listingChanges(before, listing);
            next = 0;
          }
          const change = waiting[next++];
          return change && frame(count++, change.type, change);
        } catch (error) {
          service.report(error);
          return void stop();
        }
      },
      cancel: () => Promise.resolve(stop()),
    }, { heartbeatMs, signal: c.req.raw.signal, expiresAt: caller.expiresAt });
    exchange.ended = ended;
    keepAlive(c, ended);
    return response;
  };
}
