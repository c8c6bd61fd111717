import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { createToolHandler, serveFormats } from "@plue/tools/hono";
import { countTokens, fitBudget } from "@plue/tools/finding";
import * as formats from "@plue/tools/formats";
import { ToolRegistry } from "@plue/tools";
import { BASE, execution, sampleRegistry } from "./support.ts";
import { waitingTool } from "../../support/waiting_tool.ts";

describe("GET /tools?format=…&tokens=", () => {
  it("exports tools within the budget, and names the omitted ones", async () => {
    const app = createToolHandler(sampleRegistry(), {
      formats: serveFormats(formats, { fitBudget }),
    });
    const body = await (await app.request(`${BASE}/tools?format=anthropic&tokens=70`)).json();
    assert(body.tokens <= 70 && body.tokens > 0);
    assertEquals(body.tokens, countTokens(JSON.stringify(body.tools)));
    assertEquals(body.shown.length, body.tools.length);
    assertEquals(
      body.shown.map(({ id }: { id: string }) => id),
      body.names.map(({ id }: { id: string }) => id),
    );
    assert(body.leftOut.every(({ reason }: { reason: string }) => reason === "budget"));
  });
});

describe("POST /dispatch/:target", () => {
  it("can be aborted by the id that it is given", async () => {
    const { tool, begun } = waitingTool();
    const app = createToolHandler(new ToolRegistry({ tools: [tool] }), {
      formats: serveFormats(formats),
      openExecution: true,
    });
    const turn = execution([{ type: "tool_use", id: "1", name: "wait", input: {} }], {
      "x-call-id": "turn-1",
    });
    const answer = app.request(`${BASE}/dispatch/anthropic`, turn);
    await begun;
    const abort = await app.request(`${BASE}/executions/turn-1/abort`, { method: "POST" });
    assertEquals(abort.status, 202);
    const response = await answer;
    assertEquals(response.headers.get("x-call-id"), "turn-1");
    assertEquals((await response.json()).calls[0].result.error.code, "aborted");
  });
});
