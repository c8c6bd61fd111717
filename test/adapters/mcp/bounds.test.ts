/** Runs `bounds.json`, and the requests that are too deep or too long for a file. */

import { ToolRegistry } from "@plue/tools";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import data from "./bounds.json" with { type: "json" };
import { legacyRequest, messageIn, MODERN, modernRequest } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";
import { assertMatches, repeated } from "../hono/support.ts";

let ran = 0;
const mcp = createMcpEndpoint(
  new ToolRegistry({
    tools: [toolOf("run", () => ++ran)],
  }),
  { openExecution: true },
);
const OLD = { "mcp-protocol-version": "2025-11-25" };

/** A request, and the error in its response. */
interface Exchange {
  readonly era: "modern" | "legacy";
  readonly headers?: Record<string, string>;
  /** The whole body; by default a message with `method` and `params`. */
  readonly body?: unknown;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly status: number;
  /** The id in the response, which then has no other members. By default, it is not compared. */
  readonly id?: unknown;
  readonly code: number;
  /** `…` represents any text. */
  readonly message: string;
  readonly data?: unknown;
}

function requestOf(exchange: Exchange): Request {
  const { era, method = "", params, headers } = exchange;
  if (era === "modern") return modernRequest(method, params, headers);
  return "body" in exchange
    ? legacyRequest(repeated(JSON.stringify(exchange.body)), headers)
    : legacyRequest({ jsonrpc: "2.0", id: 1, method, params }, headers ?? OLD);
}

describe("requests that cannot be answered", () => {
  for (const { title, exchanges } of data) {
    // JSON has no narrower types.
    for (const exchange of exchanges as readonly Exchange[]) {
      const { era, method, body, params } = exchange;
      const what = JSON.stringify(body ?? [era, method, params]);
      it(`${title}: ${what}`.slice(0, 140), async () => {
        const response = await mcp.fetch(requestOf(exchange));
        assertEquals(response.status, exchange.status);
        const { error, ...rest } = await messageIn(response);
        assertEquals(error?.code, exchange.code);
        assertMatches(error?.message, exchange.message);
        if ("data" in exchange) assertMatches(error, { data: exchange.data });
        if ("id" in exchange) assertEquals(rest, { jsonrpc: "2.0", id: exchange.id } as object);
        assertEquals(ran, 0);
      });
    }
  }

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
