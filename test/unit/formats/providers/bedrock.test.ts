import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { exportTools, importTools } from "../../../../src/formats/mod.ts";

const INPUT = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

describe('importTools("bedrock")', () => {
  const TOOL = { toolSpec: { name: "a", description: "A.", inputSchema: { json: INPUT } } };

  it("returns the same definition after import and export, with cache points", () => {
    const list = [TOOL, { cachePoint: { type: "default", ttl: "1h" } }];
    const { tools, warnings, rejected } = importTools("bedrock", { toolConfig: { tools: list } });
    assertEquals([warnings, rejected], [[], []]);
    assertEquals(exportTools(tools, "bedrock").tools as unknown, list);
    assertEquals(exportTools(tools, "anthropic").tools[0]?.cache_control, {
      type: "ephemeral",
      ttl: "1h",
    });
  });

  it("leaves out a cache point that stands behind no tool, or that it does not know", () => {
    const { tools, warnings } = importTools("bedrock", [
      { cachePoint: { type: "default" } },
      TOOL,
      { cachePoint: { type: "other" } },
    ]);
    assertEquals(warnings.map(({ path, message }) => [path, message]), [
      ["/0", "The cache point follows no tool, and is omitted"],
      ["/2", "The cache point is unknown, and is omitted"],
    ]);
    assertEquals(exportTools(tools, "bedrock").tools.length, 1);
  });

  it("reads strict, and rejects a tool without a schema", () => {
    const { tools, warnings, rejected } = importTools("bedrock", [
      { toolSpec: { name: "s", inputSchema: { json: INPUT }, strict: true } },
      { systemTool: { name: "search" } },
      { toolSpec: { inputSchema: { json: INPUT } } },
      { toolSpec: { name: "x", inputSchema: { json: [] } } },
    ]);
    assertEquals(tools.map(({ name, meta }) => [name, meta?.["provider"]]), [
      ["s", { source: "bedrock", annotations: null, strict: true, description: null }],
    ]);
    assertEquals(warnings, []);
    assertEquals(rejected.map(({ path, name }) => [path, name]), [
      ["/1", "search"],
      ["/2/toolSpec", undefined],
      ["/3/toolSpec/inputSchema/json", "x"],
    ]);
  });
});
