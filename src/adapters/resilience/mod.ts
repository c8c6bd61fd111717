/**
 * Layers that keep calls going when something fails, and keep models from going in circles.
 *
 * @module
 */

export { type CallLimit, type CallLimitOptions, limitCalls } from "./limit_calls.ts";
export { breakCircuits, type CircuitBreakerOptions } from "./break_circuits.ts";
export {
  type CachedTool,
  cacheResults,
  type ResultCache,
  type ResultCacheOptions,
} from "./cache_results.ts";
export { retryCalls, type RetryOptions } from "./retry_calls.ts";
