import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { typeboxEngine } from "../../../src/adapters/typebox/mod.ts";
import { ToolDispatcher } from "../../../src/execute/mod.ts";
import {
  dispatchResponse,
  exportTools,
  providerTool,
  type ProviderToolDefinition,
  type TargetName,
} from "../../../src/formats/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { defineTool } from "../../../src/tool/mod.ts";

const definitions = {
  "anthropic": { type: "web_search_20250305", name: "web_search", max_uses: 3 },
  "openai.responses": { type: "web_search" },
  "gemini": { googleSearch: {} },
  "bedrock": { systemTool: { name: "nova_grounding" } },
  "ai-sdk": { type: "provider" },
} as const;
const search = providerTool({ name: "search", description: "Searches the web.", definitions });
const ping = defineTool({ name: "ping", description: "Answers.", execute: () => "pong" });
const toolset = buildToolset([ping, search]);

describe("providerTool()", () => {
  it("is exported as the provider's own definition, with the other tools", () => {
    const rows = [
      ["anthropic", "anthropic"],
      ["anthropic.strict", "anthropic"],
      ["openai.responses", "openai.responses"],
      ["openai.responses.strict", "openai.responses"],
      ["gemini", "gemini"],
      ["bedrock", "bedrock"],
    ] as const;
    for (const [target, from] of rows) {
      const { tools, rejected, names } = exportTools(toolset, target);
      assertEquals<unknown>(tools.at(-1), definitions[from], target);
      assertEquals([tools.length, rejected, names.idOf("search")], [2, [], undefined], target);
    }
    assertEquals<unknown>(exportTools([search], "gemini").tools, [{ googleSearch: {} }]);
  });

  it("is rejected without a definition for the target, and if tools are not a list", () => {
    const why = (target: TargetName) =>
      exportTools(toolset, target).rejected.map(({ rule, message }) => `${rule}: ${message}`)[0];
    assertStringIncludes(
      why("mistral") ?? "",
      'definitions: Cannot export "search" to mistral: a provider runs it, and it is defined for ' +
        "anthropic, openai.responses, gemini, bedrock, ai-sdk only",
    );
    assertStringIncludes(why("ai-sdk") ?? "", "tools are not a list");
  });

  it("is rejected where another tool has its name on the wire", () => {
    const own = defineTool({ name: "web_search", description: "Searches." });
    const twin = providerTool({ name: "twin", description: "Searches.", definitions });
    const { tools, rejected } = exportTools([search, twin, own], "anthropic");
    assertEquals([tools.length, rejected.map(({ tool }) => tool)], [1, ["search", "twin"]]);
    assertStringIncludes(rejected[0]?.message ?? "", 'another tool is sent as "web_search"');
    assertEquals(exportTools([search, twin], "anthropic").rejected.map(({ tool }) => tool), [
      "twin",
    ]);
    assertEquals(exportTools([search, own], "openai.responses").rejected, []);
  });

  it("leaves the provider's calls and results alone, and cannot be called", async () => {
    const dispatcher = new ToolDispatcher(toolset, { engine: typeboxEngine() });
    const { names } = exportTools(toolset, "anthropic");
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
    const make = (given: unknown) =>
      providerTool(
        { name: "search", description: "Searches.", definitions: given } as ProviderToolDefinition,
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
