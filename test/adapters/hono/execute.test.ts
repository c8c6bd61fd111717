import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { ToolRegistry } from "@plue/tools";
import { BASE, execution, handler, problemOf } from "./support.ts";
import { waitingTool } from "../../support/waiting_tool.ts";

const OPEN: ToolHandlerOptions = { openExecution: true };
const echo = `${BASE}/tools/echo/execute`;

describe("POST /tools/:id/execute", () => {
  it("rejects a body over the limit without a declared length", async () => {
    const app = handler({ ...OPEN, maxBodyBytes: 64 });
    const body = JSON.stringify({ arguments: { text: "x".repeat(64) } });
    const chunks = new ReadableStream({
      start(controller) {
        for (const char of body) controller.enqueue(new TextEncoder().encode(char));
        controller.close();
      },
    });
    const streamed = await app.request(
      new Request(echo, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: chunks,
        duplex: "half",
      } as RequestInit),
    );
    assertEquals(streamed.status, 413);
    assertEquals((await problemOf(streamed)).code, "payload_too_large");
  });

  it("aborts the tool when the client goes away", async () => {
    const client = new AbortController();
    const { tool, begun, aborted } = waitingTool();
    const app = createToolHandler(new ToolRegistry({ tools: [tool] }), OPEN);
    const answer = app.request(
      new Request(`${BASE}/tools/wait/execute`, { ...execution({}), signal: client.signal }),
    );
    await begun;
    client.abort();
    await aborted;
    const response = await answer;
    assertEquals(response.status, 499);
    assertEquals((await problemOf(response)).code, "aborted");
  });
});
