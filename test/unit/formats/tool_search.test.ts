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
const deferred = (name: string) =>
  defineTool({ name, description: "Waits.", meta: { provider: { deferLoading: true } } });
const loaded = defineTool({ name: "ping", description: "Answers." });

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
  const { names } = exportTools([find, loaded], "openai.responses");

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

  it("is ignored if OpenAI runs it, or if the export has none", () => {
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
