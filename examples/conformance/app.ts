/**
 * What the conformance suite is run against: an MCP endpoint, the same on every runtime.
 *
 * @module
 */

import { ToolRegistry } from "@plue/tools";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { conformanceTools } from "./tools.ts";

const registry: ToolRegistry = new ToolRegistry({ tools: conformanceTools(change) });

/** Takes a tool out if it is there, and puts it in if not. */
function change(): void {
  if (!registry.unregisterTool("test_changing_tool")) {
    registry.registerTool({ name: "test_changing_tool", description: "Comes and goes." });
  }
}

const mcp = createMcpEndpoint(registry, {
  name: "plue-conformance",
  version: "0.1.0",
  openExecution: true,
});

/** Answers `/mcp`, and `/healthz` to whoever waits for the server. */
export function answer(request: Request, env?: unknown, context?: unknown): Promise<Response> {
  switch (new URL(request.url).pathname) {
    case "/mcp":
      return mcp.fetch(request, env, context);
    case "/healthz":
      return Promise.resolve(new Response("ok"));
    default:
      return Promise.resolve(new Response(null, { status: 404 }));
  }
}
