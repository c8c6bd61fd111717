/**
 * Idempotency keys in a call store.
 *
 * @module
 */

import { type Clock, numberFrom, refuseOthers, ToolResult } from "../../tool/mod.ts";
import type { KeptKeys } from "../ports.ts";
import { type CallStore, checkStore, MAX_STORED_BYTES, type StoredValue } from "./call_store.ts";
import { base64url, digestOf, ownerDigest } from "./digest.ts";

/** Options for {@linkcode storedKeys}. */
export interface StoredKeysOptions {
  /**
   * The duration of the lease of a running call's key, in milliseconds. After that the process is
   * known to be dead.
   *
   * @default {30_000}
   */
  readonly leaseMs?: number;
}

/** A key whose call runs, or has ended with a result. */
interface KeptKey {
  readonly fingerprint: string;
  readonly idempotent: boolean;
  /** Names the run that holds the key. */
  readonly holder: string;
  /** Until when, in milliseconds since 1970. */
  readonly heldUntil: number;
  readonly result?: ToolResult;
}

/**
 * Keeps idempotency keys in a store, for the option `idempotency.kept` of a dispatcher: a call with
 * a key runs once in all processes, even after a restart.
 *
 * A process holds the keys of the calls that it runs, and renews that. When it dies, a call with
 * the same key runs again if the tool is `idempotent`. Other calls do not run again while the key
 * lives: whether the first one took effect is not known. The result states it, and is not
 * retryable.
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
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function storedKeys(store: CallStore, options: StoredKeysOptions = {}): KeptKeys {
  const action = "keep keys";
  checkStore(action, store);
  refuseOthers(action, options, ["leaseMs"]);
  const leaseMs = numberFrom(1)(action, options.leaseMs ?? 30_000, "leaseMs");
  return {
    async claim({ principal, scope, fingerprint, idempotent, windowMs, clock }) {
      const key = `key.${await ownerDigest(principal)}.${await digestOf(scope)}`;
      const holder = base64url(crypto.getRandomValues(new Uint8Array(16)));
      const held = (): readonly [Uint8Array, { readonly expiresAt: number }] => {
        const heldUntil = clock.timestamp() + leaseMs;
        const value = bytesOf({ fingerprint, idempotent, holder, heldUntil });
        return [value, { expiresAt: heldUntil + windowMs }];
      };
      for (;;) {
        if (await store.create(key, ...held()) !== undefined) break;
        const stored = await store.get(key);
        // The other call has released it.
        if (stored === undefined) continue;
        const kept = read(stored);
        if (kept.fingerprint !== fingerprint) return "conflict";
        const known = kept.result ?? unfinished(kept, clock);
        if (known !== undefined) return known;
        const [value, life] = held();
        if (await store.update(key, value, stored.revision, life) !== undefined) break;
      }
      /** Does something with the key, unless another run has taken it over. */
      const own = async (change: (revision: number) => Promise<unknown>): Promise<void> => {
        const stored = await store.get(key);
        if (stored !== undefined && read(stored).holder === holder) await change(stored.revision);
      };
      const stop = renewed(clock, leaseMs / 3, () =>
        own((revision) => {
          const [value, life] = held();
          return store.update(key, value, revision, life);
        }));
      return async (result, keep) => {
        await stop();
        const now = clock.timestamp();
        const ended = { fingerprint, idempotent, holder, heldUntil: now };
        let value = bytesOf({ ...ended, result });
        // The call has run, so it does not run again because of the size of its result.
        if (value.byteLength > MAX_STORED_BYTES) value = bytesOf({ ...ended, result: TOO_LARGE });
        await own((revision) =>
          keep
            ? store.update(key, value, revision, { expiresAt: now + windowMs })
            : store.delete(key, revision)
        );
      };
    },
  };
}

const TOO_LARGE = ToolResult.error(
  "output_too_large",
  "Cannot repeat the result of the call: it has run, and its result was too large to keep",
  { ran: "yes" },
);

/** Why a call without a result is not run again; `undefined` if it is. */
function unfinished({ heldUntil, idempotent }: KeptKey, clock: Clock): ToolResult | undefined {
  if (heldUntil > clock.timestamp()) {
    return ToolResult.error(
      "unavailable",
      "Cannot run the call: one with its idempotency key runs in another process; try again later",
      { ran: "yes" },
    );
  }
  return idempotent ? undefined : ToolResult.error(
    "unavailable",
    "Cannot run the call: its outcome is unknown. A call with its idempotency key was cut off when " +
      "its process ended, and may have taken effect. Find out whether it has; if not, call again " +
      "with a new key",
    { retryable: false, ran: "unknown" },
  );
}

/** Does something again and again, until what it answers is called. That waits for the last time. */
function renewed(clock: Clock, ms: number, work: () => Promise<void>): () => Promise<void> {
  let last: Promise<unknown> = Promise.resolve();
  let disarm = (): void => {};
  const arm = (): void => {
    disarm = clock.setTimeout(() => {
      // The problem may pass before the lease ends.
      last = work().catch(() => {});
      arm();
    }, ms);
  };
  arm();
  return async () => {
    disarm();
    await last;
  };
}

function read({ value }: StoredValue): KeptKey {
  return JSON.parse(new TextDecoder().decode(value));
}

function bytesOf(key: KeptKey): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(key));
}
