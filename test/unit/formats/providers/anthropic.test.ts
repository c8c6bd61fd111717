import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { exportTools, importTools } from "../../../../src/formats/mod.ts";

const INPUT = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

describe('importTools("anthropic")', () => {
  const FULL = {
    name: "get_weather",
    description: "Says how the weather is.",
    input_schema: INPUT,
    input_examples: [{ city: "Rome" }],
    defer_loading: true,
    allowed_callers: ["direct", "code_execution_20260120"],
    cache_control: { type: "ephemeral", ttl: "1h" },
    eager_input_streaming: true,
  };

  it("returns the same definition after import and export", () => {
    for (const tool of [FULL, { name: "a", input_schema: INPUT }]) {
      const { tools, warnings, rejected } = importTools("anthropic", { tools: [tool] });
      assertEquals([warnings, rejected], [[], []]);
      assertEquals(exportTools(tools, "anthropic").tools as unknown, [tool]);
    }
  });

  it("rejects tools of the provider's own, and warns of a cache that it does not know", () => {
    const { tools, warnings, rejected } = importTools("anthropic", [
      { type: "web_search_20250305", name: "web_search" },
      { type: "custom", name: "a", input_schema: INPUT, cache_control: { type: "forever" } },
      { name: "b", input_schema: "x" },
    ]);
    assertEquals(tools.map(({ name }) => name), ["a"]);
    assertEquals(warnings.map(({ path }) => path), ["/1/cache_control"]);
    assertEquals(rejected.map(({ path, name }) => [path, name]), [
      ["/0", "web_search"],
      ["/2/input_schema", "b"],
    ]);
  });
});
