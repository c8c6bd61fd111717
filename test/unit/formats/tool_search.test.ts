import { assert, assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import {
  accumulateCalls,
  decodeCalls,
  encodeResult,
  encodeResults,
  exportTools,
} from "../../../src/formats/mod.ts";
import { defineTool, ToolResult } from "../../../src/tool/mod.ts";

const find = defineTool({
  name: "find_tools",
  description: "Finds tools.",
  parameters: {
    type: "object",
    properties: { query: { type: "string" } },
    required: ["query"],
    additionalProperties: false,
  },
  meta: { provider: { toolSearch: true } },
});
const deferred = (name: string, namespace?: string) =>
  defineTool({
    name,
    namespace,
    description: `Does ${name}.`,
    meta: { provider: { deferLoading: true } },
  });
const loaded = defineTool({ name: "ping", description: "Answers." });
const TOOLS = [find, loaded, deferred("order", "crm"), deferred("pay"), deferred("refund", "crm")];

/** Also what the model has already. */
const FOUND = ToolResult.ok({
  tools: ["crm:refund(): Does refund.", { name: "pay" }, "ping", "find_tools", "crm:order"],
});

const searchCall = (args: unknown, more: object = {}) => ({
  type: "tool_search_call",
  execution: "client",
  id: "tsc_1",
  call_id: "call_1",
  status: "completed",
  arguments: args,
  ...more,
});

describe("a search of the host's, for OpenAI Responses", () => {
  const { tools, names, warnings, losses } = exportTools(TOOLS, "openai.responses");

  it("is exported as such, and deferred tools are not in the request", () => {
    assertEquals(
      tools.map((tool) => tool.type === "function" ? tool.name : tool),
      [
        {
          type: "tool_search",
          execution: "client",
          description: "Finds tools.",
          parameters: find.parameters,
        },
        "ping",
      ],
    );
    assertEquals(warnings.map(({ rule }) => rule), ["toolSearch", "namespaceDescription"]);
    assertEquals(losses, []);
  });

  it("is called with arguments as an object or as text", () => {
    for (const args of [{ query: "pay" }, '{"query":"pay"}']) {
      for (const response of [searchCall(args), { output: [searchCall(args)] }]) {
        const [call] = decodeCalls("openai.responses", response, names);
        assertEquals([call?.name, call?.wireName, call?.callId, call?.arguments], [
          "find_tools",
          "tool_search",
          "call_1",
          { query: "pay" },
        ]);
      }
    }
  });

  it("returns the definitions of the found tools, best first", () => {
    const [call] = decodeCalls("openai.responses", searchCall({ query: "pay" }), names);
    assert(call !== undefined);
    const [message] = encodeResults("openai.responses", [call], [FOUND], names);
    const wire = (name: string) => ({
      type: "function",
      name,
      description: `Does ${name}.`,
      parameters: { type: "object", properties: {}, additionalProperties: false },
      strict: false,
      defer_loading: true,
    });
    assertEquals<unknown>(message, {
      type: "tool_search_output",
      call_id: "call_1",
      execution: "client",
      status: "completed",
      tools: [
        {
          type: "namespace",
          name: "crm",
          description: 'Tools of "crm".',
          tools: [wire("refund"), wire("order")],
        },
        wire("pay"),
      ],
    });
  });

  it("is answered with nothing where it found nothing, does not know it, or failed", () => {
    const [call] = decodeCalls("openai.responses", searchCall({ query: "x" }), names);
    assert(call !== undefined);
    for (
      const [result, status] of [
        [ToolResult.ok({ tools: [] }), "completed"],
        [ToolResult.ok({ tools: ["hidden(): Is not here.", "find", 1, null, {}] }), "completed"],
        [ToolResult.ok("nothing"), "completed"],
        [ToolResult.error("threw", "It failed"), "incomplete"],
      ] as const
    ) {
      assertEquals<unknown>(encodeResult("openai.responses", call, result, names), {
        type: "tool_search_output",
        call_id: "call_1",
        execution: "client",
        status,
        tools: [],
      });
    }
  });

  it("loads tools that are then called by name and namespace", () => {
    const item = { type: "function_call", call_id: "c2", namespace: "crm", name: "refund" };
    const [call] = decodeCalls("openai.responses", [{ ...item, arguments: "{}" }], names);
    assertEquals(call?.name, "crm:refund");
  });

  it("is rejected if it was truncated", () => {
    const cut = searchCall('{"query":"pa', { status: "incomplete" });
    const [call] = decodeCalls("openai.responses", [cut], names);
    assertEquals(call?.problem?.code, "invalid_arguments");
  });

  it("is read from a stream once, when it is whole", () => {
    const stream = accumulateCalls("openai.responses", names);
    const item = searchCall({ query: "pay" });
    const events = [
      { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: {} } },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: { output: [item] } },
    ];
    const counts = events.map((event) => stream.push(event).length);
    assertEquals(counts, [0, 1, 0]);
    assertEquals(stream.end().map(({ name, arguments: args }) => [name, args]), [
      ["find_tools", { query: "pay" }],
    ]);
  });

  it("is not ours where OpenAI runs it, or where the export has none", () => {
    const hosted = searchCall({ paths: ["crm"] }, { execution: "server", call_id: null });
    assertEquals(decodeCalls("openai.responses", [hosted], names), []);
    const without = exportTools([loaded], "openai.responses").names;
    assertEquals(decodeCalls("openai.responses", [searchCall({})], without), []);
    const stream = accumulateCalls("openai.responses", without);
    const item = searchCall({});
    stream.push({ type: "response.output_item.added", output_index: 0, item });
    stream.push({ type: "response.output_item.done", output_index: 0, item });
    assertEquals(stream.end(), []);
  });

  it("counts only tools in the request towards its limits", () => {
    const many = Array.from({ length: 300 }, (_, n) => deferred(`tool_${n}`));
    const rules = exportTools([find, ...many], "openai.responses").warnings.map(({ rule }) => rule);
    assertEquals(rules, ["toolSearch"]);
    const hosted = exportTools(many, "openai.responses").warnings.map(({ rule }) => rule);
    assertEquals(hosted.includes("maxTools"), true);
  });
});

