import { defineTool, ToolRegistry } from "@plue/tools";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { legacyRequest, messageIn, MODERN, modernRequest } from "./support.ts";

let ran = 0;
const mcp = createMcpEndpoint(
  new ToolRegistry({
    tools: [defineTool({ name: "run", description: "Runs.", execute: () => ++ran })],
  }),
  { openExecution: true },
);
const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
const OLD = { "mcp-protocol-version": "2025-11-25" };

type Row = readonly [params: Record<string, unknown>, says: string];

const LISTS: readonly Row[] = [
  [
    { cursor: 5 },
    "/params/cursor must be a string, the nextCursor of the page before, not a number",
  ],
  [
    { cursor: null },
    "/params/cursor must be a string, the nextCursor of the page before, not null",
  ],
  [{ cursor: "!" }, "the cursor is none that this server gave"],
];
const CALLS: readonly Row[] = [
  [{}, "/params/name must be a tool's name, and is absent"],
  [{ name: 5 }, "/params/name must be a tool's name, not a number"],
  [{ name: "run", arguments: [1] }, "/params/arguments must be an object, not an array"],
  [{ name: "run", arguments: "{}" }, "/params/arguments must be an object, not a string"],
  [{ name: "run", arguments: null }, "/params/arguments must be an object, not null"],
  [{ name: "nope" }, 'Unknown tool: "nope"'],
];

