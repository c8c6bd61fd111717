/** Limits the number of concurrent calls. Further calls wait in a bounded queue. */

import { numberFrom, readFields } from "../../tool/mod.ts";
import { MAKE } from "../kernel_options.ts";
import type { Layer } from "../layer.ts";
import { ConcurrencyLimiter, type ConcurrencyLimits } from "../limiter.ts";

export type { ConcurrencyLimits };

const CHECKS = {
  maxConcurrent: numberFrom(1),
  maxConcurrentPerTool: numberFrom(1),
  maxQueued: numberFrom(0),
} satisfies { readonly [Name in keyof ConcurrencyLimits]-?: unknown };

/** The layer of a concurrency limit. */
export interface ConcurrencyLimitLayer extends Layer {
  /** The number of queued calls. */
  readonly queued: number;
}

/**
 * Creates a layer that limits the number of concurrent calls. A slot is released when the call
 * leaves the layer, even if its tool ignores its signal and still runs. Otherwise, one such tool
 * could block the dispatcher forever. The metrics count such tools as abandoned. If the queue is
 * full, further calls fail with `overloaded`. A tool with `callsTools` needs no slot, because its
 * own calls could wait for that slot forever. Stage `run`.
 *
 * @throws {TypeError | RangeError} If a limit is invalid.
 */
export function concurrencyLimit(limits: ConcurrencyLimits = {}): ConcurrencyLimitLayer {
  const valid = readFields(MAKE, limits, CHECKS, (field) => `limits.${field}`);
  const all = { maxConcurrent: Infinity, maxConcurrentPerTool: Infinity, maxQueued: 256, ...valid };
  const limiter = new ConcurrencyLimiter(all);
  const isLimited = Math.min(all.maxConcurrent, all.maxConcurrentPerTool) < Infinity;
  return {
    name: "concurrency-limit",
    stage: "run",
    get queued() {
      return limiter.queued;
    },
    for: (tool) =>
      !isLimited || tool.callsTools ? undefined : async (call, next) => {
        const slot = limiter.acquire(tool.id, call.options.principal);
        const release = typeof slot === "object" ? slot.cancel : () => limiter.release(tool.id);
        try {
          const hasSlot = typeof slot === "object"
            ? await call.wait("waiting for a slot", slot.granted)
            : slot;
          return hasSlot
            ? await next(call)
            : call.fail("overloaded", "too many calls are running and waiting; try again later");
        } finally {
          if (slot !== false) release();
        }
      },
  };
}
