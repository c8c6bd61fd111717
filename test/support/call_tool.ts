// Runs one call of a tool, as a dispatcher does.

import { buildToolset, type Tool, ToolDispatcher, type ToolResult } from "../../mod.ts";

/** Calls one of `tools`. */
export function call(
  tools: readonly Tool[],
  name: string,
  args: unknown,
  signal?: AbortSignal,
): Promise<ToolResult> {
  return new ToolDispatcher(buildToolset(tools)).dispatch(
    { name, arguments: args },
    signal === undefined ? {} : { signal },
  );
}
