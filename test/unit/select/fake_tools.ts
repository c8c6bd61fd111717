import { makeTool, type Tool, type ToolDefinition } from "../../../src/tool/mod.ts";

/** A tool of which only the part that matters is written out. */
export function fakeTool(id: string, rest: Partial<ToolDefinition> = {}): Tool {
  const [first = "", second] = id.split(":");
  const names = second === undefined ? { name: first } : { namespace: first, name: second };
  return makeTool({ description: "Does something.", ...names, ...rest });
}
