/** Limits the number of a model's calls: per conversation, per message or per caller. */

import { type CallInfo, CallView, fingerprintOf, type Layer } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, isListOf, isWord } from "../../tool/mod.ts";
import { type RateLimitStore, WindowCounts } from "../http/mod.ts";

/** One limit. */
export interface CallLimit {
  /**
   * The scope of the count: the conversation (`sessionId`), the model's message (`messageId`, in
   * its conversation), or a window of time. Principals are always counted separately; calls without
   * a conversation or message are counted together.
   */
  readonly per: "session" | "message" | "principal";
  /**
   * The calls that are counted together: all calls, the calls of each tool, or calls of one tool
   * with the same arguments.
   *
   * @default {"tool"}
   */
  readonly of?: "all" | "tool" | "same" | undefined;
  /**
   * The maximum number of calls. Calls with invalid arguments count, too. A suspended call counts
   * once, at its start, so use tickets with a store: other tickets can be used repeatedly.
   */
  readonly limit: number;
  /** The ids of the counted tools. By default, all tools are counted. */
  readonly tools?: readonly string[] | undefined;
}

/** Options for {@linkcode limitCalls}. */
export interface CallLimitOptions {
  /** The milliseconds of a window, after which its count begins at 0. @default {3_600_000} */
  readonly windowMs?: number | undefined;
  /**
   * Stores the counts. If several processes count together, use `storedRateLimits(store)` of
   * `@plue/tools/hono`. By default, this process stores up to 10,000 counts. A further count evicts
   * the oldest count of a principal that exceeds its quota, preferably a count below its limit.
   */
  readonly store?: RateLimitStore | undefined;
}

const ACTION = "limit calls";
const PER = { session: "conversation", message: "message", principal: "window of time" };
const OF = {
  all: "tools may be called",
  tool: "this tool may be called",
  same: "this tool may be called with the same arguments",
};

const CHECKS = {
  per: check.oneOf(["session", "message", "principal"] as const),
  of: check.oneOf(["all", "tool", "same"] as const),
  limit: check.wholeFrom(0),
  tools: check.createCheck("a list of ids", (value) => isListOf(value, isWord)),
} satisfies { readonly [Field in keyof CallLimit]-?: check.Check };

/**
 * Creates a layer that fails the calls beyond a limit with `denied` and a message for the model.
 * Calls of tools without a limit cost nothing. Stage `input`.
 *
 * Over HTTP, a client chooses the ids of sessions and messages, so limits per session or message only
 * guide models. To limit clients, use `per: "principal"`, or `rateLimit` of the HTTP handler.
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
 * const limits = limitCalls([{ per: "session", of: "same", limit: 1 }]);
 * const dispatcher = new ToolDispatcher(registry, { layers: [limits] });
 *
 * await dispatcher.dispatch({ name: "search" }, { sessionId: "s1" });
 * const again = await dispatcher.dispatch({ name: "search" }, { sessionId: "s1" });
 * assert.equal(!again.ok && again.error.code, "denied");
 * assert((await dispatcher.dispatch({ name: "search" }, { sessionId: "s2" })).ok);
 * ```
 *
 * @throws {TypeError | RangeError} If a limit or an option is invalid.
 */
export function limitCalls(limits: readonly CallLimit[], options: CallLimitOptions = {}): Layer {
  if (!Array.isArray(limits)) fail(ACTION, "the limits must be a list");
  const rules = limits.map((rule: CallLimit, index) => {
    const pointer = (field: string): string => `/${index}/${field}`;
    const { per, of = "tool", limit, tools } = check.readFields(ACTION, rule, CHECKS, pointer);
    if (per === undefined) fail(ACTION, `${pointer("per")} is missing`);
    if (limit === undefined) fail(ACTION, `${pointer("limit")} is missing`);
    const times = limit === 1 ? "once" : `${limit} times`;
    const problem = `${OF[of]} only ${times} in a ${
      PER[per]
    }; continue with the results that you have`;
    return { per, of, limit, tools, index, problem };
  });
  const { windowMs = 3_600_000, store } = check.readFields(ACTION, options, {
    windowMs: check.numberFrom(1, check.MAX_TIMEOUT_MS),
    store: check.anyValue as check.Check<RateLimitStore>,
  });
  check.checkPort(ACTION, "store", store, ["take"]);
  const counts = new WindowCounts();
  return {
    name: "call-limits",
    stage: "input",
    for({ id }) {
      const applied = rules.filter(({ tools }) => tools?.includes(id) ?? true);
      return applied.length === 0 ? undefined : async (call, next) => {
        const info = new CallView(call);
        // A resumed call was counted at its start.
        for (const { per, of, limit, index, problem } of info.resumed ? [] : applied) {
          const owner = JSON.stringify([index, info.principal]);
          const key = countKey(info, per, of);
          const window = { limit, windowMs };
          const { count } = store === undefined
            ? counts.take(owner, key, 1, window, call.settings.clock.now())
            : await call.wait(
              "counting the caller's calls",
              Promise.resolve(store.take(owner + key, 1, window)),
            );
          if (!(count >= 0)) fail(ACTION, "the store must return a count");
          if (count > limit) return call.fail("denied", problem);
        }
        return await next(call);
      };
    },
  };
}

function countKey(
  { sessionId, messageId, tool, arguments: args }: CallInfo,
  per: string,
  of: string,
): string {
  const key: unknown[] = [];
  if (per !== "principal") key.push(sessionId);
  if (per === "message") key.push(messageId);
  if (of !== "all") key.push(tool.id);
  if (of === "same") key.push(fingerprintOf(args));
  return JSON.stringify(key);
}
