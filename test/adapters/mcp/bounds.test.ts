import { ToolRegistry } from "@plue/tools";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { legacyRequest, messageIn, MODERN, modernRequest } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

let ran = 0;
const mcp = createMcpEndpoint(
  new ToolRegistry({
    tools: [toolOf("run", () => ++ran)],
  }),
  { openExecution: true },
);
const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
const OLD = { "mcp-protocol-version": "2025-11-25" };

type Row = readonly [params: Record<string, unknown>, says: string];

const LISTS: readonly Row[] = [
  [{ cursor: 5 }, "/params/cursor: Invalid input: expected string, received number"],
  [{ cursor: null }, "/params/cursor: Invalid input: expected string, received null"],
  [{ cursor: "!" }, 'the cursor is not valid; send the "nextCursor" of the page before'],
];
const CALLS: readonly Row[] = [
  [{}, "/params/name: Invalid input: expected string, received undefined"],
  [{ name: 5 }, "/params/name: Invalid input: expected string, received number"],
  [{ name: "run", arguments: [1] }, "/params/arguments: Invalid input: expected record"],
  [{ name: "run", arguments: "{}" }, "/params/arguments: Invalid input: expected record"],
  [{ name: "run", arguments: null }, "/params/arguments: Invalid input: expected record"],
  [{ name: "nope" }, 'Unknown tool: "nope"'],
];

describe("requests that ask for what cannot be", () => {
  for (const [method, rows] of [["tools/list", LISTS], ["tools/call", CALLS]] as const) {
    for (const [params, says] of rows) {
      it(`are rejected in either era: ${method} ${JSON.stringify(params)}`, async () => {
        const message = { jsonrpc: "2.0", id: 1, method, params };
        for (const request of [modernRequest(method, params), legacyRequest(message, OLD)]) {
          const response = await mcp.fetch(request);
          assertEquals(response.status, 200);
          const { error, ...rest } = await messageIn(response);
          assertEquals(rest, { jsonrpc: "2.0", id: 1 } as object);
          assertEquals(error?.code, -32602);
          assertStringIncludes(error?.message ?? "", says);
        }
        assertEquals(ran, 0);
      });
    }
  }

  const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
  const start = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "test", version: "1.0.0" },
  };
  for (
    const [method, params, says] of [
      ["initialize", undefined, "/params: Invalid input: expected object, received undefined"],
      ["initialize", {}, "/params/protocolVersion: Invalid input: expected string"],
      [
        "initialize",
        { ...start, capabilities: [] },
        "/params/capabilities: Invalid input: expected object, received array",
      ],
      [
        "initialize",
        { ...start, capabilities: { experimental: { ["x".repeat(5_000)]: 1 } } },
        "x…: Invalid input: expected record, received number",
      ],
      [
        "initialize",
        { ...start, clientInfo: { name: 5, version: "1" } },
        "/params/clientInfo/name: Invalid input: expected string, received number",
      ],
      ["logging/setLevel", undefined, "/params: Invalid input: expected object"],
      [
        "logging/setLevel",
        { level: "loud" },
        `/params/level: Invalid option: expected one of "${LEVELS.join('"|"')}"`,
      ],
      [
        "tools/call",
        { name: "run", task: 5 },
        "/params/task: Invalid input: expected object, received number",
      ],
      ["tools/call", undefined, "/params: Invalid input: expected object, received undefined"],
    ] as const
  ) {
    it(`are rejected with their position: ${method} ${JSON.stringify(params)?.slice(0, 60)}`, async () => {
      const response = await mcp.fetch(
        legacyRequest({ jsonrpc: "2.0", id: 1, method, params }, OLD),
      );
      assertEquals(response.status, 200);
      const { error, ...rest } = await messageIn(response);
      assertEquals(rest, { jsonrpc: "2.0", id: 1 } as object);
      assertEquals(error?.code, -32602);
      assertStringIncludes(error?.message ?? "", `Cannot answer ${method}: /params`);
      assertStringIncludes(error?.message ?? "", says);
      assertEquals(ran, 0);
    });
  }

  const CLIENT = "io.modelcontextprotocol/clientInfo";
  const LEVEL = "io.modelcontextprotocol/logLevel";
  for (
    const [status, method, params, says] of [
      [200, "subscriptions/listen", {}, "'notifications' is required"],
      [
        200,
        "subscriptions/listen",
        { notifications: { toolsListChanged: "yes" } },
        "'notifications' is required and must be a valid SubscriptionFilter",
      ],
      [400, "tools/call", { name: "run", _meta: { [CLIENT]: { name: 5 } } }, `${CLIENT}.name: `],
      [400, "server/discover", { _meta: { [LEVEL]: "loud" } }, `${LEVEL}: Invalid option: `],
    ] as const
  ) {
    it(`are rejected by the SDK: ${method} ${JSON.stringify(params).slice(0, 60)}`, async () => {
      const response = await mcp.fetch(modernRequest(method, params));
      assertEquals(response.status, status);
      const { error } = await messageIn(response);
      assertEquals(error?.code, -32602);
      assertStringIncludes(error?.message ?? "", says);
      assertEquals(ran, 0);
    });
  }
});

