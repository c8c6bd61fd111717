/**
 * A service whose models write programs, the same on Workers, Bun, Deno and Node. The program of
 * the test sends a reminder for each overdue invoice, and a person approves each reminder.
 *
 * Pass `quickJs(bytes)` on Bun, Deno and Node, and `workerLoader(env.LOADER)` or `quickJs(module)` on
 * Workers: see `docs/code-mode.md`.
 */

import type { Hono } from "hono";
import { defineTool, ToolDispatcher, ToolRegistry } from "../mod.ts";
import { sealedTickets } from "../src/adapters/calls/mod.ts";
import { codeTool, type Executor } from "../src/adapters/code/mod.ts";
import { createToolHandler } from "../src/adapters/hono/mod.ts";
import { createMcpEndpoint } from "../src/adapters/mcp/mod.ts";

const invoices = defineTool({
  namespace: "crm",
  name: "invoices",
  description: "Lists the open invoices.",
  returns: { type: "array", items: { type: "object" } },
  execute: () =>
    Array.from({ length: 400 }, (_, number) => ({ id: `i${number}`, overdueDays: number % 200 })),
});

const remind = defineTool({
  namespace: "crm",
  name: "remind",
  description: "Sends a reminder for an invoice.",
  requiresApproval: true,
  parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  execute: ({ id }) => `reminded ${id}`,
});

/** Makes the service. `key`: 32 secret bytes, the same in all processes that resume calls. */
export function createCodeService(executor: Executor, key: Uint8Array): Hono {
  const toolset = codeTool(new ToolRegistry({ tools: [invoices, remind] }), { executor });
  const options = {
    // Anybody may call: for the example only.
    openExecution: true,
    dispatcher: new ToolDispatcher(toolset, {
      approve: "ask",
      tickets: sealedTickets({ keys: [key] }),
    }),
  } as const;
  const app = createToolHandler(toolset, options);
  const mcp = createMcpEndpoint(toolset, options);
  app.all("/mcp", mcp.handle);
  return app;
}
