/**
 * Idempotency keys: within its window the same key returns the result of the first call, even while
 * that call is still running.
 */

import {
  anyValue,
  type Check,
  checkPort,
  type Clock,
  numberFrom,
  readFields,
  systemClock,
  type ToolResult,
} from "../../tool/mod.ts";
import { contextDigest } from "../durable/digest.ts";
import { FAILED, settled } from "../context.ts";
import {
  bytesOf,
  type ClaimScope,
  fingerprintOf,
  type IdempotencyOptions,
  isFinal,
  REFUSALS,
  rememberKeys,
  scopeOf,
  waitForClaim,
} from "../idempotency.ts";
import { frozenCopy } from "../json_value.ts";
import { MAKE } from "../kernel_options.ts";
import type { Call, Layer, Next } from "../layer.ts";
import type { KeptKeys, SettleKey } from "../ports.ts";
import { inTime } from "../suspension.ts";

const CHECKS = {
  windowMs: numberFrom(1),
  maxKeys: numberFrom(1),
  maxBytes: numberFrom(0),
  kept: anyValue as Check<KeptKeys>,
} satisfies { readonly [Name in keyof IdempotencyOptions]-?: Check };

/**
 * Creates the layers of idempotency keys: one stores the final result (stage `call`), the other
 * claims the key once the arguments are parsed (stage `input`). A result is stored if the tool ran
 * and would return the same if it ran again. Keys are separate for each tool, principal, session
 * and host context; without any of these all callers share their keys.
 *
 * A key that was used with other arguments fails the call with `invalid_arguments`; too many
 * running keys with `overloaded`; an unreachable store with `unavailable`, before the tool runs.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 * import { idempotency } from "@plue/tools/layers";
 *
 * let runs = 0;
 * const registry = new ToolRegistry({
 *   tools: [{ name: "pay", description: "Pays.", execute: () => ++runs }],
 * });
 * const dispatcher = new Dispatcher(registry, { layers: [idempotency({ windowMs: 60_000 })] });
 *
 * await dispatcher.dispatch({ name: "pay" }, { idempotencyKey: "order-7" });
 * const again = await dispatcher.dispatch({ name: "pay" }, { idempotencyKey: "order-7" });
 * assert.deepEqual(again.ok && [again.content, again.replayed], [1, true]);
 * ```
 *
 * @param options The limits of stored results, and the store.
 * @param clock The dispatcher's clock.
 * @throws {TypeError | RangeError} If an option is invalid.
 */
export function idempotency(
  options: IdempotencyOptions = {},
  clock: Clock = systemClock,
): readonly Layer[] {
  const { windowMs = 600_000, maxKeys = 1_000, maxBytes = 16_777_216, kept } = readFields(
    MAKE,
    options,
    CHECKS,
    (field) => `idempotency.${field}`,
  );
  checkPort(MAKE, "idempotency.kept", kept, ["claim"]);
  const claim = rememberKeys(clock, { windowMs, maxKeys, maxBytes, kept });
  const claims: WeakMap<Call, SettleKey> = new WeakMap();
  return [{
    name: "idempotency-result",
    stage: "call",
    meets: "idempotency",
    for: () => (call, next) => settleAfter(claims, call, next),
  }, {
    name: "idempotency-key",
    stage: "input",
    meets: "idempotency",
    for: () => (call, next) => claimFor(claim, claims, call, next),
  }];
}

/** Stores the result of the call that claimed its key, or releases the key. */
async function settleAfter(
  claims: WeakMap<Call, SettleKey>,
  call: Call,
  next: Next,
): Promise<ToolResult> {
  const result = await next(call);
  const settle = claims.get(call);
  if (settle === undefined) return result;
  const store = async () => await settle(result, isFinal(call, result), bytesOf(result));
  // Once the result is stored, no other process runs the tool again.
  await settled(call, "internal", () => inTime(call.settings, store()));
  return result;
}

async function claimFor(
  claimScope: ClaimScope,
  claims: WeakMap<Call, SettleKey>,
  call: Call,
  next: Next,
): Promise<ToolResult> {
  const { tool: { idempotent }, options: { principal, context } } = call;
  // No await without a promise, so that the tool starts synchronously.
  const scope = scopeOf(
    call,
    context === undefined
      ? undefined
      : await call.wait("reading its idempotency key", contextDigest(context)),
  );
  if (typeof scope !== "string") return scope;
  const fingerprint = fingerprintOf(call.arguments);
  for (;;) {
    const claim = claimScope(principal, scope, fingerprint, idempotent);
    const claimed = claim instanceof Promise ? await waitForClaim(call, claim) : claim;
    if (claimed === FAILED) return call.fail(...REFUSALS.failed);
    if (typeof claimed === "string") return call.fail(...REFUSALS[claimed]);
    if (typeof claimed === "function") {
      claims.set(call, claimed);
      return await next(call);
    }
    // A copy for each: a long list in it is not frozen. If the first call's caller gave up, this call
    // claims the key, unless the tool may still run.
    if (claimed.ok || claimed.error.code !== "aborted" || !claimed.error.retryable) {
      return { ...frozenCopy(claimed) ?? claimed, replayed: true };
    }
  }
}
