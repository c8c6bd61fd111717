/**
 * Idempotency keys: within the window of a key, later calls with the key receive the result of the
 * first call, even while the first call is still running.
 *
 * The first call with a key runs the tool. If the first call is aborted, its tool is aborted too.
 * The next waiting call then runs the tool, unless the tool had begun and is not idempotent.
 */

import {
  type Clock,
  type FailureCode,
  isWord,
  systemClock,
  type ToolFailure,
  type ToolResult,
} from "../../tool/mod.ts";
import { FAILED, inTime, settled } from "../context.ts";
import { contextDigest } from "../durable/records.ts";
import {
  cacheKeys,
  fingerprintOf,
  type IdempotencyOptions,
  isFinal,
  withoutRetry,
} from "../idempotency.ts";
import type { Call, Layer } from "../layer.ts";
import { frozenCopy, readJson } from "../json_value.ts";
import { maxOutputBytes } from "../output.ts";
import type { ClaimedKey, SettleKey } from "../ports.ts";

/**
 * Creates the layers of idempotency keys: one stores the final result (stage `call`), the other
 * claims the key once the arguments are parsed (stage `input`). A result is stored if the tool ran
 * and a repeated call would have the same result. Keys are separate for each tool, principal,
 * session and host context. Without the last three, all callers share their keys.
 *
 * A call fails before its tool runs: with `invalid_arguments` if its key was used with other
 * arguments, `overloaded` if too many calls with keys run, `unavailable` without the store.
 *
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function idempotency(
  options: IdempotencyOptions = {},
  clock: Clock = systemClock,
): readonly Layer[] {
  const claimKey = cacheKeys(options, clock);
  const claims: WeakMap<Call, SettleKey> = new WeakMap();
  return [{
    name: "idempotency-result",
    stage: "call",
    meets: "idempotency",
    for: () => async (call, next) => {
      const result = withoutRetry(call, await next(call));
      const settle = claims.get(call);
      if (settle === undefined) return result;
      const store = async () => await settle(result, isFinal(call, result), bytesOf(result));
      // Once the result is stored, no other process runs the tool again.
      await settled(call, "internal", () => inTime(call.settings, store()));
      return result;
    },
  }, {
    name: "idempotency-key",
    stage: "input",
    meets: "idempotency",
    for: ({ idempotent }) => async (call, next) => {
      const { principal, context } = call.options;
      // Awaits only promises, so that a tool without a wait starts synchronously.
      const digest = context === undefined
        ? undefined
        : await call.wait("reading its idempotency key", contextDigest(context));
      const scope = scopeOf(call, digest);
      if (typeof scope !== "string") return scope;
      for (;;) {
        const claim = claimKey(principal, scope, fingerprintOf(call.arguments), idempotent);
        const claimed = claim instanceof Promise ? await waitForClaim(call, claim) : claim;
        if (typeof claimed === "string") return call.fail(...REFUSALS[claimed]);
        if (typeof claimed === "function") {
          claims.set(call, claimed);
          return await next(call);
        }
        // Each call gets a copy, because long lists in the result are not frozen. If the first call
        // was aborted, this call claims the key, unless the tool may still run.
        if (claimed.ok || claimed.error.code !== "aborted" || !claimed.error.retryable) {
          const limit = maxOutputBytes(call);
          // The first call may have had a higher limit.
          const result = claimed.ok && readJson(claimed.content, limit).kind === "large"
            ? call.fail("output_too_large", `its stored result has more than ${limit} bytes`)
            : frozenCopy(claimed) ?? claimed;
          return { ...result, replayed: true };
        }
      }
    },
  }];
}

/** Returns an upper bound of the size of a result's content as JSON. */
function bytesOf(result: ToolResult): number {
  const verdict = result.ok ? readJson(result.content, Number.MAX_SAFE_INTEGER) : undefined;
  return verdict?.kind === "json" ? verdict.bytes : 0;
}

const MAX_KEY = 256;
/** The maximum length of a scope, which contains texts of the caller and is stored. */
const MAX_SCOPE = 4_096;

/** Returns the key with the scope in which it is valid, or the failure of an invalid key. */
function scopeOf(call: Call, digest?: string): string | ToolFailure {
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
const REFUSALS: {
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
async function waitForClaim(
  call: Call,
  claim: Promise<ClaimedKey>,
): Promise<ClaimedKey | "failed"> {
  const claimed = settled(call, "internal", () => claim);
  try {
    const key = await call.wait("waiting for the first call with its key", claimed);
    return key === FAILED ? "failed" : key;
  } catch (interrupted) {
    void settled(call, "internal", async () => {
      const late = await claimed;
      if (typeof late !== "function") return;
      await late(call.fail("aborted", "it ended before its idempotency key was claimed"), false, 0);
    });
    throw interrupted;
  }
}
