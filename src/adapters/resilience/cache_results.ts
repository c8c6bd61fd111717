/**
 * A cache of results, in a call store.
 *
 * @module
 */

import { type CallStore, memoryCallStore } from "../../execute/durable/mod.ts";
import type { Call, Layer } from "../../execute/mod.ts";
import {
  type Check,
  checkPort,
  MAX_TIMEOUT_MS,
  numberFrom,
  readFields,
  refuse,
  type RegistryClock,
  systemClock,
  TIME_OVER,
  within,
} from "../../tool/mod.ts";
import { type CachedTool, checkTools, findResult } from "./cached_tool.ts";
import { StoredResults } from "./stored_results.ts";

/** Options for {@linkcode cacheResults}. */
export interface ResultCacheOptions {
  /** The tools whose results are stored, by id. */
  readonly tools: { readonly [id: string]: CachedTool };
  /**
   * Stores the results: any `CallStore`, such as that of `@plue/tools/sqlite`, for several processes. It
   * limits the bytes of all results, and of those of one principal.
   *
   * @default {memoryCallStore()}
   */
  readonly store?: CallStore | undefined;
  /**
   * How long a call waits for the store at most, in milliseconds: once before its tool runs, not
   * longer than half of the time that it has left, and once when it closes.
   *
   * @default {1_000}
   */
  readonly storeTimeoutMs?: number | undefined;
  /** Tells the time; the same as the store's. */
  readonly clock?: Pick<RegistryClock, "timestamp"> | undefined;
}

/** The layer of a cache. */
export interface ResultCache extends Layer {
  /**
   * Invalidates all results with one of the tags, also those of calls that run now. Rejects if the
   * store cannot be reached.
   */
  invalidate(...tags: readonly string[]): Promise<void>;
}

const ACTION = "cache results";
const CHECKS = {
  tools: checkTools,
  store: ((_action, value) => value) as Check<CallStore>,
  storeTimeoutMs: numberFrom(1, MAX_TIMEOUT_MS),
  clock: ((_action, value) => value) as Check<Pick<RegistryClock, "timestamp">>,
};

/**
 * A layer that returns the result of an earlier call: of the same principal, tool, definition, arguments
 * and context. It stores the successes of the tools that are named; calls of others cost nothing. A call
 * is validated and approved as any other; then the tool does not run, and the result has `replayed`. An
 * error of the store goes to `onError` of the dispatcher, and the tool runs. Stage `run`.
 *
 * Not stored are results that were cut, results of tools that require a transaction, and those of
 * arguments or contexts that are not JSON. Callers without a principal share their results. Equal calls
 * that come before the first result is stored run each.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { cacheResults } from "@plue/tools/resilience";
 *
 * let runs = 0;
 * const registry = new ToolRegistry({
 *   tools: [{ name: "stock", description: "Counts.", execute: () => ++runs }],
 * });
 * const cache = cacheResults({ tools: { stock: { ttlMs: 60_000, tags: ["orders"] } } });
 * const dispatcher = new ToolDispatcher(registry, { layers: [cache] });
 *
 * await dispatcher.dispatch({ name: "stock" });
 * const again = await dispatcher.dispatch({ name: "stock" });
 * assert.deepEqual(again.ok && [again.content, again.replayed], [1, true]);
 *
 * await cache.invalidate("orders");
 * const fresh = await dispatcher.dispatch({ name: "stock" });
 * assert.equal(fresh.ok && fresh.content, 2);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is wrong.
 */
export function cacheResults(options: ResultCacheOptions): ResultCache {
  const { tools, store = memoryCallStore(), storeTimeoutMs = 1_000, clock = systemClock } =
    readFields(ACTION, options, CHECKS);
  checkPort(ACTION, "store", store, ["get", "create", "update", "delete", "list"]);
  if (tools === undefined) refuse(ACTION, "tools is missing");
  const results = new StoredResults(store);
  const longestMs = Math.max(0, ...[...tools.values()].map(({ ttlMs }) => ttlMs));

  /** Waits for the store. `undefined` if it fails, or is too slow. */
  const inTime = <T>(call: Call, ms: number, work: Promise<T>): Promise<T | undefined> =>
    within(call.settings.clock, Math.min(storeTimeoutMs, ms), work).then((answer) =>
      answer === TIME_OVER ? refuse(ACTION, "the store took too long") : answer
    ).catch((error) => void call.report("internal", error));

  return {
    name: "result-cache",
    stage: "run",
    for({ id, requiresTransaction }) {
      const cached = tools.get(id);
      if (cached === undefined || requiresTransaction) return undefined;
      return async (call, next) => {
        const search = inTime(
          call,
          call.deadline.remainingMs / 2,
          findResult(results, call, cached),
        );
        const found = await call.wait("looking for an earlier result", search);
        if (found !== undefined && "content" in found) {
          const { content, blocks } = found;
          return { ok: true, content, ...(blocks && { blocks }), durationMs: 0, replayed: true };
        }
        const result = await next(call);
        if (found === undefined || !result.ok || result.truncated || result.replayed) return result;
        // As a cleanup: an interruption of the call must not reach a result that is there.
        call.defer(async () => {
          const expiresAt = clock.timestamp() + cached.ttlMs;
          await inTime(call, storeTimeoutMs, results.put(found, result, expiresAt));
        });
        return result;
      };
    },
    async invalidate(...names) {
      // No result that is stored now lives longer.
      const expiresAt = clock.timestamp() + longestMs;
      for (const name of names) await results.invalidate(name, expiresAt);
    },
  };
}
