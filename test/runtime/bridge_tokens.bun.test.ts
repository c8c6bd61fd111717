import { assertEquals, assertLessOrEqual } from "@std/assert";
import { describe } from "bun:test";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { readSearchSets } from "../../bench/search_quality.ts";
import { ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { createToolBridge } from "../../src/finding/mod.ts";
import { exportTools, listTargets } from "../../src/formats/mod.ts";
import { describeTool } from "../../src/tool/mod.ts";
import { maybe } from "../support/skip.ts";

const set = readSearchSets().find(({ name }) => name === "dev_livemcp");
const tools = set?.tools ?? [];
const questions = set?.questions ?? [];
const withData = maybe(set !== undefined, "../shared/data/search/dev_livemcp.json is not there");
const tokensOf = (value: unknown): number => countTokens(JSON.stringify(value));

describe("the bridge to the 527 tools of LiveMCPBench", () => {
  const registry = new ToolRegistry({ tools });
  const bridge = createToolBridge(registry.select());

  withData("starts in at most 1,500 tokens, on every target", () => {
    assertEquals(tools.length, 527);
    for (const { id } of listTargets()) {
      const { tools, rejected } = exportTools(bridge, id);
      assertEquals(rejected, []);
      // Deferred tools are sent, and do not reach the model until a search finds them.
      const shown = Array.isArray(tools)
        ? tools.filter((tool) => !("defer_loading" in tool))
        : tools;
      assertLessOrEqual(tokensOf(shown), 1_500, id);
    }
  });

  withData("returns searches with a quarter of the tokens of a list of the tools", async () => {
    const dispatcher = new ToolDispatcher(bridge);
    let answers = 0;
    let listings = 0;
    for (const { query } of questions) {
      const result = await dispatcher.dispatch({ name: "search_tools", arguments: { query } });
      if (!result.ok) throw new Error(result.error.message);
      const { tools: found } = result.content as { readonly tools: readonly string[] };
      const ids = found.map((line) => line.slice(0, line.indexOf("(")));
      const listed = ids.map((id) => describeTool(registry.getTool(id) ?? Object(null)));
      const [answer, listing] = [tokensOf(result.content), tokensOf(listed)];
      assertLessOrEqual(answer, listing / 2, query);
      answers += answer;
      listings += listing;
    }
    assertLessOrEqual(answers, listings / 4);
  });
});
