/**
 * Rate limits that all processes share, in a call store. A process leases several permits in one step, so
 * that most requests need no server.
 *
 * @module
 */

import { type CallStore, ownerDigest } from "../../execute/durable/mod.ts";
import { type RegistryClock, systemClock } from "../../tool/mod.ts";
import {
  BoundedMap,
  type RateLimitCount,
  type RateLimitStore,
  type RateLimitWindow,
  takePermits,
} from "../http/mod.ts";

/** The permits of this process. */
interface Lease {
  /** The number of permits that all processes have taken in this window. */
  readonly count: number;
  /** The end of the window, in milliseconds since 1970. */
  readonly endsAt: number;
  /** The number of permits that this process has not used. */
  left: number;
}

/** The maximum number of permits of a lease. */
const MAX_LEASE = 50;
/** A lease is at most this part of the free permits, so that other processes get some. */
const PART = 8;
/** How many keys a process has permits of. Those of a key that is pushed out are lost. */
const MAX_KEYS = 10_000;

/**
 * Counts requests in fixed windows over all processes that share a store, for the option
 * `rateLimit.store`. The limit is never exceeded. The unused permits of a process that ends are lost: at
 * most 50, or an eighth of the free ones.
 *
 * @example Usage
 * ```ts
 * import { ToolRegistry } from "@plue/tools";
 * import { memoryCallStore } from "@plue/tools/calls";
 * import { createToolHandler } from "@plue/tools/hono";
 * import { natsRateLimitStore } from "@plue/tools/nats";
 *
 * // With a server: await natsCallStore(connection)
 * const store = natsRateLimitStore(memoryCallStore());
 * createToolHandler(new ToolRegistry(), { rateLimit: { limit: 1_000, windowMs: 60_000, store } });
 * ```
 *
 * @param store The shared store, from `natsCallStore`.
 * @param clock The source of the time.
 */
export function natsRateLimitStore(
  store: CallStore,
  clock: Pick<RegistryClock, "timestamp"> = systemClock,
): RateLimitStore {
  const leases = new BoundedMap<string, Lease>({ maxEntries: MAX_KEYS });
  /** The last operation of each key: operations of a key are serialized. */
  const turns = new Map<string, Promise<unknown>>();

  /** Takes permits out of the store: more than are wanted now, if many are free. */
  async function lease(key: string, amount: number, window: RateLimitWindow): Promise<Lease> {
    const { taken, ...rest } = await takePermits(
      store,
      key,
      window,
      (free) => Math.max(amount, Math.min(MAX_LEASE, Math.floor(free / PART))),
      clock,
    );
    return { ...rest, left: taken };
  }

  async function take(
    key: string,
    amount: number,
    window: RateLimitWindow,
  ): Promise<RateLimitCount> {
    const now = clock.timestamp();
    let own = leases.get(key);
    if (own !== undefined && own.endsAt <= now) own = undefined;
    const rest = own?.left ?? 0;
    // Counts only rise in a window, so a lease that failed would fail again.
    const isFull = own !== undefined && amount - rest > window.limit - own.count;
    if (own === undefined || (rest < amount && amount > 0 && !isFull)) {
      const more = await lease(key, amount - rest, window);
      // Permits are taken only if there are enough.
      own = { ...more, left: rest + more.left };
      leases.set(key, own);
    }
    const isTaken = own.left >= amount;
    if (isTaken) own.left -= amount;
    const resetMs = Math.max(0, own.endsAt - clock.timestamp());
    return { count: own.count - own.left + (isTaken ? 0 : amount), resetMs };
  }

  return {
    async take(of, amount, window) {
      const key = `lease.${await ownerDigest(of)}.${window.windowMs}`;
      const before = turns.get(key);
      const mine = (before ?? Promise.resolve()).catch(() => {}).then(() =>
        take(key, amount, window)
      );
      turns.set(key, mine);
      try {
        return await mine;
      } finally {
        if (turns.get(key) === mine) turns.delete(key);
      }
    },
  };
}
