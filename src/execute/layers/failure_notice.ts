/**
 * Sends each failure to the caller's `metadata` callback, as the last thing that it receives.
 *
 * @module
 */

import { callHook, type HookLog, type ToolFailure } from "../../tool/mod.ts";
import { frozenCopy } from "../json_value.ts";
import { nameIn } from "../dispatcher.ts";
import type { Layer } from "../layer.ts";
import type { DispatchContext } from "../request.ts";

/**
 * A layer that sends `{ type: "error", tool, error, message, issues }` to the `metadata` callback
 * of a failed call, as its last value. Stage `call`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 * import { failureNotice } from "@plue/tools/layers";
 *
 * const dispatcher = new Dispatcher(new ToolRegistry(), { layers: [failureNotice()] });
 * const received: unknown[] = [];
 * await dispatcher.dispatch({ name: "no-tool" }, { metadata: (value) => received.push(value) });
 * assert.equal((received[0] as { readonly error: string }).error, "unknown_tool");
 * ```
 */
export function failureNotice(): Layer {
  return {
    name: "failure-notice",
    stage: "call",
    observe: ({ id }) => ({
      failed: (call, failed) =>
        notify(call.options, id, failed, (error) => call.report("metadata", error)),
    }),
    unresolved: (request, options, failed, report) =>
      notify(options, nameIn(request), failed, (error) => report("metadata", error)),
  };
}

function notify(
  options: DispatchContext,
  tool: string,
  { error: { code, message, issues } }: ToolFailure,
  log: HookLog,
): void {
  if (code === "input_required") return;
  callHook(
    () => options.metadata?.(frozenCopy({ type: "error", tool, error: code, message, issues })),
    log,
  );
}
