/**
 * "Tool Registry with Role Filtering" (CHAIN-037, task 002): the definitions of seven tools, and
 * which of them each role sees. The tools define schemas only; `examples/chain` executes them.
 *
 * Prints:
 *
 * ```text
 * control: chain:status, spawn_impl_session, task:approve, task:list, task:start
 * impl: chain:status, task:complete, task:status
 * {"name":"chain__status","description":"Get the status of a task chain","input_schema":{"type":"object","properties":{"chainId":{"type":"string","description":"Chain ID (e.g., CHAIN-037-agent-runtime-core)"}},"required":["chainId"]}}
 * not_executable
 * ```
 */

import { defineTool, ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { exportTools } from "../../src/formats/mod.ts";

const chainStatusTool = defineTool({
  name: "chain:status",
  description: "Get the status of a task chain",
  parameters: {
    type: "object",
    properties: {
      chainId: { type: "string", description: "Chain ID (e.g., CHAIN-037-agent-runtime-core)" },
    },
    required: ["chainId"],
  },
  allowedRoles: ["control", "impl"],
});

/** Defines a tool that takes the id of a task. */
const taskTool = (name: string, description: string, ...allowedRoles: readonly string[]) =>
  defineTool({
    name,
    description,
    parameters: {
      type: "object",
      properties: { taskId: { type: "string", description: "Task ID (e.g., 002)" } },
      required: ["taskId"],
    },
    allowedRoles,
  });

const registry = new ToolRegistry({
  tools: [
    chainStatusTool,
    taskTool("task:status", "View current task details", "impl"),
    defineTool({
      name: "task:list",
      description: "List tasks in chain",
      allowedRoles: ["control"],
    }),
    taskTool("task:start", "Start a task", "control"),
    taskTool("task:complete", "Mark task complete", "impl"),
    taskTool("task:approve", "Approve completed task", "control"),
    taskTool("spawn_impl_session", "Spawn nested impl agent", "control"),
  ],
});

for (const role of ["control", "impl"]) {
  console.log(`${role}:`, registry.getToolsForRole(role).map(({ id }) => id).join(", "));
}

// The schemas in the format of a provider, and a call of a tool without `execute`.
const toolset = registry.select({ role: "impl" });
console.log(JSON.stringify(exportTools(toolset, "anthropic").tools[0]));
const call = { name: "chain:status", arguments: { chainId: "CHAIN-037-agent-runtime-core" } };
const result = await new ToolDispatcher(toolset).dispatch(call);
console.log(result.ok ? result.content : result.error.code);
