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

/** A tool that runs until its call is aborted. */
export interface WaitingTool {
  readonly tool: Tool;
  /** Resolves when a call of the tool has begun. */
  readonly begun: Promise<void>;
  /** Resolves with the reason when a call of the tool is aborted. */
  readonly aborted: Promise<unknown>;
}

export function waitingTool(name = "wait"): WaitingTool {
  const begun = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  const tool = toolOf(name, (_, { signal }) =>
    new Promise((_resolve, reject) => {
      begun.resolve();
      signal.addEventListener("abort", () => {
        aborted.resolve(signal.reason);
        reject(signal.reason);
      });
    }));
  return { tool, begun: begun.promise, aborted: aborted.promise };
}
