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
import { type Problem, problemResponse } from "../problem.ts";
import { refuseQuery } from "../query.ts";
import type { ToolService } from "../service.ts";
import { StreamSlots } from "../stream_slots.ts";

/** Not said is whose streams they are: how many others there are is not the caller's business. */
const TOO_MANY: Problem = {
  status: 503,
  code: "overloaded",
  detail: "Cannot follow the tools: too many streams are open",
  headers: { "retry-after": "60" },
};

/**
 * Streams `added`, `removed` and `updated` events, each `{"type", "id"}`. The client follows from
 * the moment that it has the headers: what it lists after that is not older than the first event.
 */
export function followTools(service: ToolService): Answer {
  const { access, options, limits } = service;
  const { source } = access;
  const { heartbeatMs, maxEventStreams, maxEventStreamsPerPrincipal } = limits;
  const slots = new StreamSlots(
    maxEventStreams,
    options.authorize === undefined ? maxEventStreams : maxEventStreamsPerPrincipal,
  );
  return (c, { caller, toolset, exchange }) => {
    refuseQuery(c.req.url);
    // A toolset does not change. 204 tells an EventSource not to come again.
    if (source instanceof Toolset) return new Response(null, { status: 204 });
    // Hono answers HEAD with this route and drops the body, which nobody would ever close.
    if (c.req.method === "HEAD") {
      return new Response(null, { headers: EVENT_STREAM_HEADERS });
    }
    const release = slots.take(caller.principal);
    if (release === undefined) return problemResponse(TOO_MANY);
    const changed = new ChangeSignal(source);
    let listing = toolset.available();
    let waiting: readonly ListingChange[] = [];
    let next = 0;
    let count = 0;
    const stop = (): void => {
      changed.stop();
      release();
    };
    const { response, ended } = eventStream({
      async next() {
        try {
          while (next >= waiting.length) {
            if (!await changed.next()) return void stop();
            const before = listing;
            listing = access.toolsetOf(caller).available();
            waiting = listingChanges(before, listing);
            next = 0;
          }
          const change = waiting[next++];
          return change && frame(count++, change.type, change);
        } catch (error) {
          access.log(error);
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
