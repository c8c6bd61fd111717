/**
 * A cache of results, in a call store.
 *
 * @module
 */

import type { CallInfo, ToolHooks } from "../../execute/mod.ts";
import {
  type CallStore,
  definitionDigest,
  MAX_STORED_BYTES,
  memoryCallStore,
  ownerDigest,
  type StoredValue,
} from "../../execute/durable/mod.ts";
import {
  callHook,
  canonicalJson,
  type Check,
  checkFunction,
  checkPort,
  copyJson,
  isFunction,
  isListOf,
  isObject,
  isWord,
  MAX_TIMEOUT_MS,
  must,
  NO_LOG,
  numberFrom,
  readFields,
  refuse,
  type RegistryClock,
  systemClock,
  TIME_OVER,
  type ToolResult,
  within,
} from "../../tool/mod.ts";

/** How the results of a tool are kept. */
export interface CachedTool {
  /** For how long, in milliseconds. */
  readonly ttlMs: number;
  /** What `invalidate` knows them by, such as `["orders"]`; a function is given the call. */
  readonly tags?: readonly string[] | ((call: CallInfo) => readonly string[]) | undefined;
  /**
   * What the result depends on besides the principal, the arguments and the context: the session, a
   * service of the call, or the tool's configuration, if others of the same store have another.
   */
  readonly vary?: ((call: CallInfo) => string) | undefined;
}

/** Options for {@linkcode cacheResults}. */
export interface ResultCacheOptions {
  /** The tools whose results are kept, by id. */
  readonly tools: { readonly [id: string]: CachedTool };
  /**
   * Keeps the results: any `CallStore`, such as that of `@plue/tools/sqlite`, for several processes. It
   * bounds what they weigh, and what those of one principal weigh.
   *
   * @default {memoryCallStore()}
   */
  readonly store?: CallStore | undefined;
  /**
   * How long a call waits for the store at most, in milliseconds: once before its tool runs and once
   * after it, and each time not longer than half of the time that it has left.
   *
   * @default {1_000}
   */
  readonly storeTimeoutMs?: number | undefined;
  /** Is told what the store throws, or that it took too long. Calls go on without the cache then. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Tells the time. */
  readonly clock?: Pick<RegistryClock, "timestamp"> | undefined;
}

/** A cache, which is a hook. */
export interface ResultCache extends ToolHooks {
  /**
   * Forgets all results with one of the tags, also those of calls that run now. Rejects if the store
   * cannot be reached.
   */
  invalidate(...tags: readonly string[]): Promise<void>;
}

const ACTION = "cache results";
const ENCODER = new TextEncoder();

const isTags = (value: unknown): value is readonly string[] => isListOf(value, isWord);
const checkTags: Check<NonNullable<CachedTool["tags"]>> = must(
  "a list of words, or a function",
  (value): value is NonNullable<CachedTool["tags"]> => isTags(value) || isFunction(value),
);

/** A result in the store. */
interface KeptResult {
  readonly content: unknown;
  readonly blocks?: true;
  /** What each of its tags was when the call began. */
  readonly tags: readonly (readonly [key: string, generation: string])[];
}

/** Where the result of a call is kept; empty where it is not. */
interface Place {
  readonly key?: string;
  readonly revision?: number | undefined;
  readonly tags?: KeptResult["tags"];
}

