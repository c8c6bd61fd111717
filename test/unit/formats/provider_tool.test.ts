import { assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../../src/execute/mod.ts";
import {
  dispatchResponse,
  exportTools,
  providerTool,
  type ProviderToolDefinition,
} from "../../../src/formats/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { defineTool } from "../../../src/tool/mod.ts";

const definitions = { anthropic: { type: "web_search_20250305", name: "web_search" } };
const search = providerTool({ name: "search", description: "Searches the web.", definitions });
const ping = defineTool({ name: "ping", description: "Answers.", execute: () => "pong" });
const toolset = buildToolset([ping, search]);

describe("providerTool()", () => {
  it("ignores the provider's calls and results, and cannot be called", async () => {
    const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
    const { names } = exportTools(toolset, "anthropic");
    assertEquals(names.idOf("search"), undefined);
    const { calls, messages } = await dispatchResponse("anthropic", {
      content: [
        { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "plue" } },
        { type: "web_search_tool_result", tool_use_id: "s1", content: [] },
        { type: "tool_use", id: "t1", name: "ping", input: {} },
      ],
    }, { dispatcher, names });
    assertEquals(calls.map(({ callId }) => callId), ["t1"]);
    assertEquals(messages[0]?.content.map(({ tool_use_id }) => tool_use_id), ["t1"]);
    const result = await dispatcher.dispatch({ name: "search" });
    assertEquals(result.ok ? "ran" : result.error.code, "not_executable");
  });

  it("needs definitions that are objects", () => {
    const make = (definitions: unknown) =>
      providerTool(
        { name: "search", description: "Searches.", definitions } as ProviderToolDefinition,
      );
    for (const none of [undefined, {}, []]) {
      assertThrows(() => make(none), TypeError, '"/definitions" must have a definition');
    }
    assertThrows(
      () => make({ gemini: "googleSearch" }),
      TypeError,
      '"/definitions/gemini" must be an object',
    );
  });
});
