/** Idempotency keys in a call store. */

import { noop, ToolResult } from "../../tool/mod.ts";
import type { KeptKeys } from "../ports.ts";
import { type CallStore, checkStore } from "./call_store.ts";
import { digestOf, type LeasedRecord, LeasedRecords, ownerDigest } from "./records.ts";

/** After this time without a renewal, the process of a call counts as dead, in milliseconds. */
const LEASE_MS = 30_000;

/** A key whose call is running, or has ended with a result. */
interface StoredKey extends LeasedRecord {
  readonly fingerprint: string;
  readonly idempotent: boolean;
  readonly result?: ToolResult;
}

/**
 * Stores idempotency keys in a call store, for the option `idempotency.kept` of a dispatcher: a
 * call with a key runs once in all processes, even after a restart.
 *
 * A process renews a lease on the key of each call that it runs. If the process dies, a later call
 * with the key runs the tool again if the tool is `idempotent`. Other tools do not run again while
 * the key exists, because the first call may have taken effect: the later call fails with this
 * reason, and is not retryable.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { memoryCallStore, storedKeys } from "@plue/tools/calls";
 *
 * let runs = 0;
 * const registry = new ToolRegistry({
 *   tools: [{ name: "pay", description: "Pays.", execute: () => ++runs }],
 * });
 * const store = memoryCallStore();
 * const process = () => new ToolDispatcher(registry, { idempotency: { kept: storedKeys(store) } });
 *
 * await process().dispatch({ name: "pay" }, { idempotencyKey: "order-7" });
 * const again = await process().dispatch({ name: "pay" }, { idempotencyKey: "order-7" });
 * assert.equal(again.ok && again.content, 1);
 * ```
 *
 * @throws {TypeError} If the store is invalid.
 */
export function storedKeys(store: CallStore): KeptKeys {
  checkStore("keep keys", store);
  return {
    async claim({ principal, scope, fingerprint, idempotent, windowMs, clock }) {
      const key = `key.${await ownerDigest(principal)}.${await digestOf(scope)}`;
      const records = new LeasedRecords<StoredKey>(
        store,
        ({ heldUntil }) => heldUntil + windowMs,
        clock,
        LEASE_MS,
      );
      const { lease, record } = await records.claim(key, (before, begun) => {
        const isTaken = before !== undefined &&
          (before.fingerprint !== fingerprint || before.result !== undefined ||
            records.isHeld(before) || !before.idempotent);
        return isTaken ? undefined : { fingerprint, idempotent, ...begun };
      }, true);
      if (lease === undefined) {
        if (record?.fingerprint !== fingerprint) return "conflict";
        return record.result ?? (records.isHeld(record) ? RUNS : UNKNOWN);
      }
      // Errors of the store are ignored, because they may be temporary.
      lease.renew(() => {}, noop);
      return async (result, isStored) => {
        await lease.end();
        const end = (result: ToolResult): Promise<boolean> =>
          lease.change((key) => {
            // The lifetime of the result begins now, or at the last renewal of the lease if the clock
            // has been set back since.
            const heldUntil = Math.max(records.now(), key.heldUntil - LEASE_MS);
            return isStored ? { ...key, heldUntil, result } : undefined;
          });
        // If the result cannot be stored, a failure is stored, so that the call does not run again.
        await end(result).catch((error) => {
          if (isStored && error instanceof RangeError) return end(TOO_LARGE);
          throw error;
        });
      };
    },
  };
}

const TOO_LARGE = ToolResult.error(
  "output_too_large",
  "Cannot repeat the result of the call: it has run, and its result was too large to store",
  { ran: "yes" },
);

const RUNS = ToolResult.error(
  "unavailable",
  "Cannot run the call: one with its idempotency key runs in another process; try again later",
  { ran: "yes" },
);

const UNKNOWN = ToolResult.error(
  "unavailable",
  "Cannot run the call: its outcome is unknown. The process of a call with its idempotency key " +
    "ended, and the tool may have run. Find out whether it has; if not, call again with a new key",
  { retryable: false, ran: "unknown" },
);
