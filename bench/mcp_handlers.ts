/** The same tools behind plue's endpoint and behind the SDK's own server. */

import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { defineTool, ToolRegistry } from "../mod.ts";
import { createMcpEndpoint } from "../src/adapters/mcp/mod.ts";

/** Answers a request. */
export type Handler = (request: Request) => Promise<Response>;

const REVISION = "2026-07-28";
/** The name of a tool. */
export const nameOf = (number: number): string => `tool_${String(number).padStart(4, "0")}`;

/** The endpoint over a registry. */
export function plue(count: number): Handler {
  const registry = new ToolRegistry({
    tools: Array.from({ length: count }, (_, number) =>
      defineTool({
        name: nameOf(number),
        description: `Adds two numbers, in way ${number}.`,
        parameters: {
          type: "object",
          properties: { a: { type: "number" }, b: { type: "number" } },
          required: ["a", "b"],
        },
        execute: ({ a, b }) => String(a + b),
      })),
  });
  // A worker may generate code while its module loads, but not during a request.
  registry.compile();
  return createMcpEndpoint(registry, { openExecution: true }).fetch;
}

/** As the SDK's documentation recommends: a server per request, with every tool registered. */
export function sdk(count: number): Handler {
  const inputSchema = z.object({ a: z.number(), b: z.number() });
  const { fetch } = createMcpHandler(() => {
    const server = new McpServer({ name: "sdk", version: "1.0.0" });
    for (let number = 0; number < count; number++) {
      server.registerTool(
        nameOf(number),
        { description: `Adds two numbers, in way ${number}.`, inputSchema },
        ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }),
      );
    }
    return server;
  });
  return (request) => fetch(request);
}

/** The requests. */
export type Method = "tools/call" | "tools/list";

/** A request of a client of the newest revision. */
export function request(method: Method): Request {
  const name = nameOf(7);
  return new Request("http://localhost/mcp", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": REVISION,
      "mcp-method": method,
      ...(method === "tools/call" ? { "mcp-name": name } : {}),
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...(method === "tools/call" ? { name, arguments: { a: 2, b: 40 } } : {}),
        _meta: {
          "io.modelcontextprotocol/protocolVersion": REVISION,
          "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1.0.0" },
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    }),
  });
}
