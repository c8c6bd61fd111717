/** Tools of plue from the tools of an MCP server in the same process. */

import { importTools } from "../../formats/mod.ts";
import {
  fail,
  isFunction,
  noop,
  rejectUnknownFields,
  type RiskLevel,
  type Tool,
} from "../../tool/mod.ts";
import { loadClient } from "./client_library.ts";
import { callServer, McpConnection } from "./connection.ts";

/**
 * Returns the tools that were registered with an `McpServer` as tools of plue. The server stays
 * connected to plue, so pass a server without another connection. A call, its abort and its
 * progress pass through the server, which validates arguments and results with its own schemas.
 *
 * Results are read as by {@linkcode importMcpServer}. The server cannot ask its client: `elicitInput`
 * and `createMessage` fail. Tools that are registered later are not included.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { McpServer } from "@modelcontextprotocol/server";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { fromMcpServer } from "@plue/tools/mcp";
 *
 * const server = new McpServer({ name: "clock", version: "1.0.0" });
 * server.registerTool("now", { description: "Tells the time." }, () => ({
 *   content: [{ type: "text", text: "noon" }],
 * }));
 *
 * const registry = new ToolRegistry({ tools: await fromMcpServer(server) });
 * const result = await new ToolDispatcher(registry).dispatch({ name: "now" });
 * assert.equal(result.ok && result.content, "noon");
 * ```
 *
 * @param server A server of version 1 or 2 of the official SDK.
 * @param options The namespace of the tools, by default none, and the risk of all tools, which by
 * default follows from their annotations.
 * @throws {TypeError} If an option or a tool is invalid.
 * @throws {Error} If the server is already connected, or does not list its tools.
 */
export async function fromMcpServer(
  server: { connect(transport: never): Promise<void> },
  options: { readonly namespace?: string; readonly risk?: RiskLevel } = {},
): Promise<readonly Tool[]> {
  const action = "read the tools of the MCP server";
  rejectUnknownFields(action, options, ["namespace", "risk"]);
  if (!isFunction(Object(server).connect)) fail(action, "it must be an McpServer of the SDK");
  const { Client, InMemoryTransport } = await loadClient();
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "plue", version: "0.1.0" });
  await server.connect(far as never);
  await client.connect(near);
  const connection = new McpConnection(
    { transport: "stdio", isOwn: false, describe: String, open: () => Promise.resolve(client) },
    {},
    { onConnected: () => Promise.resolve(), onError: noop, onState: noop },
  );
  await connection.connect(undefined);
  const { tools, rejected } = importTools("mcp", await client.listTools(), {
    ...options,
    transport: "stdio",
    execute: (name, args, context) =>
      callServer(connection, { name, arguments: args, isRepeatable: false }, context),
  });
  if (rejected[0] !== undefined) fail(action, rejected[0].message);
  return tools;
}
