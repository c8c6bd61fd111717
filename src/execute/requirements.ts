/**
 * What tools and calls require of the layers. Without the layer that meets a requirement the call
 * fails: a tool that needs approval never runs because somebody left a layer out.
 *
 * @module
 */

import type { Tool, ToolFailure } from "../tool/mod.ts";
import type { Call, Layer, Requirement } from "./layer.ts";

/** Checks a call; `undefined` where the layers meet all that its tool may require. */
export type RequirementCheck = ((call: Call) => ToolFailure | undefined) | undefined;

/** The check for the requirements of a tool that none of the layers meets. */
export function checkRequirements(tool: Tool, layers: readonly Layer[]): RequirementCheck {
  const isMet = (requirement: Requirement): boolean =>
    layers.some(({ meets }) => meets === requirement);
  const lacksTransaction = tool.requiresTransaction && !isMet("transaction");
  const lacksContext = tool.context !== undefined && !isMet("context");
  const lacksKeys = !isMet("idempotency");
  const lacksApproval = !isMet("approval");
  if (!lacksTransaction && !lacksContext && !lacksKeys && !lacksApproval) return undefined;
  return (call) => {
    if (lacksApproval && (tool.requiresApproval || call.toolset.requiresApproval(tool))) {
      return call.fail("approval_required", "it needs approval, and no layer asks for that");
    }
    if (lacksTransaction) {
      return call.fail(
        "transaction_failed",
        "it runs only in a transaction, and no layer opens one",
      );
    }
    if (lacksContext) {
      return call.fail("unavailable", "it needs its host's context, and no layer checks that", {
        retryable: false,
      });
    }
    return lacksKeys && call.options.idempotencyKey !== undefined
      ? call.fail("invalid_arguments", "it has an idempotency key, and no layer stores those")
      : undefined;
  };
}
