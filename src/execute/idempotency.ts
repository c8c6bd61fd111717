/**
 * Idempotency keys: within its window the same key returns the first call's result, even while that
 * call is still running.
 *
 * The first call with a key runs the tool. Aborting it aborts that run, and the next call that
 * waits for it runs the tool instead; aborting a call that waits ends only its own wait. A result
 * is stored if the tool has run and would return the same if it ran again: a success, or a failure
 * that is not retryable.
 */

import {
  canonicalJson,
  type Clock,
  type FailureCode,
  fnv1a,
  isWord,
  type ToolFailure,
  ToolResult,
} from "../tool/mod.ts";
import { type FAILED, settled } from "./context.ts";
import { frozenCopy, readJson } from "./json_value.ts";
import type { Call } from "./layer.ts";
import type { ClaimedKey, KeptKeys, SettleKey } from "./ports.ts";

/** Limits of the results that are stored for idempotency keys. */
export interface IdempotencyOptions {
  /**
   * The lifetime of a result after the end of its call, in milliseconds.
   *
   * @default {600_000}
   */
  readonly windowMs?: number;
  /**
   * The maximum number of results. If there are more, the oldest results of principals above their
   * quota are evicted. The same number of calls with keys may run for one principal; further ones
   * fail with `overloaded`.
   *
   * @default {1_000}
   */
  readonly maxKeys?: number;
  /**
   * The maximum size of all stored results, in bytes of JSON. They are evicted as with `maxKeys`.
   *
   * @default {16_777_216}
   */
  readonly maxBytes?: number;
  /** Stores keys and results for several processes: `storedKeys` of `@plue/tools/calls`. */
  readonly kept?: KeptKeys;
}

/** {@linkcode IdempotencyOptions}, complete. */
export interface IdempotencySettings extends Required<Omit<IdempotencyOptions, "kept">> {
  readonly kept: KeptKeys | undefined;
}

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
  /** In order of their calls' ends, so the first one expires first. */
  readonly results: Map<string, KeptResult>;
  /** The size of the results, in bytes of JSON. */
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
 * A cache of keys, bounded in number and bytes. If there are too many, the oldest result of a
 * principal above its quota is evicted. So no caller evicts another's keys, and a single caller may
 * use the whole cache.
 */
export function rememberKeys(
  clock: Clock,
  { windowMs, maxKeys, maxBytes, kept }: IdempotencySettings,
): ClaimScope {
  /** The principals with keys. */
  const owners: Map<string | undefined, Owner> = new Map();
  let count = 0;
  let sum = 0;
  const dropIfEmpty = ({ principal, running, results }: Owner): void => {
    if (running.size + results.size === 0) owners.delete(principal);
  };
  const forgetOldest = (owner: Owner): void => {
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
      forgetOldest(owner);
    }
    const known = running.get(scope) ?? results.get(scope);
    if (known !== undefined) {
      return known.fingerprint === fingerprint ? known.result : "conflict";
    }
    if (running.size >= maxKeys) return "full";
    if (running.size + results.size >= maxKeys) forgetOldest(owner);
    let settleRunning: (result: ToolResult) => void = () => {};
    running.set(scope, { fingerprint, result: new Promise((resolve) => settleRunning = resolve) });
    owners.set(principal, owner);
    const settle: SettleKey = (result, keep, bytes) => {
      running.delete(scope);
      // A copy, because the first caller may change its result.
      const frozen = frozenCopy(result);
      if (keep && frozen !== undefined && bytes <= maxBytes) {
        results.set(scope, {
          fingerprint,
          result: frozen,
          expiresAt: clock.now() + windowMs,
          bytes,
        });
        owner.bytes += bytes;
        count++;
        sum += bytes;
        while (count > maxKeys || sum > maxBytes) {
          // If the sum exceeds the limit, at least one principal exceeds its quota.
          forgetOldest(hasTooMuch(owner) ? owner : [...owners.values()].find(hasTooMuch) ?? owner);
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
  // Calls that waited for a failed claim retry it themselves.
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
 * Returns a short text that is equal for equal JSON, for any order of properties. It is compared
 * only among calls of one caller with one key, so it need not resist an attacker.
 */
export function fingerprintOf(value: unknown): string {
  const text = canonicalJson(value);
  return `${text.length}.${fnv1a(text)}.${fnv1a(text, 0x9e3779b9, 0x85ebca6b)}`;
}

/** Returns true if a repeated call would have the same result. */
export function isFinal({ toolState, tool }: Call, result: ToolResult): boolean {
  if (toolState === "not started") return false;
  if (result.ok) return true;
  const { code, retryable, ran } = result.error;
  if (code === "input_required") return false;
  return !retryable || (ran === "unknown" && !tool.idempotent);
}

/** Returns an upper bound of the size of a result's content as JSON. */
export function bytesOf(result: ToolResult): number {
  const verdict = result.ok ? readJson(result.content, Number.MAX_SAFE_INTEGER) : undefined;
  return verdict?.kind === "json" ? verdict.bytes : 0;
}

const MAX_KEY = 256;
/** A scope is stored as long as its result, and a part of it is the caller's choice. */
const MAX_SCOPE = 4_096;

/** Returns the scoped key, or the failure of an invalid key. */
export function scopeOf(call: Call, digest?: string): string | ToolFailure {
  const { idempotencyKey: key, principal = null, sessionId = null } = call.options;
  if (!isWord(key) || key.length > MAX_KEY) {
    return call.fail("invalid_arguments", `its idempotency key must be 1 to ${MAX_KEY} characters`);
  }
  const scope = JSON.stringify([call.tool.id, principal, sessionId, key].concat(digest ?? []));
  return scope.length <= MAX_SCOPE ? scope : call.fail(
    "invalid_arguments",
    "its principal and session are too long for an idempotency key",
  );
}

/** The failures of calls whose keys are rejected, or cannot be claimed. */
export const REFUSALS: {
  readonly [Why in "conflict" | "full" | "failed"]: readonly [FailureCode, string];
} = {
  conflict: [
    "invalid_arguments",
    "its idempotency key was used before with other arguments; a new call needs a new key",
  ],
  full: ["overloaded", "too many calls with idempotency keys are running"],
  failed: ["unavailable", "its idempotency key cannot be looked up now; nothing has run"],
};

/** Waits for a claim. A key that is claimed after the end of its call is released. */
export async function waitForClaim(
  call: Call,
  claim: Promise<ClaimedKey>,
): Promise<ClaimedKey | typeof FAILED> {
  const claimed = settled(call, "internal", () => claim);
  try {
    return await call.wait("waiting for the first call with its key", claimed);
  } catch (interrupted) {
    void settled(call, "internal", async () => {
      const late = await claimed;
      if (typeof late !== "function") return;
      await late(call.fail("aborted", "it had ended before its key was claimed"), false, 0);
    });
    throw interrupted;
  }
}
