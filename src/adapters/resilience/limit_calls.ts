/**
 * Limits on how often a model calls: in a conversation, for one of its messages, for a caller.
 *
 * @module
 */

import type { CallInfo, ToolHooks } from "../../execute/mod.ts";
import {
  canonicalJson,
  type Check,
  fnv1a,
  isListOf,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
  readFields,
  refuse,
  systemClock,
  wholeFrom,
} from "../../tool/mod.ts";
import { type RateLimitStore, type RateLimitWindow, takerOf, WINDOW_CHECKS } from "../http/mod.ts";

/** One limit. */
export interface CallLimit {
  /**
   * In what calls are counted: the conversation (`sessionId`), the model's message (`messageId`, in its
   * conversation), or the principal. Principals are always counted apart; calls that do not say their
   * conversation or their message are counted as those of one.
   */
  readonly per: "session" | "message" | "principal";
  /**
   * What is counted together: all calls, the calls of each tool, or calls of one tool with the same
   * arguments.
   *
   * @default {"tool"}
   */
  readonly of?: "all" | "tool" | "same" | undefined;
  /**
   * How many calls there may be. Calls with wrong arguments count, too; one that waits for answers
   * counts once, when it begins, so give tickets a store: without one they may be used again.
   */
  readonly limit: number;
  /** The ids of the tools that are counted. Absent: all. */
  readonly tools?: readonly string[] | undefined;
}

/** Options for {@linkcode limitCalls}. */
export interface CallLimitOptions {
  /**
   * After how long a count begins anew, in milliseconds.
   *
   * @default {3_600_000}
   */
  readonly windowMs?: number | undefined;
  /**
   * Holds the counts: `storedRateLimits(store)` of `@plue/tools/hono` where several processes count
   * together. Absent: 10,000 counts are kept in this process. Where there are more, the oldest are
   * forgotten of a principal that has more than its share of those of the limit.
   */
  readonly store?: RateLimitStore | undefined;
}

const ACTION = "limit calls";
const PER = { session: "conversation", message: "message", principal: "window of time" } as const;
const OF = ["all", "tool", "same"] as const;

const LIMIT_CHECKS = {
  per: must(
    '"session", "message" or "principal"',
    (value): value is CallLimit["per"] => typeof value === "string" && Object.hasOwn(PER, value),
  ),
  of: must(
    '"all", "tool" or "same"',
    (value): value is NonNullable<CallLimit["of"]> => (OF as readonly unknown[]).includes(value),
  ),
  limit: wholeFrom(0),
  tools: must(
    "a list of ids",
    (value): value is readonly string[] =>
      isListOf(value, (id): id is string => typeof id === "string"),
  ),
} satisfies { readonly [Field in keyof CallLimit]-?: Check };

/**
 * Refuses calls that are too many, with a sentence that the model can act on. A model that calls the
 * same tool with the same arguments again and again gets no further by it.
 *
 * The sessions and messages are those that the caller names: over HTTP a client chooses them, so these
 * limits guide models and do not bind clients. `rateLimit` of the HTTP handler does, and so does
 * `per: "principal"`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { limitCalls } from "@plue/tools/resilience";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "search", description: "Searches.", execute: () => [] }],
 * });
 * const dispatcher = new ToolDispatcher(registry, {
 *   hooks: limitCalls([
 *     { per: "session", of: "tool", limit: 20 },
 *     { per: "session", of: "same", limit: 1 },
 *   ]),
 * });
 *
 * await dispatcher.dispatch({ name: "search" }, { sessionId: "s1" });
 * const again = await dispatcher.dispatch({ name: "search" }, { sessionId: "s1" });
 * assert.equal(!again.ok && again.error.code, "denied");
 * assert((await dispatcher.dispatch({ name: "search" }, { sessionId: "s2" })).ok);
 * ```
 *
 * @throws {TypeError | RangeError} If a limit or an option is wrong.
 */
