import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { accumulateCalls, decodeCalls, exportTools } from "../../../src/formats/mod.ts";
import { defineTool } from "../../../src/tool/mod.ts";

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
    assertEquals(warnings.map(({ rule }) => rule), ["namespaceDescription"]);
    assertEquals(losses, []);
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
    assertEquals(rules, []);
    const hosted = exportTools(many, "openai.responses").warnings.map(({ rule }) => rule);
    assertEquals(hosted.includes("maxTools"), true);
  });
});

describe("a search of the host's, for Anthropic", () => {
  const { tools, warnings } = exportTools(TOOLS, "anthropic");

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
});
