/** The MCP endpoint that the conformance suite tests, the same on every runtime. */

import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { callTasks, memoryCallStore, sealedTickets } from "@plue/tools/calls";
import { createMcpEndpoint, type McpEndpoint } from "@plue/tools/mcp";
import { Hono } from "hono";
import { askingTools } from "./asking_tools.ts";
import { extend } from "./extension.ts";
import { taskTools } from "./task_tools.ts";
import { conformanceTools } from "./tools.ts";

const registry: ToolRegistry = new ToolRegistry({
  tools: [
    ...conformanceTools(change, () => mcp.notify.promptsChanged()),
    ...askingTools(),
    ...taskTools(),
  ],
});
// A real service reads its key from a secret, which all of its processes share after a restart.
const key = new TextEncoder().encode("32 bytes that are for tests only");
const store = memoryCallStore();
const dispatcher = new ToolDispatcher(registry, { tickets: sealedTickets({ keys: [key], store }) });

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
  dispatcher,
  tasks: callTasks({ store, pollMs: 100 }),
  taskAfterMs: 200,
  extend,
});

/** Serves `/mcp`, and `/healthz` to see when the server is up. */
export const app: Hono = new Hono();
app.all("/mcp", mcp.handle);
app.get("/healthz", (c) => c.text("ok"));
