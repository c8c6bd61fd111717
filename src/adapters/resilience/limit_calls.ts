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
} from "../../tool/mod.ts";
import { type RateLimitStore, takerOf, WINDOW_CHECKS } from "../http/mod.ts";

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
  /** How many calls there may be. Calls with wrong arguments count, too. */
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
   * together.
   *
   * @default {new MemoryRateLimitStore()}
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
  limit: numberFrom(0),
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
  const take = takerOf(store === undefined ? {} : { store });
  return {
    name: "limitCalls",
    async before(call) {
      for (const { per, of, limit, tools, index } of read) {
        if (tools !== undefined && !tools.has(call.tool.id)) continue;
        const { count } = await take(keyOf(call, index, per, of), 1, { limit, windowMs });
        if (count > limit) return { refuse: tooMany(limit, per, of) };
      }
      return undefined;
    },
  };
}

function keyOf(
  { principal, sessionId, messageId, tool, arguments: args }: CallInfo,
  index: number,
  per: CallLimit["per"],
  of: NonNullable<CallLimit["of"]>,
): string {
  const key: unknown[] = [index, principal];
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
