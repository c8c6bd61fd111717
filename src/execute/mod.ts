/**
 * One call from arguments to result. The folder's table of contents.
 *
 * @module
 */

export type { ApprovalAnswer, Approver } from "./approval.ts";
export { type Clock, type OutputOverflow, systemClock } from "../tool/mod.ts";
export { ToolDispatcher } from "./dispatcher.ts";
export type { BeforeAnswer, CallInfo, ToolHooks } from "./hooks.ts";
export type { DispatcherMetrics, DurationMetrics, ToolMetrics } from "./metrics.ts";
export type {
  CallValidator,
  ConcurrencyLimits,
  DispatchErrorReport,
  DispatchPhase,
  IdempotencyOptions,
  ToolDispatcherOptions,
} from "./options.ts";
export type { SelectableToolHost } from "./source.ts";
export type { DispatchContext, ToolCall, ToolProgress } from "./tool_call.ts";
export type {
  MetadataEvent,
  OutputEvent,
  ProgressEvent,
  ResultEvent,
  ToolEvent,
} from "./tool_event.ts";
export type { TransactionInfo, TransactionManager } from "./transaction.ts";
