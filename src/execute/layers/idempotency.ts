/**
 * Idempotency keys: the same key within its window returns the result of the first call, also while
 * that call is still running.
 *
 * @module
 */

import {
  checkPort,
  type Clock,
  type FailureCode,
  systemClock,
  TIME_OVER,
  type ToolFailure,
  type ToolResult,
  within,
} from "../../tool/mod.ts";
import {
  bytesOf,
  type Claimed,
  FAILED,
  fingerprintOf,
  type IdempotencyOptions,
  IdempotencyStore,
  isFinal,
  scopeOf,
  tryClaim,
  waitForClaim,
} from "../idempotency.ts";
import { frozenCopy } from "../json_value.ts";
import { MAKE, type NumberOption, readNumbers } from "../kernel_options.ts";
import type { Call, Layer, Next, Outcome } from "../layer.ts";
import type { SettleKey } from "../ports.ts";

const NUMBERS = {
  windowMs: [600_000, 1],
  maxKeys: [1_000, 1],
  maxBytes: [16_777_216, 0],
} as const satisfies Readonly<Record<string, NumberOption>>;

/**
 * The layers of idempotency keys: one claims the key once the arguments are parsed, the other stores
 * the final result. Keys are kept apart by tool, principal, session and the JSON of the host's context;
 * where a host names none of them, all its callers share their keys.
 *
 * @param clock Tells the time; the same as the dispatcher's.
 * @throws {TypeError | RangeError} If an option is wrong.
 */
export function idempotency(
  options: IdempotencyOptions = {},
  clock: Clock = systemClock,
): readonly Layer[] {
  const { kept } = options;
  checkPort(MAKE, "idempotency.kept", kept, ["claim"]);
  const store = new IdempotencyStore(clock, {
    ...readNumbers("idempotency.", options, NUMBERS, ["kept"]),
    kept,
  });
  const claims: WeakMap<Call, SettleKey> = new WeakMap();
  return [{
    name: "idempotency-result",
    stage: "call",
    when: "idempotencyKey",
    for: () => (call, next) => settleAfter(claims, call, next),
  }, {
    name: "idempotency-key",
    stage: "input",
    meets: "idempotency",
    when: "idempotencyKey",
    for: () => (call, next) => claimFor(store, claims, call, next),
  }];
}

/** Stores the result of the call that claimed its key, or gives the key back. */
async function settleAfter(
  claims: WeakMap<Call, SettleKey>,
  call: Call,
  next: Next,
): Promise<ToolResult> {
  const result = await next(call);
  const settle = claims.get(call);
  if (settle === undefined) return result;
  const { clock, closeTimeoutMs } = call.settings;
  // Once the result is stored, no other process runs the tool again.
  const settled = (async () => await settle(result, isFinal(call, result), bytesOf(result)))();
  try {
    if (await within(clock, closeTimeoutMs, settled) === TIME_OVER) {
      throw new RangeError(`The result was not kept within ${closeTimeoutMs} ms`);
    }
  } catch (error) {
    call.report("internal", error);
  }
  return result;
}

function claimFor(
  store: IdempotencyStore,
  claims: WeakMap<Call, SettleKey>,
  call: Call,
  next: Next,
): Outcome {
  const claim = (scope: string | ToolFailure): Outcome => {
    if (typeof scope !== "string") return scope;
    const { tool: { idempotent }, options: { principal } } = call;
    const fingerprint = fingerprintOf(call.arguments);
    const use = (claimed: Claimed): Outcome => {
      if (typeof claimed === "function") {
        claims.set(call, claimed);
        return next(call);
      }
      if (claimed === FAILED) return call.fail(...NOT_CLAIMED);
      if (typeof claimed === "string") return call.fail(...REFUSED[claimed]);
      // The first call's caller gave up; this one has not.
      if (!claimed.ok && claimed.error.code === "aborted") return claim(scope);
      // A copy for each: a long list in it is not frozen.
      return { ...frozenCopy(claimed) ?? claimed, replayed: true };
    };
    const claimed = tryClaim(call, () => store.claim(principal, scope, fingerprint, idempotent));
    return claimed instanceof Promise ? waitForClaim(call, claimed).then(use) : use(claimed);
  };
  const scope = scopeOf(call);
  return scope instanceof Promise
    ? call.wait("reading its idempotency key", scope).then(claim)
    : claim(scope);
}

type Refusal = readonly [code: FailureCode, why: string];

const NOT_CLAIMED: Refusal = [
  "unavailable",
  "its idempotency key cannot be looked up now; nothing has run",
];

const REFUSED: Readonly<Record<"conflict" | "full", Refusal>> = {
  conflict: [
    "invalid_arguments",
    "its idempotency key was used before with other arguments; a new call needs a new key",
  ],
  full: ["overloaded", "too many calls with idempotency keys are running"],
};
