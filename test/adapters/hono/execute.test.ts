import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { createToolHandler, type ToolHandlerOptions } from "@plue/tools/hono";
import { ToolRegistry } from "@plue/tools";
import { BASE, execution, handler, problemOf } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

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
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const registry = new ToolRegistry({
      tools: [toolOf("t", (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted.resolve();
            reject(signal.reason);
          });
          started.resolve();
        }))],
    });
    const app = createToolHandler(registry, OPEN);
    const answer = app.request(
      new Request(`${BASE}/tools/t/execute`, { ...execution({}), signal: client.signal }),
    );
    await started.promise;
    client.abort();
    await aborted.promise;
    const response = await answer;
    assertEquals(response.status, 499);
    assertEquals((await problemOf(response)).code, "aborted");
  });
});
