import { defineTool, ToolRegistry, ToolResult } from "@plue/tools";
import { createMcpEndpoint } from "@plue/tools/mcp";
import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { plainRequestOf } from "../../../src/adapters/mcp/fast_path.ts";
import { modernRequest } from "./support.ts";
import { toolOf } from "../../support/tool_of.ts";

const answers = new Map<string, unknown>([
  ["text", "forty-two"],
  ["number", 42],
  ["nothing", undefined],
  ["null", null],
  ["list", [1, { two: 2 }]],
  ["object", { a: { b: [] } }],
  ["failure", ToolResult.error("unavailable", "Not today")],
  [
    "image",
    ToolResult.blocks([{ type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" }], {
      structuredContent: { dots: 1 },
      metadata: { x: 1 },
    }),
  ],
  // Values that the types exclude.
  ["more", ToolResult.blocks([{ type: "text", text: "x", extra: 1 }] as unknown as [])],
  ["broken", ToolResult.blocks([{ type: "smell" }] as unknown as [])],
]);
const tools = [...answers].map(([name, answer]) => toolOf(name, () => answer));
const add = defineTool({
  name: "add",
  description: "Adds.",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  returns: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] },
  execute: ({ a, b }) => ({ sum: a + b }),
});
const throwing = toolOf("throwing", () => {
  throw new Error("Broken");
});
type Call = readonly [
  what: string,
  params: Record<string, unknown>,
  headers?: Record<string, string>,
];
const CLIENT = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

describe("a call that requests only its result", () => {
  for (const openExecution of [true, false]) {
    const mcp = createMcpEndpoint(new ToolRegistry({ tools: [...tools, add, throwing] }), {
      openExecution,
      name: "tools",
      version: "1.0.0",
    });
    const answerTo = async (
      params: Record<string, unknown>,
      headers: Record<string, string>,
      meta: Record<string, unknown>,
    ): Promise<unknown> => {
      const response = await mcp.fetch(
        modernRequest("tools/call", {
          ...params,
          _meta: { ...params["_meta"] as Record<string, unknown> | undefined, ...meta },
        }, headers),
      );
      const { status } = response;
      return { status, headers: [...response.headers], body: await response.text() };
    };
    const calls: readonly Call[] = [
      ...[...answers.keys(), "throwing", "nope", "constructor", "", "x".repeat(500)]
        .map((name) => [name.slice(0, 20), { name }] as const),
      ["arguments", { name: "add", arguments: { a: 1, b: 2 } }],
      ["wrong arguments", { name: "add", arguments: { a: "1" } }],
      ["no arguments", { name: "add" }],
      ["an argument __proto__", { name: "text", arguments: JSON.parse('{"__proto__":{"a":1}}') }],
      ["a trace", { name: "text", _meta: { traceparent: "00-1", tracestate: "", baggage: "a=b" } }],
      ["capabilities", { name: "text", _meta: { [CAPABILITIES]: { elicitation: { form: {} } } } }],
      ["wrong capabilities", { name: "text", _meta: { [CAPABILITIES]: 5 } }],
      ["no capabilities", { name: "text", _meta: { [CAPABILITIES]: undefined } }],
      ["no client", { name: "text", _meta: { [CLIENT]: undefined } }],
      ["a wrong client", { name: "text", _meta: { [CLIENT]: { name: 5 } } }],
      ["another name in the header", { name: "text" }, { "mcp-name": "number" }],
      ["another method in the header", { name: "text" }, { "mcp-method": "tools/list" }],
      ["another version in the header", { name: "text" }, { "mcp-protocol-version": "2025-11-25" }],
      ["a header of arguments that nobody asked for", { name: "text" }, { "mcp-param-x": "1" }],
    ];
    for (const [what, params, headers = {}] of calls) {
      const where = openExecution ? "open" : "closed";
      it(`is answered as the SDK does: ${what || "no name"}, ${where}`, async () => {
        // The SDK handles messages that the fast path does not recognise.
        const bySdk = await answerTo(params, headers, { "example/unknown": 1 });
        assertEquals(await answerTo(params, headers, {}), bySdk);
      });
    }
  }
});

