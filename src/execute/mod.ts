/**
 * One call from arguments to result. The folder's table of contents.
 *
 * @module
 */

export type {
  ApprovalAnswer,
  Approver,
  BeforeAnswer,
  CallInfo,
  ClaimedKey,
  KeptKeys,
  RepairAnswer,
  RepairHook,
  SettleKey,
  ToolHooks,
  TransactionInfo,
  TransactionManager,
} from "./ports.ts";
export { CallContext } from "./context.ts";
export type {
  CallMemory,
  CallTickets,
  KeptAnswer,
  RepairedArguments,
  Resumption,
  ReturnedTicket,
  WaitingCall,
} from "./suspension.ts";
export { type SelectableToolHost, ToolDispatcher } from "./dispatcher.ts";
export type {
  CallSpan,
  CallTelemetry,
  CallTrace,
  ObservedCall,
  TraceHeaders,
  TraceParent,
} from "./telemetry.ts";
export type { DispatcherMetrics, DurationMetrics, ToolMetrics } from "./metrics.ts";
export type {
  CallValidator,
  ConcurrencyLimits,
  DispatchErrorReport,
  DispatchPhase,
  IdempotencyOptions,
  ToolDispatcherOptions,
} from "./options.ts";
export type { DispatchContext, ResumedCall, ToolCall, ToolProgress } from "./request.ts";
export type {
  MetadataEvent,
  OutputEvent,
  ProgressEvent,
  ResultEvent,
  ToolEvent,
} from "./events.ts";
