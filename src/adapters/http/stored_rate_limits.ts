/**
 * Counts of requests in a call store.
 *
 * @module
 */

import { type CallStore, ownerDigest } from "../../execute/durable/mod.ts";
import { type RegistryClock, systemClock } from "../../tool/mod.ts";
import type { RateLimitStore } from "./rate_limit.ts";

interface KeptWindow {
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly endsAt: number;
}

/** How often a count is tried while others count. */
const MAX_TRIES = 32;

/**
 * Counts in fixed windows, in a {@linkcode CallStore}: for the option `rateLimit.store`, where the
 * counts outlive the process, or several processes count together.
 *
 * @example Usage
 * ```ts
 * import { ToolRegistry } from "@plue/tools";
 * import { memoryCallStore } from "@plue/tools/calls";
 * import { createToolHandler, storedRateLimits } from "@plue/tools/hono";
 *
 * createToolHandler(new ToolRegistry({ tools: [] }), {
 *   rateLimit: { limit: 100, windowMs: 60_000, store: storedRateLimits(memoryCallStore()) },
 * });
 * ```
 *
 * @param clock Tells the time.
 */
export function storedRateLimits(
  store: CallStore,
  clock: Pick<RegistryClock, "timestamp"> = systemClock,
): RateLimitStore {
  return {
    async take(of, amount, { limit, windowMs }) {
      const key = `rate.${await ownerDigest(of)}.${windowMs}`;
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const now = clock.timestamp();
        const stored = await store.get(key);
        const window: KeptWindow = stored === undefined
          ? { count: 0, endsAt: now + windowMs }
          : JSON.parse(new TextDecoder().decode(stored.value));
        const count = window.count + amount;
        const answer = { count, resetMs: Math.max(0, window.endsAt - now) };
        if (amount === 0 || count > limit) return answer;
        const value = new TextEncoder().encode(JSON.stringify({ ...window, count }));
        const life = { expiresAt: window.endsAt };
        const revision = stored === undefined
          ? await store.create(key, value, life)
          : await store.update(key, value, stored.revision, life);
        if (revision !== undefined) return answer;
      }
      throw new Error("Cannot count a request: others count all the time");
    },
  };
}
