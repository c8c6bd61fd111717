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
  isWord,
  TIME_OVER,
  type ToolFailure,
  type ToolResult,
  within,
} from "../../tool/mod.ts";
import { contextDigest } from "../durable/digest.ts";
import { fingerprintOf, type IdempotencyOptions, IdempotencyStore } from "../idempotency.ts";
import { frozenCopy, readJson } from "../json_value.ts";
import { MAKE, type NumberOption, readNumbers } from "../kernel_options.ts";
import type { Call, Layer, Next, Outcome } from "../layer.ts";
import type { ClaimedKey, SettleKey } from "../ports.ts";

const NUMBERS = {
  windowMs: [600_000, 1],
  maxKeys: [1_000, 1],
  maxBytes: [16_777_216, 0],
} as const satisfies Readonly<Record<string, NumberOption>>;

const MAX_KEY = 256;
/** A scope is stored as long as its result, and a part of it is the caller's choice. */
const MAX_SCOPE = 4_096;

/**
 * The layers of idempotency keys: one claims the key once the arguments are parsed, the other stores
 * the final result. Keys are kept apart by tool, principal, session and the JSON of the host's context;
 * where a host names none of them, all its callers share their keys.
 *
 * @param clock Tells the time; the same as the dispatcher's.
 * @throws {TypeError | RangeError} If an option is wrong.
 */
export function idempotency(clock: Clock, options: IdempotencyOptions = {}): readonly Layer[] {
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

/** Whether a call with the same key would end alike if it ran again. */
function isFinal({ toolState, tool }: Call, result: ToolResult): boolean {
  if (toolState === "not started") return false;
  if (result.ok) return true;
  const { code, retryable, ran } = result.error;
  if (code === "input_required") return false;
  return !retryable || (ran === "unknown" && !tool.idempotent);
}

/** How large the content of a result is as JSON, at most. */
function bytesOf(result: ToolResult): number {
  const verdict = result.ok ? readJson(result.content, Number.MAX_SAFE_INTEGER) : undefined;
  return verdict?.kind === "json" ? verdict.bytes : 0;
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
    const use = (claimed: ClaimedKey | typeof FAILED): Outcome => {
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

const FAILED: unique symbol = Symbol("plue.not_claimed");
type Claimed = ClaimedKey | typeof FAILED;

function tryClaim(
  call: Call,
  claim: () => ClaimedKey | Promise<ClaimedKey>,
): Claimed | Promise<Claimed> {
  const failed = (error: unknown): typeof FAILED => {
    call.report("internal", error);
    return FAILED;
  };
  try {
    const claimed = claim();
    return claimed instanceof Promise ? claimed.catch(failed) : claimed;
  } catch (error) {
    return failed(error);
  }
}

async function waitForClaim(call: Call, claim: Promise<Claimed>): Promise<Claimed> {
  try {
    return await call.wait("waiting for the first call with its key", claim);
  } catch (interrupted) {
    // The call has ended while its key was claimed, so the key is free.
    void claim.then((claimed) => {
      if (typeof claimed !== "function") return undefined;
      return claimed(call.fail("aborted", "it had ended before its key was claimed"), false, 0);
    }).catch((error) => call.report("internal", error));
    throw interrupted;
  }
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

/** The key and what it belongs to, or the failure of a key that is not valid. */
function scopeOf(call: Call): string | ToolFailure | Promise<string | ToolFailure> {
  const { idempotencyKey: key, principal = null, sessionId = null, context } = call.options;
  if (!isWord(key) || key.length > MAX_KEY) {
    return call.fail("invalid_arguments", `its idempotency key must be 1 to ${MAX_KEY} characters`);
  }
  const write = (digest: string | undefined): string | ToolFailure => {
    const parts = [call.tool.id, principal, sessionId, key, digest];
    const scope = JSON.stringify(digest === undefined ? parts.slice(0, -1) : parts);
    return scope.length <= MAX_SCOPE ? scope : call.fail(
      "invalid_arguments",
      "its principal and session are too long for an idempotency key",
    );
  };
  return context === undefined ? write(undefined) : contextDigest(context).then(write);
}