export function limitCalls(
  limits: readonly CallLimit[],
  options: CallLimitOptions = {},
): ToolHooks {
  if (!Array.isArray(limits)) refuse(ACTION, "the limits must be a list");
  const read = limits.map((given: CallLimit, index) => {
    const place = (field: string): string => `/${index}/${field}`;
    const { per, of = "tool", limit, tools } = readFields(ACTION, given, LIMIT_CHECKS, place);
    if (per === undefined) refuse(ACTION, `${place("per")} is missing`);
    if (limit === undefined) refuse(ACTION, `${place("limit")} is missing`);
    return { per, of, limit, tools: tools && new Set(tools), index };
  });
  const { windowMs = 3_600_000, store } = readFields(ACTION, options, {
    windowMs: numberFrom(1, MAX_TIMEOUT_MS),
    store: WINDOW_CHECKS.store as Check<RateLimitStore>,
  });
  const counts = new MemoryCounts();
  const stored = store && takerOf({ store });
  return {
    name: "limitCalls",
    async before(call) {
      // It was counted when it began.
      if (call.resumed) return undefined;
      for (const { per, of, limit, tools, index } of read) {
        if (tools !== undefined && !tools.has(call.tool.id)) continue;
        const owner = JSON.stringify([index, call.principal]);
        const key = keyOf(call, per, of);
        const window = { limit, windowMs };
        const count = stored === undefined
          ? counts.take(owner, key, window)
          : (await stored(owner + key, 1, window)).count;
        if (count > limit) return { refuse: tooMany(limit, per, of) };
      }
      return undefined;
    },
  };
}

interface Window {
  count: number;
  readonly endsAt: number;
}

/** How many windows are kept in this process. */
const MAX_WINDOWS = 10_000;

/**
 * Counts in fixed windows. A caller names its sessions as it likes, so it must not push out the windows
 * of others by that: each owner, a limit and a principal, has a share.
 */
class MemoryCounts {
  readonly #owners = new Map<string, Map<string, Window>>();
  #size = 0;

  /** Counts a call; the answer is above the limit where that is one too many. */
  take(owner: string, key: string, { limit, windowMs }: RateLimitWindow): number {
    const now = systemClock.now();
    const window = this.#owners.get(owner)?.get(key);
    if (window !== undefined && window.endsAt > now) {
      return window.count < limit ? ++window.count : limit + 1;
    }
    if (window !== undefined) this.#drop(owner, key);
    if (this.#size >= MAX_WINDOWS) this.#makeRoom(owner);
    let own = this.#owners.get(owner);
    if (own === undefined) this.#owners.set(owner, own = new Map());
    own.set(key, { count: Math.min(1, limit), endsAt: now + windowMs });
    this.#size++;
    return 1;
  }

  /** Drops the oldest window of the owner if it has its share, else of one that has more than that. */
  #makeRoom(owner: string): void {
    const own = this.#owners.get(owner);
    const share = MAX_WINDOWS / (this.#owners.size + (own === undefined ? 1 : 0));
    for (
      const [from, windows] of own && own.size >= share ? [[owner, own] as const] : this.#owners
    ) {
      const [oldest] = windows.keys();
      if (windows.size >= share && oldest !== undefined) return this.#drop(from, oldest);
    }
  }

  #drop(owner: string, key: string): void {
    const own = this.#owners.get(owner);
    if (own?.delete(key)) this.#size--;
    if (own?.size === 0) this.#owners.delete(owner);
  }
}

/** What is counted together of a limit and a principal. */
function keyOf(
  { sessionId, messageId, tool, arguments: args }: CallInfo,
  per: CallLimit["per"],
  of: NonNullable<CallLimit["of"]>,
): string {
  const key: unknown[] = [];
  if (per !== "principal") key.push(sessionId);
  if (per === "message") key.push(messageId);
  if (of !== "all") key.push(tool.id);
  if (of === "same") {
    const text = canonicalJson(args);
    key.push(text.length, fnv1a(text), fnv1a(text, 0x9e3779b9, 0x85ebca6b));
  }
  return JSON.stringify(key);
}

function tooMany(limit: number, per: CallLimit["per"], of: CallLimit["of"]): string {
  const what = {
    all: "tools may be called",
    tool: "it may be called",
    same: "it may be called with the same arguments",
  }[of ?? "tool"];
  const times = limit === 1 ? "once" : `${limit} times`;
  return `${what} ${times} in a ${
    PER[per]
  }, which is used up; go on with the results that there are`;
}
