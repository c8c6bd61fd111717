/** A cache of results, in a call store. */

import * as durable from "../../execute/durable/mod.ts";
import { StoredRecords } from "../../execute/durable/mod.ts";
import { type Call, type CallInfo, CallView, type Layer } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";

/** The settings for the results of a tool. */
export interface CachedTool {
  /** The lifetime of a result, in milliseconds. */
  readonly ttlMs: number;
  /** The tags of a result for `invalidate`, such as `["orders"]`, or a function of the call. */
  readonly tags?: readonly string[] | ((call: CallInfo) => readonly string[]) | undefined;
}

/** Options for {@linkcode cacheResults}. */
export interface ResultCacheOptions {
  /** The tools whose results are stored, by id. */
  readonly tools: { readonly [id: string]: CachedTool };
  /**
   * Stores the results: any `CallStore`, such as `@plue/tools/sqlite`, for several processes. It
   * limits the bytes of all results, and of one principal's.
   *
   * @default {memoryCallStore()}
   */
  readonly store?: durable.CallStore | undefined;
  /**
   * The maximum time that a call waits for the store, in milliseconds. A call waits before the tool
   * runs, for at most half of the call's remaining time, and again at the end of the call.
   *
   * @default {1_000}
   */
  readonly storeTimeoutMs?: number | undefined;
  /** The clock of the store. */
  readonly clock?: Pick<check.RegistryClock, "timestamp"> | undefined;
}

/** The layer of a cache. */
export interface ResultCache extends Layer {
  /** Invalidates results with one of the tags, even of running calls. Rejects without the store. */
  invalidate(...tags: readonly string[]): Promise<void>;
}

const ACTION = "cache results";
const isTags = (value: unknown): value is readonly string[] => check.isListOf(value, check.isWord);

const TOOL_CHECKS = {
  ttlMs: check.numberFrom(1, Number.MAX_SAFE_INTEGER),
  tags: check.createCheck(
    "a list of words, or a function",
    (value): value is NonNullable<CachedTool["tags"]> => isTags(value) || check.isFunction(value),
  ),
};

const checkTools: check.Check<ReadonlyMap<string, CachedTool>> = (action, tools, pointer) => {
  if (!check.isObject(tools)) check.fail(action, `${pointer} must be an object`);
  return new Map(
    Object.entries(tools).map(([id, tool]) => {
      const pointerTo = (field: string): string => `${field} of "${id}"`;
      const { ttlMs, ...rest } = check.readFields(
        action,
        tool as CachedTool,
        TOOL_CHECKS,
        pointerTo,
      );
      if (ttlMs === undefined) check.fail(action, `${pointerTo("ttlMs")} is missing`);
      return [id, { ttlMs, ...rest }];
    }),
  );
};

const CHECKS = {
  tools: checkTools,
  store: check.anyValue as check.Check<durable.CallStore>,
  storeTimeoutMs: check.numberFrom(1, check.MAX_TIMEOUT_MS),
  clock: check.anyValue as check.Check<Pick<check.RegistryClock, "timestamp">>,
};

/**
 * Creates a layer that returns the result of an earlier call with the same principal, tool,
 * definition, arguments and context. It stores the successful results of the named tools; calls of
 * other tools cost nothing. A call is validated and approved like any other. If there is a stored
 * result, the tool does not run, and the result has `replayed`. If the store fails, the tool runs,
 * and `onError` of the dispatcher receives the error. Stage `run`.
 *
 * Truncated results, results of tools that require a transaction, and results with arguments or
 * contexts other than JSON are not stored. Callers without a principal share their results; for
 * them, results of tools with `credentials` are not stored. Do not name tools whose result depends on
 * anything else, such as the session. Equal calls that begin before the first result is stored all
 * run.
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
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function cacheResults(options: ResultCacheOptions): ResultCache {
  const {
    tools,
    store = durable.openMemoryValues(),
    storeTimeoutMs = 1_000,
    clock = check.systemClock,
  } = check.readFields(ACTION, options, CHECKS);
  check.checkPort(ACTION, "store", store, ["get", "create", "update"]);
  if (tools === undefined) check.fail(ACTION, "tools is missing");
  const results = new StoredResults(store);
  const longestMs = Math.max(0, ...[...tools.values()].map(({ ttlMs }) => ttlMs));

  /** Waits for the store. Resolves to `undefined` if the store fails, or is too slow. */
  const inTime = <T>(call: Call, ms: number, work: Promise<T>): Promise<T | undefined> =>
    check.within(call.settings.clock, Math.min(storeTimeoutMs, ms), work).then((answer) =>
      answer === check.TIME_OVER ? check.fail(ACTION, "the store took too long") : answer
    ).catch((error) => void call.report("internal", error));

  return {
    name: "result-cache",
    stage: "run",
    for({ id, requiresTransaction, credentials }) {
      const cached = tools.get(id);
      if (cached === undefined || requiresTransaction) return undefined;
      return async (call, next) => {
        if (credentials !== undefined && !call.options.principal) return await next(call);
        const search = inTime(call, call.deadline.remainingMs / 2, results.find(call, cached));
        const found = await call.wait("looking for an earlier result", search);
        if (found !== undefined && "content" in found) {
          const { content, blocks } = found;
          return { ok: true, content, ...(blocks && { blocks }), durationMs: 0, replayed: true };
        }
        const result = await next(call);
        if (found === undefined || !result.ok || result.truncated || result.replayed) return result;
        // Runs as a cleanup, because the result of the call is final then.
        call.defer(async () => {
          const expiresAt = clock.timestamp() + cached.ttlMs;
          await inTime(call, storeTimeoutMs, results.put(found, result, expiresAt));
        });
        return result;
      };
    },
    async invalidate(...names) {
      // The new generation must outlive every result that is stored now.
      const expiresAt = clock.timestamp() + longestMs;
      for (const name of names) await results.invalidate(name, expiresAt);
    },
  };
}

