/** Requests that are too deep or too long to be stored in a transcript file. */

import { ToolRegistry } from "@plue/tools";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import data from "./transcripts/bounds.json" with { type: "json" };
import { legacyRequest, messageIn, MODERN, modernRequest } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";
import { runTranscripts } from "../hono/transcript.ts";

let ran = 0;
const mcp = createMcpEndpoint(
  new ToolRegistry({ tools: [toolOf("run", () => ++ran)] }),
  { openExecution: true },
);
const OLD = { "mcp-protocol-version": "2025-11-25" };

describe("requests that cannot be answered", () => {
  runTranscripts(data, { isMcp: true });

  it("are rejected with a position that is cut", async () => {
    const experimental = { ["x".repeat(5_000)]: 1 };
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: { experimental },
      clientInfo: { name: "test", version: "1.0.0" },
    };
    const message = { jsonrpc: "2.0", id: 1, method: "initialize", params };
    const { error } = await messageIn(await mcp.fetch(legacyRequest(message, OLD)));
    assertEquals(error?.code, -32602);
    assertStringIncludes(error?.message ?? "", "Cannot answer initialize: /params");
    assertStringIncludes(
      error?.message ?? "",
      "x…: Invalid input: expected record, received number",
    );
  });

  it("are rejected if _meta or the params of initialize have too many values", async () => {
    const many = { many: Array(1_000).fill(0) };
    for (
      const [method, params, pointer] of [
        ["tools/list", { _meta: many }, "/params/_meta"],
        ["initialize", { capabilities: { experimental: many } }, "/params"],
      ] as const
    ) {
      const message = { jsonrpc: "2.0", id: 1, method, params };
      const response = await mcp.fetch(legacyRequest(message, OLD));
      const { error } = await messageIn(response);
      assertEquals([response.status, error?.code], [400, -32600]);
      assertStringIncludes(error?.message ?? "", `${pointer} must have at most 1000 values`);
    }
  });

  it("are rejected on the fast path, too", async () => {
    for (const wrong of [{ jsonrpc: "1.0" }, { id: 1.5 }, { id: null }]) {
      const request = modernRequest("tools/call", { name: "run" });
      const body = { ...await request.clone().json(), ...wrong };
      const response = await mcp.fetch(new Request(request, { body: JSON.stringify(body) }));
      assertEquals(response.status, 400);
      assertEquals((await messageIn(response)).error?.code, -32600);
      assertEquals(ran, 0);
    }
  });

  for (const method of ["tools/call", "tools/list", "initialize"]) {
    it(`are rejected if they are too deep: ${method}`, async () => {
      const DEPTH = 20_000;
      const deep = `{"experimental":{"x":{"a":${"[".repeat(DEPTH)}${"]".repeat(DEPTH)}}}}`;
      const text = JSON.stringify({
        jsonrpc: "2.0",
        id: "mine",
        method,
        params: { name: "run", capabilities: 0 },
      });
      const response = await mcp.fetch(legacyRequest(text.replace("0}", `${deep}}`)));
      assertEquals(response.status, 400);
      const answer = await response.json();
      assertEquals(answer.id, "mine");
      assertEquals(answer.error.code, -32600);
      assertStringIncludes(answer.error.message, "the body must have at most 258 levels of");
    });
  }

  for (const version of [undefined, "2025-03-26", "2025-06-18", "2025-11-25", MODERN]) {
    it(`are rejected as a batch of 20,000 levels (${version})`, async () => {
      const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
      const headers = version === undefined ? {} : { "mcp-protocol-version": version };
      const response = await mcp.fetch(legacyRequest(deep, headers));
      const { id, error } = await response.json();
      assertEquals([response.status, id, error.code, ran], [400, null, -32600, 0]);
      assertStringIncludes(error.message, "Cannot read the request: it is a batch");
    });
  }
});
