/**
 * Layers that retry, cache and stop calls, and limit the calls that a model repeats.
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
