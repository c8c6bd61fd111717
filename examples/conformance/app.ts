/**
 * The MCP endpoint that the conformance suite tests, the same on every runtime.
 *
 * @module
 */

import { ToolRegistry } from "@plue/tools";
import { createMcpEndpoint, type McpEndpoint } from "@plue/tools/mcp";
import { Hono } from "hono";
import { extend } from "./extension.ts";
import { conformanceTools } from "./tools.ts";

const registry: ToolRegistry = new ToolRegistry({
  tools: conformanceTools(change, () => mcp.notify.promptsChanged()),
});

/** Removes a tool, or adds it if it is missing, so that the list changes. */
function change(): void {
  if (!registry.unregisterTool("test_changing_tool")) {
    registry.registerTool({ name: "test_changing_tool", description: "Comes and goes." });
  }
}

const mcp: McpEndpoint = createMcpEndpoint(registry, {
  name: "plue-conformance",
  version: "0.1.0",
  openExecution: true,
  extend,
});

/** Serves `/mcp`, and `/healthz` to see when the server is up. */
export const app: Hono = new Hono();
app.all("/mcp", mcp.handle);
app.get("/healthz", (c) => c.text("ok"));
