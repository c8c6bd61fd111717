/**
 * The port through which calls are traced and measured.
 *
 * @module
 */

import type { Tool, ToolResult } from "../../tool/mod.ts";
import type { TraceParent } from "./traceparent.ts";

/** A call, as telemetry is told of it. Neither arguments nor results: they may be anybody's secrets. */
export interface ObservedCall {
  readonly tool: Tool;
  readonly callId: string;
  readonly sessionId: string | undefined;
  /** The request's headers: they may name the trace that it belongs to. */
  readonly headers: Headers;
}

/** One call that is observed. */
export interface CallSpan {
  /** Where in the trace it is; `undefined` if it is not traced. */
  readonly place: TraceParent | undefined;
  /** Does work as a part of the call: what the work observes itself belongs to it. */
  run<Result>(work: () => Result): Result;
  /** The call has ended, `durationMs` of its result after it began. */
  end(result: ToolResult): void;
}

/** Observes calls. What it throws is told to the handler's log, and the call goes on without it. */
export interface CallTelemetry {
  begin(call: ObservedCall): CallSpan;
}

/** A call that nobody observes. */
export const unobserved: CallSpan = {
  place: undefined,
  run: (work) => work(),
  end() {},
};

/**
 * Begins to observe a call. What observes does not change what is observed: what it throws is told
 * to `onError`, and the call goes on without it.
 */
export function observeCall(
  telemetry: CallTelemetry | undefined,
  call: ObservedCall,
  onError: (error: unknown) => void,
): CallSpan {
  if (telemetry === undefined) return unobserved;
  try {
    const span = telemetry.begin(call);
    return {
      place: span.place,
      run: (work) => span.run(work),
      end(result) {
        try {
          span.end(result);
        } catch (error) {
          onError(error);
        }
      },
    };
  } catch (error) {
    onError(error);
    return unobserved;
  }
}
