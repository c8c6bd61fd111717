import { defineTool, type Tool, type ToolDefinition } from "@plue/tools";

/** Makes a tool for a test: its name, the function that it executes, and its other fields. */
export function toolOf(
  name: string,
  execute?: ToolDefinition["execute"],
  more: Partial<ToolDefinition> = {},
): Tool {
  return defineTool({
    name,
    description: `Is ${name}.`,
    ...(execute === undefined ? {} : { execute }),
    ...more,
  } as ToolDefinition) as Tool;
}
