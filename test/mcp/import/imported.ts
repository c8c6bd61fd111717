/** Imports a server into a registry, for the tests. */

import { type DispatchContext, ToolDispatcher, ToolRegistry, type ToolResult } from "@plue/tools";
import * as mcp from "@plue/tools/mcp";
import { followChanges } from "../../support/changes.ts";

/** An imported server, whose tools are in the namespace `x`. */
export interface Imported extends AsyncDisposable {
  readonly registry: ToolRegistry;
  readonly server: mcp.ImportedMcpServer;
  call(name: string, args?: object, context?: DispatchContext): Promise<ToolResult>;
}

export async function imported(
  source: mcp.McpServerSource,
  options: Partial<mcp.ImportMcpServerOptions> = {},
): Promise<Imported> {
  const registry = new ToolRegistry();
  const server = await mcp.importMcpServer(source, { namespace: "x", registry, ...options });
  const dispatcher = new ToolDispatcher(registry);
  return {
    registry,
    server,
    call: (name, args = {}, context = {}) =>
      dispatcher.dispatch({ name: `x:${name}`, arguments: args }, context),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** The content of a result, or the code and the message of a failure. */
export function textOf(result: ToolResult): unknown {
  return result.ok ? result.content : `${result.error.code}: ${result.error.message}`;
}

/** Waits until a registry has changed in this way. */
export async function changed(
  registry: ToolRegistry,
  type: "added" | "removed" | "updated",
): Promise<string> {
  const changes = followChanges(registry);
  for (;;) {
    const change = await changes.next();
    if (change.type === type) return change.tool.id;
  }
}
