/**
 * The port through which calls are traced and measured. The dispatcher asks it, so every call is
 * seen, wherever it comes from.
 *
 * @module
 */

import type { Tool, ToolResult } from "../tool/mod.ts";

/** Headers that name a trace: those of a request, or a `Map` with `traceparent`. */
export interface TraceHeaders {
  get(name: string): string | null | undefined;
  keys(): Iterable<string>;
}

/** The trace that a call belongs to. */
export interface CallTrace {
  /** Name the trace of who calls. They count where no span is active. */
  readonly headers?: TraceHeaders | undefined;
  /** Is told the place of the call in its trace, before the call runs. */
  began?(place: TraceParent): void;
}

/** A place in a trace. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the trace is recorded. */
  readonly sampled: boolean;
}

/** A call, for telemetry. Arguments and results are left out: they may hold secrets. */
export interface ObservedCall {
  readonly tool: Tool;
  readonly callId: string;
  readonly sessionId: string | undefined;
  /** Name the trace of who calls, if there is one. */
  readonly headers: TraceHeaders | undefined;
}

/** One call that is observed. */
export interface CallSpan {
  /** The place of the call in its trace; `undefined` if it is not traced. */
  readonly place: TraceParent | undefined;
  /** Does work inside the span: spans that the work begins become its children. */
  run<Result>(work: () => Result): Result;
  /** The call has ended, `durationMs` of its result after it began. */
  end(result: ToolResult): void;
}

/**
 * Observes calls. What it throws goes to `onError` with the phase `telemetry`, and the call runs
 * without it.
 */
export interface CallTelemetry {
  begin(call: ObservedCall): CallSpan;
  /** The place in a trace of the work that runs now, for calls that go on in another process. */
  place?(): TraceParent | undefined;
}
