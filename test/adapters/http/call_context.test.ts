import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { defineTool, ToolRegistry } from "@plue/tools";
import * as formats from "@plue/tools/formats";
import { createToolHandler, serveFormats } from "@plue/tools/hono";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { BASE, execution } from "../hono/support.ts";
import { messageIn, modernRequest } from "../mcp/support.ts";

const registry = new ToolRegistry({
  tools: [defineTool({
    name: "whose",
    description: "Says whose it is.",
    risk: "safe",
    context: {
      type: "object",
      properties: { tenant: { type: "string" } },
      required: ["tenant"],
    },
    execute: (_, { context }) => context.tenant,
  })],
});
const authorize = (request: Request) => ({
  principal: "ann",
  callContext: { tenant: request.headers.get("x-tenant") ?? undefined },
});
const app = createToolHandler(registry, { authorize, formats: serveFormats(formats) });

/** Calls the tool over HTTP. */
async function call(headers: Record<string, string>, body: object = {}) {
  const response = await app.request(`${BASE}/tools/whose/execute`, execution(body, headers));
  return { status: response.status, body: await response.json() };
}

describe("the context of a call that comes by HTTP", () => {
  it("is what authorize says, for a call and for a turn", async () => {
    assertEquals((await call({ "x-tenant": "acme" })).body.content, "acme");
    const turn = await app.request(`${BASE}/dispatch/openai.chat`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-tenant": "acme" },
      body: JSON.stringify({
        role: "assistant",
        tool_calls: [{ id: "1", type: "function", function: { name: "whose", arguments: "{}" } }],
      }),
    });
    assertEquals((await turn.json()).messages[0].content, "acme");
  });

  it("is what authorize says, for MCP", async () => {
    const mcp = createMcpEndpoint(registry, { authorize });
    const request = modernRequest("tools/call", { name: "whose" }, { "x-tenant": "acme" });
    const { result } = await messageIn(await mcp.fetch(request)) as {
      result: { content: [{ text: string }] };
    };
    assertEquals(result.content[0].text, "acme");
  });

  it("is never the client's", async () => {
    const context = { tenant: "evil" };
    for (const body of [{ context }, { callContext: context }]) {
      const { status, body: problem } = await call({ "x-tenant": "acme" }, body);
      assertEquals(status, 400);
      assertStringIncludes(problem.detail, Object.keys(body)[0] ?? "");
    }
    assertEquals((await call({ "x-tenant": "acme" }, { arguments: { context } })).status, 422);
    const missing = await call({}, { arguments: {} });
    assertEquals([missing.status, missing.body.retryable], [409, false]);
    assertStringIncludes(missing.body.detail, "its host gave a wrong context");
  });
});
