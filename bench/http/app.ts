/**
 * What the HTTP benchmark measures: the handler with 1,000 tools, and beside it bare Hono routes that
 * answer the same bytes.
 *
 * @module
 */

import { Hono } from "hono";
import { createToolHandler } from "../../src/adapters/hono/mod.ts";
import { defineTool, ToolRegistry } from "../../mod.ts";

/** The arguments of the small tool, as they are sent. */
export const CALL = '{"arguments":{"n":21},"callId":"c"}';

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

interface Listing {
  readonly body: string;
  readonly headers: Record<string, string>;
}

let listing: Listing | undefined;

/** What the handler answers. Asked for while a request is answered: workerd allows it only then. */
async function listed(): Promise<Listing> {
  const response = await handler.request("http://localhost/tools");
  return listing = {
    body: await response.text(),
    headers: Object.fromEntries(response.headers),
  };
}

/** Reads JSON, calls the function, writes JSON: what any route does that runs something. */
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
  .post("/bare/execute", async (c) => {
    const call = await c.req.json<{ arguments: { n: number }; callId: string }>();
    const content = call.arguments.n * 2;
    return new Response(
      JSON.stringify({ callId: call.callId, ok: true, content, durationMs: 0.001 }),
      { headers: { "content-type": "application/json", "cache-control": "no-store" } },
    );
  });

/** Answers with the one or the other. */
export function fetch(request: Request): Response | Promise<Response> {
  return new URL(request.url).pathname.startsWith("/bare/")
    ? bare.fetch(request)
    : handler.fetch(request);
}
