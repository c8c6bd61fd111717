/**
 * The records of the requests that are observed and not yet answered.
 *
 * @module
 */

import type { TraceParent } from "../../execute/mod.ts";
import type { ToolResult } from "../../tool/mod.ts";

/** One call of a request, for an access log. */
export interface AccessCall {
  /**
   * As the caller wrote it; such a tool need not exist. Empty for a call that continues: its ticket
   * names the tool.
   */
  readonly toolId: string;
  readonly callId: string;
  /** `ok`, or the code of its failure. `undefined` if it has not ended. */
  readonly outcome: string | undefined;
}

/** Observes a request while `answer` answers it and fills in the record of the request. */
export type RequestObserver = (
  request: Request,
  answer: () => Response | Promise<Response>,
) => Promise<Response>;

/** One call of a request, while it runs. */
export interface RequestCall {
  /** Notes the result. Only the first one counts: a stream's reader may leave as it comes. */
  end(result: ToolResult): void;
}

/** A call whose outcome is still to be filled in. */
interface RecordedCall extends AccessCall {
  outcome: string | undefined;
}

/** At least as long as the longest id that a tool may have. */
const MAX_ID = 260;

/** The record of a request, for its observers. */
export class RequestRecord {
  /** The pattern of the route, such as `/tools/:id`. */
  route: string | undefined;
  principal: string | undefined;
  readonly calls: RecordedCall[] = [];
  /** The duration of `authorize`, in milliseconds. */
  authorizeMs: number | undefined;
  /** The duration of the longest call, in milliseconds. */
  toolMs: number | undefined;
  /** The place of the call in its trace, if the request has one call. */
  place: TraceParent | undefined;
  /** Resolves when a stream has ended; `undefined` for a response that is not a stream. */
  ended: Promise<void> | undefined;

  /** Notes that a call begins. */
  addCall(toolId: string, callId: string): RequestCall {
    const call: RecordedCall = { toolId: toolId.slice(0, MAX_ID), callId, outcome: undefined };
    this.calls.push(call);
    return {
      end: (result) => {
        if (call.outcome !== undefined) return;
        call.outcome = result.ok ? "ok" : result.error.code;
        this.toolMs = Math.max(this.toolMs ?? 0, result.durationMs);
      },
    };
  }

  /** Notes where a call is in its trace. Several calls have no one place. */
  began(place: TraceParent): void {
    this.place = this.calls.length === 1 ? place : undefined;
  }
}

/** The records by request. A request that nothing observes has none. */
export const records: WeakMap<Request, RequestRecord> = new WeakMap();
