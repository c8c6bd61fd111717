/**
 * Sends each failure to the caller's `metadata` callback, as the last thing that it receives.
 *
 * @module
 */

import { callHook, type HookLog, type ToolResult } from "../../tool/mod.ts";
import { frozenCopy } from "../json_value.ts";
import { nameIn } from "../kernel.ts";
import type { Layer } from "../layer.ts";
import type { DispatchContext } from "../request.ts";

/** A layer that sends `{ type: "error", tool, error, message }` for calls that fail. */
export function failureNotice(): Layer {
  return {
    name: "failure-notice",
    stage: "call",
    observe: ({ id }) => ({
      ended(call, result) {
        if (result.ok) return;
        notify(call.options, id, result, (error) => call.report("metadata", error));
      },
    }),
    unresolved: (request, options, failed, report) =>
      notify(options, nameIn(request), failed, (error) => report("metadata", error)),
  };
}

function notify(options: DispatchContext, tool: string, result: ToolResult, log: HookLog): void {
  if (result.ok || result.error.code === "input_required") return;
  const { code, message, issues } = result.error;
  callHook(
    () => options.metadata?.(frozenCopy({ type: "error", tool, error: code, message, issues })),
    log,
  );
}