describe("requests of a wrong form", () => {
  const NO_MESSAGE = "Bad Request: the request body is not a valid JSON-RPC message";
  for (
    const [body, says] of [
      [null, NO_MESSAGE],
      [5, NO_MESSAGE],
      [{}, NO_MESSAGE],
      [{ ...ping, jsonrpc: "1.0" }, NO_MESSAGE],
      [{ jsonrpc: "2.0", id: 1 }, NO_MESSAGE],
      [{ ...ping, id: null }, NO_MESSAGE],
      [{ ...ping, id: {} }, NO_MESSAGE],
      [{ ...ping, id: 1.5 }, NO_MESSAGE],
      [{ ...ping, id: 2 ** 60 }, NO_MESSAGE],
      [{ ...ping, params: [] }, NO_MESSAGE],
      [{ ...ping, params: { _meta: "x" } }, NO_MESSAGE],
      [{ ...ping, params: { _meta: { "io.modelcontextprotocol/related-task": 5 } } }, NO_MESSAGE],
    ] as const
  ) {
    it(`are rejected by the SDK: ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const response = await mcp.fetch(legacyRequest(body));
      assertEquals(response.status, 400);
      const { error } = await messageIn(response);
      assertEquals(error?.code, -32600);
      assertEquals(error?.message, says);
    });
  }

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
});

describe("requests beyond the bounds", () => {
  const TOO_LONG = "must have at most 1000 characters";
  for (
    const [body, says] of [
      [{ ...ping, id: "i".repeat(1_001) }, `/id ${TOO_LONG}`],
      [
        { ...ping, params: { _meta: { progressToken: "t".repeat(1_001) } } },
        `/params/_meta/progressToken ${TOO_LONG}`,
      ],
    ] as const
  ) {
    it(`are rejected, with the position: ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const response = await mcp.fetch(legacyRequest(body));
      assertEquals(response.status, 400);
      const { error } = await messageIn(response);
      assertEquals(error?.code, -32600);
      assertStringIncludes(error?.message ?? "", `Cannot read the request: ${says}`);
    });
  }

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

  it("keep their id in the answer", async () => {
    const refused = await mcp.fetch(legacyRequest({ ...ping, id: "mine", params: [] }));
    assertEquals((await refused.json()).id, "mine");
  });
});

describe("batches", () => {
  const batch = [ping, { ...ping, id: 2 }];
  const DEEP = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  for (const version of [undefined, "2025-03-26", "2025-06-18", "2025-11-25", MODERN]) {
    for (const body of [batch, [], [ping], DEEP]) {
      it(`are rejected (${version}): ${JSON.stringify(body).slice(0, 40)}`, async () => {
        const headers = version === undefined ? {} : { "mcp-protocol-version": version };
        const response = await mcp.fetch(legacyRequest(body, headers));
        assertEquals(response.status, 400);
        const { id, error } = await response.json();
        assertEquals([id, error.code, ran], [null, -32600, 0]);
        assertStringIncludes(error.message, "Cannot read the request: it is a batch");
      });
    }
  }
});

describe("revisions that nobody knows", () => {
  const version = "2099-01-01";
  const headers = { "mcp-protocol-version": version };

  it("are rejected with a list of the supported ones", async () => {
    const _meta = { "io.modelcontextprotocol/protocolVersion": version };
    const response = await mcp.fetch(modernRequest("tools/list", { _meta }, headers));
    assertEquals(response.status, 400);
    const { error } = await response.json();
    assertEquals(error.code, -32022);
    assertEquals(error.data.requested, version);
    assertEquals(error.data.supported, [MODERN]);
  });

  it("are rejected even if only the header names them", async () => {
    const response = await mcp.fetch(legacyRequest({ ...ping, method: "tools/list" }, headers));
    assertEquals(response.status, 400);
    const { error } = await response.json();
    assertEquals(error.code, -32602);
    assertStringIncludes(error.message, `protocol revision ${version}`);
  });
});