/**
 * Answers calls with the result of an earlier one: of the same principal, tool, definition, arguments
 * and context. Only successes of the tools that are named are kept. The call is validated and approved
 * as any other; then the tool does not run, and the result says `replayed`.
 *
 * Not kept are results that were cut, results of tools that require a transaction, and those of
 * arguments or contexts that are not JSON. Callers without a principal share their results. Equal calls
 * that come before the first result is there run each.
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
 * const dispatcher = new ToolDispatcher(registry, { hooks: cache });
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
  const {
    tools: given,
    store = memoryCallStore(),
    storeTimeoutMs = 1_000,
    onError = () => {},
    clock = systemClock,
  } = readFields(ACTION, options, {
    tools: must("an object", isObject) as Check<ResultCacheOptions["tools"]>,
    store: ((_action, value) => value) as Check<CallStore>,
    storeTimeoutMs: numberFrom(1, MAX_TIMEOUT_MS),
    onError: checkFunction as Check<(error: unknown) => void>,
    clock: ((_action, value) => value) as Check<Pick<RegistryClock, "timestamp">>,
  });
  checkPort(ACTION, "store", store, ["get", "create", "update", "delete", "list"]);
  if (given === undefined) refuse(ACTION, "tools is missing");
  const tools = new Map(Object.entries(given).map(([id, tool]) => [id, readTool(id, tool)]));
  const longestMs = Math.max(0, ...[...tools.values()].map(({ ttlMs }) => ttlMs));
  const log = (error: unknown): void => callHook(() => onError(error), NO_LOG);

  const inTime = async <T>({ remainingMs }: CallInfo, work: Promise<T>): Promise<T> => {
    const answer = await within(systemClock, Math.min(storeTimeoutMs, remainingMs / 2), work);
    return answer === TIME_OVER ? refuse(ACTION, "the store took too long") : answer;
  };

  /** What a tag is now: another word after each `invalidate`. */
  const generationOf = async (key: string): Promise<string> => {
    const stored = await store.get(key);
    return stored === undefined ? "" : textOf(stored);
  };

  const find = async (
    stored: StoredValue | undefined,
  ): Promise<KeptResult | undefined> => {
    if (stored === undefined) return undefined;
    const kept: KeptResult = JSON.parse(textOf(stored));
    for (const [tag, generation] of kept.tags) {
      if (await generationOf(tag) !== generation) return undefined;
    }
    return kept;
  };

  /** What is kept for a call, or where its result goes. */
  const look = async (call: CallInfo, cached: CachedTool): Promise<Place | KeptResult> => {
    const key = await keyOf(call, cached);
    if (key === undefined) return {};
    const stored = await store.get(key);
    const kept = await find(stored);
    if (kept !== undefined) return kept;
    // Before the tool runs: what is invalidated meanwhile is not kept.
    const tags = await Promise.all(
      tagsOf(call, cached).map(async (tag) => {
        const key = await tagKey(tag);
        return [key, await generationOf(key)] as const;
      }),
    );
    return { key, revision: stored?.revision, tags };
  };

  return {
    name: "cacheResults",
    async around(call, run) {
      const cached = call.tool.requiresTransaction ? undefined : tools.get(call.tool.id);
      if (cached === undefined) return await run();
      const found = await inTime(call, look(call, cached)).catch((error): Place => {
        log(error);
        return {};
      });
      if ("content" in found) {
        const { content, blocks } = found;
        return { ok: true, content, ...(blocks && { blocks }), durationMs: 0, replayed: true };
      }
      const { key, revision, tags } = found;
      const result = await run();
      if (key === undefined || !mayBeKept(result)) return result;
      try {
        const { content, blocks } = result;
        const value = ENCODER.encode(JSON.stringify({ content, blocks, tags }));
        if (value.byteLength > MAX_STORED_BYTES) return result;
        const life = { expiresAt: clock.timestamp() + cached.ttlMs };
        // Where another call was faster, its result is kept.
        await inTime<unknown>(
          call,
          revision === undefined
            ? store.create(key, value, life)
            : store.update(key, value, revision, life),
        );
      } catch (error) {
        log(error);
      }
      return result;
    },
    async invalidate(...tags) {
      for (const tag of tags) {
        const key = await tagKey(tag);
        const value = ENCODER.encode(crypto.randomUUID());
        // No result that is kept now lives longer.
        const life = { expiresAt: clock.timestamp() + longestMs };
        for (;;) {
          const stored = await store.get(key);
          const written = stored === undefined
            ? await store.create(key, value, life)
            : await store.update(key, value, stored.revision, life);
          if (written !== undefined) break;
        }
      }
    },
  };
}

function readTool(id: string, tool: CachedTool): CachedTool & { readonly ttlMs: number } {
  const { ttlMs, tags, vary } = readFields(ACTION, tool, {
    ttlMs: numberFrom(1, Number.MAX_SAFE_INTEGER),
    tags: checkTags,
    vary: checkFunction as Check<(call: CallInfo) => string>,
  }, (field) => `${field} of "${id}"`);
  if (ttlMs === undefined) refuse(ACTION, `ttlMs of "${id}" is missing`);
  return { ttlMs, tags, vary };
}

function tagsOf(call: CallInfo, { tags = [] }: CachedTool): readonly string[] {
  const said = typeof tags === "function" ? tags(call) : tags;
  if (!isTags(said)) refuse(ACTION, `the tags of "${call.tool.id}" must be a list of words`);
  return said;
}

/** Where a call's result is kept; `undefined` where what it depends on is not JSON. */
async function keyOf(call: CallInfo, { vary }: CachedTool): Promise<string | undefined> {
  const { tool, principal, arguments: args, context = null } = call;
  let depends: unknown;
  try {
    depends = copyJson([args, context], "what a result depends on");
  } catch {
    return undefined;
  }
  const varied: unknown = vary === undefined ? "" : vary(call);
  // Anything else, such as a promise, would be the same for all calls.
  if (typeof varied !== "string") refuse(ACTION, `vary of "${tool.id}" must answer a text`);
  const text = canonicalJson([tool.id, await definitionDigest(tool), depends, varied]);
  return `result.${await ownerDigest(principal)}.${await ownerDigest(text)}`;
}

async function tagKey(tag: string): Promise<string> {
  return `tag.shared.${await ownerDigest(tag)}`;
}

function mayBeKept(result: ToolResult): result is ToolResult & { readonly ok: true } {
  return result.ok && result.truncated === undefined && result.replayed === undefined;
}

function textOf({ value }: StoredValue): string {
  return new TextDecoder().decode(value);
}
