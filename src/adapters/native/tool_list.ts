/**
 * The list of tools as `plue_tool_list()` gives it.
 *
 * @module
 */

import type { Tool } from "../../tool/mod.ts";

/** Tools are immutable, so what is said of one is written once. */
const written = new WeakMap<Tool, string>();

/** A JSON array of the tools, in their order. */
export function writeToolList(tools: readonly Tool[]): string {
  return `[${tools.map(writeTool).join(",")}]`;
}

function writeTool(tool: Tool): string {
  let text = written.get(tool);
  if (text === undefined) written.set(tool, text = JSON.stringify(describeTool(tool)));
  return text;
}

/**
 * What a host is told of a tool. `name` is what `plue_tool_execute` takes: the id. JSON leaves out
 * what is `undefined`.
 */
function describeTool(tool: Tool): Record<string, unknown> {
  return {
    name: tool.id,
    title: tool.title,
    description: tool.description,
    version: tool.version,
    parameters: tool.parameters,
    returns: tool.returns,
    category: tool.category,
    risk: tool.risk,
    tags: tool.tags,
    annotations: tool.annotations,
    examples: tool.examples.length === 0 ? undefined : tool.examples,
    icons: tool.icons.length === 0 ? undefined : tool.icons,
    deprecated: tool.deprecated === false ? undefined : tool.deprecated,
    requiresApproval: tool.requiresApproval ? true : undefined,
    timeoutMs: tool.timeoutMs,
    idempotent: tool.idempotent,
    executable: tool.execute !== undefined,
  };
}
