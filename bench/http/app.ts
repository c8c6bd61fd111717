/**
 * The app of the HTTP benchmark: the handler with 1,000 tools, and bare Hono routes that answer the
 * same bytes.
 */

import { Hono } from "hono";
import { createToolHandler } from "../../src/adapters/hono/mod.ts";
import { createMcpEndpoint } from "../../src/adapters/mcp/mod.ts";
import { defineTool, ToolRegistry } from "../../mod.ts";

/** The arguments of the small tool. */
export const CALL = '{"arguments":{"n":21},"callId":"c"}';

/** A request of MCP and its headers. */
export interface McpMessage {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

function mcpMessage(method: string, params: object, headers: object = {}): McpMessage {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return {
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...headers,
    },
  };
}

export const MCP_LIST: McpMessage = mcpMessage("tools/list", {});
export const MCP_CALL: McpMessage = mcpMessage(
  "tools/call",
  { name: "double", arguments: { n: 21 } },
  { "mcp-name": "double" },
);

const registry = new ToolRegistry({
  tools: [
    defineTool({
      name: "double",
      description: "Doubles a number.",
      risk: "safe",
      parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
      execute: ({ n }) => n * 2,
    }),
    ...Array.from({ length: 999 }, (_, index) =>
      defineTool({
        name: `tool_${String(index).padStart(3, "0")}`,
        namespace: `group${index % 10}`,
        description: `Does the work of tool ${index}, as one of many that are listed together.`,
        risk: "low",
        parameters: {
          type: "object",
          properties: {
            path: { type: "string", description: "Where." },
            limit: { type: "integer", minimum: 1 },
          },
          required: ["path"],
        },
      })),
  ],
});
const handler = createToolHandler(registry, { openExecution: true });
const authorized = createToolHandler(registry, {
  authorize: (request) =>
    request.headers.get("authorization") === "Bearer sesame"
      ? { principal: "ann", scopes: ["a", "b"] }
      : new Response(null, { status: 401 }),
});
const mcp = createMcpEndpoint(registry, { openExecution: true });

interface Listing {
  readonly body: string;
  readonly headers: Record<string, string>;
}

let listing: Listing | undefined;

/**
 * The handler's answers. They are fetched during a request, because workerd allows that only then.
 */
async function listed(): Promise<Listing> {
  const response = await handler.request("http://localhost/tools");
  return listing = {
    body: await response.text(),
    headers: Object.fromEntries(response.headers),
  };
}

let mcpList: string | undefined;

/** Returns the answer of the MCP endpoint to `tools/list`. */
async function listedByMcp(): Promise<string> {
  const response = await mcp.fetch(
    new Request("http://localhost/mcp", { method: "POST", ...MCP_LIST }),
  );
  return mcpList = await response.text();
}

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

function doubled(n: number): { readonly result: unknown } & Record<string, unknown> {
  const content = n * 2;
  return {
    result: {
      content: [{ type: "text", text: JSON.stringify(content) }],
      structuredContent: content,
      resultType: "complete",
      _meta: { "io.modelcontextprotocol/serverInfo": { name: "plue", version: "0.0.0" } },
    },
    jsonrpc: "2.0",
  };
}

/** Minimal routes. The route of the tool checks the content type, and reads and writes JSON. */
const bare = new Hono()
  .get("/bare/tools", async () => {
    const { body, headers } = listing ?? await listed();
    return new Response(body, { headers });
  })
  .get("/bare/current", async (c) => {
    const { body, headers } = listing ?? await listed();
    return c.req.header("if-none-match") === headers["etag"]
      ? new Response(null, { status: 304, headers })
      : new Response(body, { headers });
  })
  .post("/bare/mcp", async (c) => {
    await c.req.json();
    return new Response(mcpList ?? await listedByMcp(), { headers: JSON_HEADERS });
  })
  .post("/bare/mcp-call", async (c) => {
    const { id, params } = await c.req.json<
      { id: number; params: { arguments: { n: number } } }
    >();
    return new Response(JSON.stringify({ ...doubled(params.arguments.n), id }), {
      headers: JSON_HEADERS,
    });
  })
  .post("/bare/execute", async (c) => {
    if (c.req.header("content-type") !== "application/json") return c.body(null, 415);
    const call = await c.req.json<{ arguments: { n: number }; callId: string }>();
    const content = call.arguments.n * 2;
    return new Response(
      JSON.stringify({ callId: call.callId, ok: true, content, durationMs: 0.001 }),
      { headers: JSON_HEADERS },
    );
  });

/** Answers with the handler or with the bare route. A runtime passes its own arguments after the request. */
export function fetch(
  request: Request,
  environment?: unknown,
  context?: unknown,
): Response | Promise<Response> {
  const { url } = request;
  // The header is read for all requests, so that its cost is also part of the bare route. `has`
  // would make Deno read all headers.
  const app = request.headers.get("authorization") === null ? handler : authorized;
  if (url.includes("/bare/")) return bare.fetch(request);
  if (url.endsWith("/mcp")) return mcp.fetch(request, environment, context);
  return app.fetch(request, environment as object, context as never);
}
