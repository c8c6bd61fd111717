/**
 * "Tool Registry Interface" (AIntern v0.6.1g): its usage examples.
 *
 * Prints:
 *
 * ```text
 * added file-read
 * registered again: false
 * all: file-read, file-write, network-fetch, terminal-execute
 * safe: file-read
 * custom: file-read, file-write
 * [{"type":"function","function":{"name":"file-read","description":"Read the contents of a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]
 * ```
 */

import {
  defineTool,
  FunctionDefinition,
  type RiskLevel,
  ToolAvailabilityContext,
  ToolRegistry,
} from "../../mod.ts";

const registry = new ToolRegistry();
const unsubscribe = registry.subscribe(({ type, tool }) => console.log(type, tool.id));

const fileRead = defineTool({
  name: "file-read",
  description: "Read the contents of a file",
  category: "filesystem",
  risk: "safe",
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
});
registry.registerTool(fileRead);
unsubscribe();
console.log("registered again:", registry.tryRegisterTool(fileRead));

for (
  const [name, category, risk] of [
    ["file-write", "filesystem", "medium"],
    ["terminal-execute", "terminal", "high"],
    ["network-fetch", "network", "medium"],
  ] as readonly (readonly [string, string, RiskLevel])[]
) {
  registry.registerTool(defineTool({ name, category, risk, description: `The tool ${name}` }));
}

const print = (title: string, context: ToolAvailabilityContext): void =>
  console.log(`${title}:`, registry.getAvailableTools(context).map(({ id }) => id).join(", "));

// All tools, the safe ones, and a context of a builder.
print("all", ToolAvailabilityContext.default);
print("safe", ToolAvailabilityContext.safeOnly);
const custom = ToolAvailabilityContext.create()
  .withMaxRiskLevel("medium")
  .excludeCategories("network")
  .disableTools("terminal-execute")
  .withWorkspace(true)
  .withTerminal(false)
  .build();
print("custom", custom);

// Function definitions in the format of OpenAI.
const context = ToolAvailabilityContext.create().withMaxRiskLevel("low").build();
const safeFunctions = registry.getFunctionDefinitions(context);
console.log(FunctionDefinition.toOpenAIToolsJson(safeFunctions));
