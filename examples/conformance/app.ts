/**
 * What the conformance suite is run against: an MCP endpoint, the same on every runtime.
 *
 * @module
 */

import { ToolRegistry } from "@plue/tools";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { Hono } from "hono";
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

/** `/mcp`, and `/healthz` for whoever waits for the server. */
export const app: Hono = new Hono();
app.all("/mcp", mcp.handle);
app.get("/healthz", (c) => c.text("ok"));