describe("a search of the host's, for Anthropic", () => {
  const { tools, names, warnings } = exportTools(TOOLS, "anthropic");
  const use = { type: "tool_use", id: "toolu_1", name: "find_tools", input: { query: "pay" } };

  it("is sent with the deferred tools", () => {
    assertEquals(tools.map(({ name, defer_loading }) => [name, defer_loading]), [
      ["find_tools", undefined],
      ["ping", undefined],
      ["crm__order", true],
      ["pay", true],
      ["crm__refund", true],
    ]);
    assertEquals(warnings, []);
  });

  it("returns references to the found tools", () => {
    const [call] = decodeCalls("anthropic", [use], names);
    assert(call !== undefined);
    assertEquals<unknown>(encodeResult("anthropic", call, FOUND, names), {
      type: "tool_result",
      tool_use_id: "toolu_1",
      content: ["crm__refund", "pay", "crm__order"].map((tool_name) => ({
        type: "tool_reference",
        tool_name,
      })),
    });
  });

  it("is answered in words where there is nothing to refer to, or where it failed", () => {
    const [call] = decodeCalls("anthropic", [use], names);
    assert(call !== undefined);
    const none = ToolResult.ok({ tools: ["hidden"], message: "Nothing" });
    assertEquals(
      encodeResult("anthropic", call, none, names).content,
      '{"tools":["hidden"],"message":"Nothing"}',
    );
    const failed = encodeResult("anthropic", call, ToolResult.error("threw", "It failed"), names);
    assertEquals([failed.content, failed.is_error], ["It failed", true]);
  });
});

describe("a search of the host's, elsewhere", () => {
  it("is a tool as others", () => {
    const { tools, names } = exportTools([find, loaded], "openai.chat");
    assertEquals(tools.map(({ function: { name } }) => name), ["find_tools", "ping"]);
    const call = { callId: "c", name: "find_tools", wireName: "find_tools" };
    assertEquals(
      encodeResult("openai.chat", call, ToolResult.ok({ tools: ["ping"] }), names).content,
      '{"tools":["ping"]}',
    );
  });
});
