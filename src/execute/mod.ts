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
export { CallContext, CallView } from "./context.ts";
export type {
  CallMemory,
  CallTickets,
  KeptAnswer,
  RepairedArguments,
  Resumption,
  ReturnedTicket,
  WaitingCall,
} from "./suspension.ts";
export { type CallStarted, Dispatcher, type SelectableToolHost } from "./dispatcher.ts";
export { ToolDispatcher, type ToolDispatcherOptions } from "./tool_dispatcher.ts";
export type {
  Call,
  CallObserver,
  CallSettings,
  DispatchErrorReport,
  DispatchPhase,
  KernelSettings,
  Layer,
  LayerFunction,
  Next,
  Outcome,
  Requirement,
  ToolState,
} from "./layer.ts";
export type { DispatcherOptions } from "./kernel_options.ts";
export type {
  CallSpan,
  CallTelemetry,
  CallTrace,
  ObservedCall,
  TraceHeaders,
  TraceParent,
} from "./ports.ts";
export { failure } from "./failures.ts";
export type { DispatcherMetrics, DurationMetrics, ToolMetrics } from "./metrics.ts";
export type { ConcurrencyLimits } from "./layers/concurrency_limit.ts";
export type { IdempotencyOptions } from "./idempotency.ts";
export type { CallValidator } from "./layers/validators.ts";
export type { DispatchContext, ResumedCall, ToolCall, ToolProgress } from "./request.ts";
export type {
  MetadataEvent,
  OutputEvent,
  ProgressEvent,
  ResultEvent,
  ToolEvent,
} from "./stream.ts";
