import { ToolDispatcher } from "../../../src/execute/mod.ts";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { type ExportNames, exportTools, type TargetName } from "../../../src/formats/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { defineTool, type Tool } from "../../../src/tool/mod.ts";

/** A tool whose id no provider but MCP takes, and which strict mode changes. */
export const WEATHER: Tool = defineTool({
  namespace: "city",
  name: "weather",
  description: "Tells the weather.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, unit: { enum: ["C", "F"] } },
    required: ["city"],
    additionalProperties: false,
  },
  execute: ({ city }) => ({ city, celsius: 21 }),
});

/** A tool that may be called without arguments, which makes half a call dangerous. */
export const CLEAR: Tool = defineTool({
  name: "clear",
  description: "Deletes what is named, or all.",
  parameters: { type: "object", properties: { only: { type: "string" } } },
  execute: () => "cleared",
});

export const FAILS: Tool = defineTool({
  name: "fails",
  description: "Fails.",
  execute: () => {
    throw new Error("the disk is full");
  },
});

export const TOOLS: readonly Tool[] = Object.freeze([WEATHER, CLEAR, FAILS]);

export function namesFor(target: TargetName, tools: readonly Tool[] = TOOLS): ExportNames {
  return exportTools(tools, target).names;
}

export function dispatcherOf(tools: readonly Tool[] = TOOLS): ToolDispatcher {
  return new ToolDispatcher(buildToolset(tools, {}), {
    engine: typeboxEngine({ codeGeneration: false }),
  });
}
