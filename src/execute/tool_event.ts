/**
 * What a streamed call says while it runs.
 *
 * @module
 */

import type { ToolResult } from "../tool/mod.ts";
import type { ToolProgress } from "./tool_call.ts";

interface EventBase {
  readonly callId: string;
  /** 0 for the first event of the call, then 1, 2, 3, without a gap. */
  readonly sequence: number;
}

/** The tool sent a value with `context.metadata`. */
export interface MetadataEvent extends EventBase {
  readonly type: "metadata";
  readonly value: unknown;
}

/** The tool said how far it has come. */
export interface ProgressEvent extends EventBase {
  readonly type: "progress";
  readonly progress: ToolProgress;
}

/** The tool, a generator, yielded a value. */
export interface OutputEvent extends EventBase {
  readonly type: "output";
  readonly value: unknown;
}

/** The call has ended. The last event, exactly once. */
export interface ResultEvent extends EventBase {
  readonly type: "result";
  readonly result: ToolResult;
  /** How many events were lost: values that are not JSON, and metadata that nobody took in time. */
  readonly dropped: number;
}

/** What a streamed call says while it runs. Values are frozen copies. */
export type ToolEvent = MetadataEvent | ProgressEvent | OutputEvent | ResultEvent;
