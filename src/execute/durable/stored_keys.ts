/**
 * Idempotency keys in a call store.
 *
 * @module
 */

import { ToolResult } from "../../tool/mod.ts";
import type { KeptKeys } from "../ports.ts";
import { type CallStore, MAX_STORED_BYTES } from "./call_store.ts";
import { digestOf, ownerDigest } from "./digest.ts";

/** A key whose call runs, or has ended with a result. */
interface KeptKey {
  readonly fingerprint: string;
  readonly result?: ToolResult;
}

/** How long a call may run at most, by default. */
const LONGEST_CALL_MS = 3_600_000;

/**
 * Keeps idempotency keys in a store, for the option `idempotency.kept` of a dispatcher: a call with a
 * key runs once, whichever process gets it, and also when the process is started anew.
 *
 * A call whose process died while it ran is not run again while its key lives: whether it has run is
 * not known, and the answer says so.
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
 */
export function storedKeys(store: CallStore): KeptKeys {
  return {
    async claim({ principal, scope, fingerprint, windowMs, now }) {
      const key = `key.${await ownerDigest(principal)}.${await digestOf(scope)}`;
      for (;;) {
        const revision = await store.create(key, bytesOf({ fingerprint }), {
          expiresAt: now + windowMs + LONGEST_CALL_MS,
        });
        if (revision !== undefined) {
          return async (result, keep) => {
            const value = bytesOf({ fingerprint, result });
            if (!keep || value.byteLength > MAX_STORED_BYTES) {
              await store.delete(key, revision);
            } else {
              const expiresAt = now + result.durationMs + windowMs;
              await store.update(key, value, revision, { expiresAt });
            }
          };
        }
        const stored = await store.get(key);
        // The other call has given it back.
        if (stored === undefined) continue;
        const kept: KeptKey = JSON.parse(new TextDecoder().decode(stored.value));
        if (kept.fingerprint !== fingerprint) return "conflict";
        return kept.result ?? ToolResult.error(
          "unavailable",
          "Cannot run the call: one with its idempotency key runs in another process, or was cut " +
            "off and may have run",
        );
      }
    },
  };
}

function bytesOf(key: KeptKey): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(key));
}
