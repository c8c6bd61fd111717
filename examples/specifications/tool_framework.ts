/**
 * "Tool Framework & Registry" (RevitAI, P1-06): the tool `echo`, a tool that requires a
 * transaction, and the dispatch of Claude's `tool_use`.
 *
 * Prints:
 *
 * ```text
 * definitions: add-wall, echo
 * echo: {"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}
 * begin, wall of 3 m, commit
 * {"type":"tool_result","tool_use_id":"toolu_1","content":"Hello"}
 * {"type":"tool_result","tool_use_id":"toolu_2","content":"The wall is 3 m long"}
 * {"type":"tool_result","tool_use_id":"toolu_3","content":"Cannot call \"roof\": no tool of this name was offered","is_error":true}
 * ```
 */

import { defineTool, ToolDispatcher, ToolRegistry, ToolResult } from "../../mod.ts";
import { dispatchResponse, exportTools } from "../../src/formats/mod.ts";

const echo = defineTool({
  name: "echo",
  description: "Echoes back the input message (for testing)",
  parameters: {
    type: "object",
    properties: { message: { type: "string" } },
    required: ["message"],
  },
  execute: ({ message }) => ToolResult.ok(message),
});

/** The changes of the building. */
const log: string[] = [];
const addWall = defineTool({
  name: "add-wall",
  description: "Adds a wall",
  requiresTransaction: true,
  parameters: {
    type: "object",
    properties: { length: { type: "number", exclusiveMinimum: 0 } },
    required: ["length"],
  },
  execute({ length }) {
    log.push(`wall of ${length} m`);
    return `The wall is ${length} m long`;
  },
});

const registry = new ToolRegistry();
for (const tool of [echo, addWall]) registry.registerTool(tool);
const dispatcher = new ToolDispatcher(registry, {
  transactions: {
    begin({ callId }) {
      log.push("begin");
      return { id: callId };
    },
    commit: () => void log.push("commit"),
    rollback: () => void log.push("rollback"),
  },
});

// The definitions for Claude, and a response of Claude.
const { tools, names } = exportTools(registry.select(), "anthropic");
console.log("definitions:", tools.map(({ name }) => name).join(", "));
console.log("echo:", JSON.stringify(tools.at(-1)?.input_schema));
const response = {
  role: "assistant",
  content: [
    { type: "tool_use", id: "toolu_1", name: "echo", input: { message: "Hello" } },
    { type: "tool_use", id: "toolu_2", name: "add-wall", input: { length: 3 } },
    { type: "tool_use", id: "toolu_3", name: "roof", input: {} },
  ],
};
const { messages } = await dispatchResponse("anthropic", response, { dispatcher, names });
console.log(log.join(", "));
for (const { content } of messages as readonly { readonly content: readonly unknown[] }[]) {
  for (const part of content) console.log(JSON.stringify(part));
}
