/**
 * The step that finds out whether a call repeats an earlier one.
 *
 * @module
 */

import type { ToolResult } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { fingerprintOf } from "./idempotency.ts";
import type { StepAnswer } from "./plan.ts";

const MAX_KEY = 256;
/** Scopes are kept as long as their results: what a caller chose in them is bounded too. */
const MAX_SCOPE = 4_096;

/**
 * Claims the call's idempotency key, if it brings one. Keys are kept apart by tool, principal and
 * session; where a host names neither principal nor session, all its callers share them.
 */
export function claimKey(call: Call): StepAnswer {
  const key = call.options.idempotencyKey;
  return key === undefined ? undefined : claimFor(call, key);
}

function claimFor(call: Call, key: string): StepAnswer {
  if (typeof key !== "string" || key === "" || key.length > MAX_KEY) {
    return call.fail("invalid_arguments", `its idempotency key must be 1 to ${MAX_KEY} characters`);
  }
  const { principal, sessionId } = call.options;
  const scope = JSON.stringify([call.tool.id, principal ?? null, sessionId ?? null, key]);
  if (scope.length > MAX_SCOPE) {
    return call.fail(
      "invalid_arguments",
      "its principal and session are too long for an idempotency key",
    );
  }
  return claim(call, scope, fingerprintOf(call.args));
}

function claim(call: Call, scope: string, fingerprint: string): StepAnswer {
  const claimed = call.shared.keys.claim(scope, fingerprint);
  switch (claimed.kind) {
    case "first":
      call.settleKey = claimed.settle;
      return undefined;
    case "kept":
      return replay(call, claimed.result);
    case "running":
      return claimed.result.then((result) => {
        if (call.over) return undefined;
        // The first call's caller gave up; this one has not.
        if (!result.ok && result.error.code === "aborted") return claim(call, scope, fingerprint);
        return replay(call, result);
      });
    case "conflict":
      return call.fail(
        "invalid_arguments",
        "its idempotency key was used before with other arguments; a new call needs a new key",
      );
    case "full":
      return call.fail("overloaded", "too many calls with idempotency keys are running");
  }
}

function replay(call: Call, result: ToolResult): ToolResult {
  call.replays = true;
  return { ...result, replayed: true };
}
