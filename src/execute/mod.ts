/** One call from arguments to result. The folder's table of contents. */

export * from "./context.ts";
export * from "./dispatcher.ts";
export * from "./tool_dispatcher.ts";
export * from "./ports.ts";
export * from "./layer.ts";
export * from "./kernel_options.ts";
export * from "./metrics.ts";
export * from "./layers/concurrency_limit.ts";
export * from "./idempotency.ts";
export * from "./layers/approval.ts";
export * from "./request.ts";
export * from "./stream.ts";
export * from "./failures.ts";