describe("requests that ask for what cannot be", () => {
  for (const [method, rows] of [["tools/list", LISTS], ["tools/call", CALLS]] as const) {
    for (const [params, says] of rows) {
      it(`are told so in either era: ${method} ${JSON.stringify(params)}`, async () => {
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

  const LEVELS = "debug, info, notice, warning, error, critical, alert, emergency";
  const start = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "test", version: "1.0.0" },
  };
  const META = "/params/_meta/io.modelcontextprotocol~1";
  for (
    const [era, method, params, says] of [
      ["old", "initialize", undefined, "/params must be an object, and is absent"],
      ["old", "initialize", {}, "/params/protocolVersion must be a string, and is absent"],
      [
        "old",
        "initialize",
        { ...start, capabilities: [] },
        "/params/capabilities must be an object, not an array",
      ],
      [
        "old",
        "initialize",
        { ...start, capabilities: { experimental: { ["x".repeat(5_000)]: 1 } } },
        "x… must be an object, not a number",
      ],
      [
        "old",
        "initialize",
        { ...start, clientInfo: { name: 5, version: "1" } },
        "/params/clientInfo/name must be a string, not a number",
      ],
      ["old", "logging/setLevel", undefined, `/params/level must be one of ${LEVELS}, and is`],
      [
        "old",
        "logging/setLevel",
        { level: "loud" },
        `/params/level must be one of ${LEVELS}, not "loud"`,
      ],
      [
        "old",
        "tools/call",
        { name: "run", task: 5 },
        "/params/task must be an object, not a number",
      ],
      [
        "old",
        "ping",
        { _meta: { "io.modelcontextprotocol/related-task": 5 } },
        `${META}related-task must be an object, not a number`,
      ],
      ["new", "subscriptions/listen", {}, "/params/notifications must be an object, and is absent"],
      [
        "new",
        "subscriptions/listen",
        { notifications: { toolsListChanged: "yes" } },
        "/params/notifications/toolsListChanged must be true or false, not a string",
      ],
      [
        "new",
        "tools/call",
        { name: "run", _meta: { "io.modelcontextprotocol/clientInfo": { name: 5 } } },
        `${META}clientInfo/name must be a string, not a number`,
      ],
      [
        "new",
        "server/discover",
        { _meta: { "io.modelcontextprotocol/logLevel": "loud" } },
        `${META}logLevel must be one of ${LEVELS}, not "loud"`,
      ],
    ] as const
  ) {
    it(`are told so in our words: ${method} ${JSON.stringify(params)?.slice(0, 60)}`, async () => {
      const response = await mcp.fetch(
        era === "new"
          ? modernRequest(method, params)
          : legacyRequest({ jsonrpc: "2.0", id: 1, method, params }, OLD),
      );
      assertEquals(response.status, says.startsWith(META) && era === "new" ? 400 : 200);
      const { error, ...rest } = await messageIn(response);
      assertEquals(rest, { jsonrpc: "2.0", id: 1 } as object);
      assertEquals(error?.code, -32602);
      assertStringIncludes(error?.message ?? "", `Cannot answer ${method}: `);
      assertStringIncludes(error?.message ?? "", says);
      assertEquals(ran, 0);
    });
  }

  it("are told so without params, too", async () => {
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call" };
    const { error } = await messageIn(await mcp.fetch(legacyRequest(message, OLD)));
    assertStringIncludes(error?.message ?? "", "/params/name must be a tool's name, and is absent");
  });
});

describe("requests of a wrong form", () => {
  const AN_ID = "must be a whole number, or a string of at most 1000 characters";
  for (
    const [body, says] of [
      [null, "the body must be an object, not null"],
      [5, "the body must be an object, not a number"],
      [{}, '/jsonrpc must be "2.0"'],
      [{ ...ping, jsonrpc: "1.0" }, '/jsonrpc must be "2.0"'],
      [{ jsonrpc: "2.0", id: 1 }, "/method must be a string, and is absent"],
      [{ ...ping, id: null }, `/id ${AN_ID}`],
      [{ ...ping, id: {} }, `/id ${AN_ID}`],
      [{ ...ping, id: 1.5 }, `/id ${AN_ID}`],
      [{ ...ping, id: 2 ** 60 }, `/id ${AN_ID}`],
      [{ ...ping, id: "i".repeat(1_001) }, `/id ${AN_ID}`],
      [{ ...ping, params: [] }, "/params must be an object, not an array"],
      [{ ...ping, params: { _meta: "x" } }, "/params/_meta must be an object, not a string"],
      [
        { ...ping, params: { _meta: { progressToken: "t".repeat(1_001) } } },
        `/params/_meta/progressToken ${AN_ID}`,
      ],
      [[], "a batch must have 1 to 100 messages, not 0"],
      [Array.from({ length: 101 }, () => ping), "a batch must have 1 to 100 messages, not 101"],
      [[ping, 5], "/1 must be an object, not a number"],
      [[[ping]], "/0 must be an object, not an array"],
      [[ping, ping], "/1/id is the id of another request in the batch"],
      [
        [ping, { ...ping, id: 2, method: "tools/list", params: { cursor: 5 } }],
        "/1/params/cursor must be a string",
      ],
      [
        [{ ...ping, method: "tools/list" }, { ...ping, id: 2, method: "tools/list" }],
        "/1 lists the tools again: a batch may do so once",
      ],
      [[{ ...ping, method: "initialize" }], "/0/params must be an object, and is absent"],
      [
        [ping, {
          ...ping,
          id: 2,
          method: "initialize",
          params: {
            protocolVersion: "2025-03-26",
            capabilities: {},
            clientInfo: { name: "test", version: "1" },
          },
        }],
        "/1/method must not be initialize, which is sent by itself",
      ],
    ] as const
  ) {
    it(`are refused, with the place: ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const response = await mcp.fetch(legacyRequest(body));
      assertEquals(response.status, 400);
      const { error } = await messageIn(response);
      assertEquals(error?.code, -32600);
      assertStringIncludes(error?.message ?? "", `Cannot read the request: ${says}`);
    });
  }

  for (const method of ["tools/call", "tools/list", "initialize"]) {
    it(`are refused if they are deeper than anything asks for: ${method}`, async () => {
      const DEPTH = 20_000;
      const deep = `{"experimental":{"x":{"a":${"[".repeat(DEPTH)}${"]".repeat(DEPTH)}}}}`;
      const text = JSON.stringify({
        jsonrpc: "2.0",
        id: "mine",
        method,
        params: { name: "run", capabilities: 0 },
      });
      for (
        const body of [text.replace("0}", `${deep}}`), `[${text.replace("0}", `${deep}}`)}]`]
      ) {
        const response = await mcp.fetch(legacyRequest(body));
        assertEquals(response.status, 400);
        const answer = await response.json();
        assertEquals(answer.id, body.startsWith("[") ? null : "mine");
        assertEquals(answer.error.code, -32600);
        assertStringIncludes(answer.error.message, "the body must have at most 259 levels of");
      }
    });
  }

  it("keep their id in the answer", async () => {
    const refused = await mcp.fetch(legacyRequest({ ...ping, id: "mine", params: [] }));
    assertEquals((await refused.json()).id, "mine");
  });
});

describe("batches", () => {
  it("are for the revisions that have them", async () => {
    const batch = [ping, { ...ping, id: 2 }];
    for (const version of [MODERN, "2025-11-25", "2025-06-18"]) {
      const response = await mcp.fetch(legacyRequest(batch, { "mcp-protocol-version": version }));
      assertEquals(response.status, 400);
      const { error } = await messageIn(response);
      assertStringIncludes(error?.message ?? "", `revision ${version} has no batches`);
    }
    for (const headers of [{}, { "mcp-protocol-version": "2025-03-26" }]) {
      const response = await mcp.fetch(legacyRequest(batch, headers));
      assertEquals(response.status, 200);
      assertEquals((await response.text()).split("data: ").length, 3);
    }
  });
});

describe("revisions that nobody knows", () => {
  for (const version of ["2099-01-01", "x".repeat(3_000)]) {
    it(`are refused with those that are known: ${version.slice(0, 20)}`, async () => {
      const headers = { "mcp-protocol-version": version };
      const response = await mcp.fetch(legacyRequest({ ...ping, method: "tools/list" }, headers));
      assertEquals(response.status, 400);
      const { error } = await response.json();
      assertEquals(error.code, -32022);
      assertStringIncludes(error.message, "must be one of 2026-07-28, 2025-11-25, ");
      assertEquals(error.data.requested, version.slice(0, 32));
    });
  }
});