/** The key and the generation of each tag. `invalidate` changes the generation. */
type Generations = readonly (readonly [key: string, generation: string])[];

interface StoredResult extends Pick<check.ToolSuccess, "content" | "blocks"> {
  readonly tags: Generations;
  readonly expiresAt: number;
}

interface Slot {
  readonly key: string;
  readonly revision: number | undefined;
  readonly tags: Generations;
}

class StoredResults {
  readonly #results: StoredRecords<StoredResult>;
  readonly #generations: StoredRecords<{ readonly generation: string; readonly expiresAt: number }>;

  constructor(store: Pick<durable.CallStore, "get" | "create" | "update">) {
    this.#results = new StoredRecords(store, ({ expiresAt }) => expiresAt);
    this.#generations = new StoredRecords(store, ({ expiresAt }) => expiresAt);
  }

  /**
   * Finds the stored result of an equal call, or the key to store this result; `undefined` if the
   * arguments or the context are not JSON. Rejects if functions of the host return invalid values.
   */
  async find(
    call: Call,
    { tags: tagOption = [] }: CachedTool,
  ): Promise<StoredResult | Slot | undefined> {
    const { options, settings, tool } = call;
    const info = new CallView(call);
    const { principal, arguments: args, context = null } = info;
    const names = typeof tagOption === "function" ? tagOption(info) : tagOption;
    if (!isTags(names)) throw new TypeError(`The tags of "${tool.id}" must be a list of words`);
    const inputs = check.attemptOr(
      undefined,
      () => check.copyJson([args, context], "the inputs of a result"),
    );
    if (inputs === undefined) return undefined;
    const text = check.canonicalJson([tool.id, await durable.definitionDigest(tool), inputs]);
    const key = `result.${await durable.ownerDigest(principal)}.${await durable.ownerDigest(text)}`;
    const stored = await this.#results.store.get(key);
    // Reads the tags before the tool runs, so that `invalidate` also affects this result.
    const tags = await Promise.all(names.map(async (name) => {
      const tag = await tagKey(name);
      return [tag, (await this.#generations.read(tag))?.record.generation ?? ""] as const;
    }));
    const maxBytes = Math.min(options.maxOutputBytes ?? Infinity, settings.maxOutputBytes);
    if (stored !== undefined && stored.value.byteLength <= maxBytes) {
      const result = this.#results.decode(stored.value, key);
      if (check.jsonEqual(result.tags, tags)) return result;
    }
    return { key, revision: stored?.revision, tags };
  }

  async put(
    { key, revision, tags }: Slot,
    { content, blocks }: check.ToolSuccess,
    expiresAt: number,
  ): Promise<void> {
    const result: StoredResult = { content, ...(blocks && { blocks }), tags, expiresAt };
    const { byteLength } = this.#results.encode(result, key);
    if (byteLength <= durable.MAX_STORED_BYTES) await this.#results.write(key, result, revision);
  }

  async invalidate(name: string, expiresAt: number): Promise<void> {
    const changed = { generation: crypto.randomUUID(), expiresAt };
    await this.#generations.change(await tagKey(name), () => changed);
  }
}

async function tagKey(name: string): Promise<string> {
  return `tag.shared.${await durable.ownerDigest(name)}`;
}
