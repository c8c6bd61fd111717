/** The idempotency keys of a process and their results, limited in number and bytes. */

import * as check from "../tool/mod.ts";
import { canonicalJson, type Clock, fingerprint, ToolResult } from "../tool/mod.ts";
import { frozenCopy } from "./json_value.ts";
import { MAKE } from "./kernel_options.ts";
import type { Call } from "./layer.ts";
import type { ClaimedKey, KeptKeys, SettleKey } from "./ports.ts";

/** Limits of the results that are stored for idempotency keys. */
export interface IdempotencyOptions {
  /** The lifetime of a result after the end of its call, in milliseconds. @default {600_000} */
  readonly windowMs?: number;
  /**
   * The maximum number of stored results. Above it, the oldest results of principals above their
   * quota are evicted. One principal can have the same number of running calls with keys; further
   * calls fail with `overloaded`.
   *
   * @default {1_000}
   */
  readonly maxKeys?: number;
  /**
   * The maximum size of all stored results, in bytes of JSON. Evicts results as `maxKeys` does.
   *
   * @default {16_777_216}
   */
  readonly maxBytes?: number;
  /** Stores keys and results for several processes: `storedKeys` of `@plue/tools/calls`. */
  readonly kept?: KeptKeys;
}

const CHECKS = {
  windowMs: check.numberFrom(1),
  maxKeys: check.numberFrom(1),
  maxBytes: check.numberFrom(0),
  kept: check.anyValue as check.Check<KeptKeys>,
} satisfies { readonly [Name in keyof IdempotencyOptions]-?: check.Check };

interface KeyOf<Result> {
  readonly fingerprint: string;
  readonly result: Result;
}

interface KeptResult extends KeyOf<ToolResult> {
  readonly expiresAt: number;
  readonly bytes: number;
}

interface Owner {
  readonly principal: string | undefined;
  readonly running: Map<string, KeyOf<Promise<ToolResult>>>;
  /** In the order in which the calls ended, so the first result expires first. */
  readonly results: Map<string, KeptResult>;
  bytes: number;
}

/** Returns the state of `scope` (the key and its principal) for a call with these arguments. */
export type ClaimScope = (
  principal: string | undefined,
  scope: string,
  fingerprint: string,
  idempotent: boolean,
) => ClaimedKey | Promise<ClaimedKey>;

/**
 * Creates a cache of keys and results. If it is full, the oldest result of a principal above its
 * quota is evicted. So other principals cannot evict the results of a principal below its quota,
 * and a single principal may use the whole cache.
 */
export function cacheKeys(options: IdempotencyOptions, clock: Clock): ClaimScope {
  const { windowMs = 600_000, maxKeys = 1_000, maxBytes = 16_777_216, kept } = check.readFields(
    MAKE,
    options,
    CHECKS,
    (field) => `idempotency.${field}`,
  );
  check.checkPort(MAKE, "idempotency.kept", kept, ["claim"]);
  const owners: Map<string | undefined, Owner> = new Map();
  let count = 0;
  let sum = 0;
  const dropIfEmpty = ({ principal, running, results }: Owner): void => {
    if (running.size + results.size === 0) owners.delete(principal);
  };
  const evictOldest = (owner: Owner): void => {
    const [oldest] = owner.results;
    if (oldest === undefined) return;
    const [scope, { bytes }] = oldest;
    owner.results.delete(scope);
    owner.bytes -= bytes;
    count--;
    sum -= bytes;
    dropIfEmpty(owner);
  };
  const hasTooMuch = ({ results, bytes }: Owner): boolean =>
    count > maxKeys ? results.size * owners.size > maxKeys : bytes * owners.size > maxBytes;
  return (principal, scope, fingerprint, idempotent) => {
    const owner = owners.get(principal) ??
      { principal, running: new Map(), results: new Map(), bytes: 0 };
    const { running, results } = owner;
    const now = clock.now();
    for (const { expiresAt } of results.values()) {
      if (expiresAt > now) break;
      evictOldest(owner);
    }
    const known = running.get(scope) ?? results.get(scope);
    if (known !== undefined) {
      return known.fingerprint === fingerprint ? known.result : "conflict";
    }
    if (running.size >= maxKeys) return "full";
    if (running.size + results.size >= maxKeys) evictOldest(owner);
    let settleRunning: (result: ToolResult) => void = () => {};
    running.set(scope, { fingerprint, result: new Promise((resolve) => settleRunning = resolve) });
    owners.set(principal, owner);
    const settle: SettleKey = (result, keep, bytes) => {
      running.delete(scope);
      // A copy, because the caller of the first call may change the result.
      const frozen = frozenCopy(result);
      if (keep && frozen !== undefined && bytes <= maxBytes) {
        const expiresAt = clock.now() + windowMs;
        results.set(scope, { fingerprint, result: frozen, expiresAt, bytes });
        owner.bytes += bytes;
        count++;
        sum += bytes;
        while (count > maxKeys || sum > maxBytes) {
          // If the sum exceeds the limit, at least one principal exceeds its quota.
          evictOldest(hasTooMuch(owner) ? owner : [...owners.values()].find(hasTooMuch) ?? owner);
        }
      }
      dropIfEmpty(owner);
      settleRunning(frozen ?? result);
    };
    return kept === undefined ? settle : claimKept(
      async () => await kept.claim({ principal, scope, fingerprint, idempotent, windowMs, clock }),
      settle,
    );
  };
}

/** Claims a key in the store, for all waiting calls of this process. */
async function claimKept(claim: () => Promise<ClaimedKey>, settle: SettleKey): Promise<ClaimedKey> {
  // If the claim fails, each call that waited for the claim claims the key itself.
  const again = ToolResult.error("aborted", "The key could not be claimed");
  const claimed = await claim().catch((error) => {
    void settle(again, false, 0);
    throw error;
  });
  if (typeof claimed !== "function") {
    void settle(typeof claimed === "object" ? claimed : again, false, 0);
    return claimed;
  }
  return async (...settled) => {
    try {
      await claimed(...settled);
    } finally {
      void settle(...settled);
    }
  };
}

/**
 * Returns a short text, which is the same for equal JSON in any order of properties. Only texts of
 * one caller's calls with one key are compared, so the text need not resist an attacker.
 */
export function fingerprintOf(value: unknown): string {
  return fingerprint(canonicalJson(value));
}

/**
 * Sets `retryable` to false if a tool was interrupted and is not idempotent, because the tool may
 * have done its work, such as sending a request.
 */
export function withoutRetry({ toolState, tool }: Call, result: ToolResult): ToolResult {
  if (result.ok || toolState === "not started" || tool.idempotent) return result;
  const { code, ran } = result.error;
  return ran === "no" || code !== "aborted" && code !== "timeout"
    ? result
    : { ...result, error: { ...result.error, retryable: false } };
}

/** Returns true if a repeated call would have the same result. */
export function isFinal({ toolState, tool }: Call, result: ToolResult): boolean {
  if (toolState === "not started") return false;
  if (result.ok) return true;
  const { code, retryable, ran } = result.error;
  if (code === "input_required") return false;
  return !retryable || (ran === "unknown" && !tool.idempotent);
}
