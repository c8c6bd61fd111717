/**
 * The layers of plue. A `Dispatcher` of `@plue/tools/core` has only the layers that you pass.
 * `ToolDispatcher` of `@plue/tools` has all layers.
 *
 * You choose the order of the layers. `ToolDispatcher` has this order, from the outside in:
 * `emissions`, `telemetry`, `metrics`, `failureNotice`, `idempotency`, `hooks().after` ·
 * `hostContext`, `repair`, `hooks().before` · `validators`, `approval`, `concurrencyLimit`,
 * `transactions`, `questions`, your own layers, `truncation`, `questions().again`.
 *
 * @example A dispatcher with three layers
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 * import { concurrencyLimit, idempotency, metrics } from "@plue/tools/layers";
 *
 * let runs = 0;
 * const registry = new ToolRegistry({
 *   tools: [{ name: "pay", description: "Pays.", execute: () => ++runs }],
 * });
 * const counters = metrics();
 * const dispatcher = new Dispatcher(registry, {
 *   layers: [counters, idempotency({ windowMs: 60_000 }), concurrencyLimit({ maxConcurrent: 4 })],
 * });
 *
 * await dispatcher.dispatch({ name: "pay" }, { idempotencyKey: "order-7" });
 * const again = await dispatcher.dispatch({ name: "pay" }, { idempotencyKey: "order-7" });
 * assert.deepEqual(again.ok && [again.content, again.replayed], [1, true]);
 * assert.equal(counters.snapshot().calls, 2);
 * ```
 *
 * @module
 */

export { approval, type ApprovalOptions, type CallValidator, validators } from "./approval.ts";
export {
  concurrencyLimit,
  type ConcurrencyLimitLayer,
  type ConcurrencyLimits,
} from "./concurrency_limit.ts";
export { emissions, failureNotice, redactWith } from "./emissions.ts";
export { type HookLayers, hooks } from "./hooks.ts";
export { hostContext } from "./host_context.ts";
export { idempotency } from "./idempotency.ts";
export type { IdempotencyOptions } from "../idempotency.ts";
export { metrics, type MetricsLayer } from "../metrics.ts";
export { type QuestionOptions, questions, type QuestionsLayer } from "./questions.ts";
export { repair, type RepairLayer } from "./repair.ts";
export { telemetry } from "./telemetry.ts";
export { truncation } from "./truncation.ts";
export { transactions } from "./transactions.ts";