describe("a list that requests only its first page", () => {
  for (const pageSize of [1_000, 3]) {
    const registry = new ToolRegistry({ tools: [...tools, add] });
    const mcp = createMcpEndpoint(registry, { pageSize, name: "tools", version: "1.0.0" });
    const answerTo = async (
      params: Record<string, unknown>,
      headers: Record<string, string> = {},
    ): Promise<unknown> => {
      const response = await mcp.fetch(modernRequest("tools/list", params, headers));
      const { status } = response;
      return { status, headers: [...response.headers], body: await response.text() };
    };
    const unusual = { _meta: { "example/unknown": 1 } };
    for (
      const [what, params, headers] of [
        ["plain", {}],
        ["a cursor", { cursor: btoa("list") }],
        ["a wrong cursor", { cursor: "!" }],
        ["no capabilities", { _meta: { [CAPABILITIES]: undefined } }],
        ["another method in the header", {}, { "mcp-method": "tools/call" }],
        ["a name in the header", {}, { "mcp-name": "text" }],
        ["another version in the header", {}, { "mcp-protocol-version": "2025-11-25" }],
      ] as readonly Call[]
    ) {
      it(`is answered as the SDK does: ${what}, ${pageSize} per page`, async () => {
        const bySdk = await answerTo({
          ...params,
          _meta: { ...unusual._meta, ...params["_meta"] as Record<string, unknown> | undefined },
        }, headers);
        assertEquals(await answerTo(params, headers), bySdk);
      });
    }

    it(`answers each id: ${pageSize} per page`, async () => {
      for (const id of [1, 2, "2", 'a"b', 2]) {
        const request = modernRequest("tools/list");
        const body = JSON.stringify({ ...await request.clone().json(), id });
        const answer = await (await mcp.fetch(new Request(request, { body }))).json();
        assertEquals(answer.id, id);
        assertEquals(answer.result.tools[0].name, "add");
      }
    });

    it(`follows the registry: ${pageSize} per page`, async () => {
      await answerTo({});
      registry.unregisterTool("add");
      assertEquals(await answerTo({}), await answerTo(unusual));
      registry.registerTool(add);
      assertEquals(await answerTo({}), await answerTo(unusual));
    });
  }
});

describe("plainRequestOf()", () => {
  const isPlain = async (
    params: Record<string, unknown>,
    headers: Record<string, string> = {},
  ): Promise<boolean> => {
    const request = modernRequest("tools/call", { name: "add", ...params }, headers);
    return plainRequestOf(await request.json(), request.headers) !== undefined;
  };

  it("responds to a call that expects only its result", async () => {
    assertEquals(await isPlain({ arguments: { a: 1 }, _meta: { tracestate: "a=b" } }), true);
  });

  it("does not read the signal of a request with a short call", async () => {
    const request = modernRequest("tools/call", { name: "add", arguments: { a: 1, b: 2 } });
    let count = 0;
    Object.defineProperty(request, "signal", {
      get() {
        count++;
        return new AbortController().signal;
      },
    });
    const mcp = createMcpEndpoint(new ToolRegistry({ tools: [add] }), { openExecution: true });
    const { result } = await (await mcp.fetch(request)).json();
    assertEquals([result.structuredContent, count], [{ sum: 3 }, 0]);
  });

  it("responds to a request for the first page of a list", async () => {
    const request = modernRequest("tools/list");
    assertEquals(plainRequestOf(await request.json(), request.headers)?.method, "tools/list");
  });

  for (
    const [what, params, headers] of [
      ["progress", { _meta: { progressToken: 1 } }],
      ["log messages", { _meta: { "io.modelcontextprotocol/logLevel": "info" } }],
      ["what nobody knows here", { _meta: { "example/unknown": 1 } }],
      ["an answer to a question", { inputResponses: {} }],
      ["state", { requestState: "x" }],
      ["another revision", {}, { "mcp-protocol-version": "2025-11-25" }],
      ["another name in the header", {}, { "mcp-name": "sub" }],
    ] as const
  ) {
    it(`passes to the SDK a call with ${what}`, async () => {
      assertEquals(await isPlain(params, headers), false);
    });
  }
});
