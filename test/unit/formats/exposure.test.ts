import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { exportTools, Exposure, type TargetName } from "../../../src/formats/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";

const ping = makeTool({ name: "ping", title: "Ping", description: "Answers." });
const bad = makeTool({
  name: "bad",
  description: "Cannot be sent.",
  parameters: { type: "object", properties: { a: { $ref: "https://example.com/a" } } },
});

describe("Exposure", () => {
  it("exports with its options, as exportTools() does", () => {
    const list = Object.freeze([ping]);
    const exposure = new Exposure(list, "openai", { onLoss: "warn" });
    assertStrictEquals(
      exposure.result().names,
      exportTools(list, "openai", { onLoss: "warn" }).names,
    );
  });

  it("rejects an unknown target", () => {
    assertThrows(() => new Exposure([ping], "nobody" as TargetName), RangeError, '"nobody"');
  });

  it("exports the tools alone", () => {
    assertEquals(new Exposure([ping], "anthropic").export(), [{
      name: "ping",
      description: "Answers.",
      input_schema: { type: "object", properties: {}, additionalProperties: false },
    }]);
  });

  it("does not export a part of the tools as if it were all", () => {
    assertThrows(
      () => new Exposure([bad, ping], "openai").export(),
      TypeError,
      'Cannot export "bad" to openai.chat: it uses `$ref` out of the schema',
    );
  });

  // Specification: "Conversion errors are surfaced via `ExportWithWarnings()` as a `[]error`",
  // "tool ID included in the error".
  it("returns an error for each missing tool, and the remaining tools", () => {
    const { tools, errors } = new Exposure([bad, ping], "openai").exportWithWarnings();
    assertEquals(tools.map((tool) => tool.function.name), ["ping"]);
    assertEquals(errors.map((error) => [error instanceof Error, error.tool, error.message]), [[
      true,
      "bad",
      'Cannot export "bad" to openai.chat: it uses `$ref` out of the schema',
    ]]);
  });

  // Specification: "Feature loss warnings are aggregated from the adapter".
  it("returns losses as warnings, separate from the errors", () => {
    const { warnings } = new Exposure([bad, ping], "openai").exportWithWarnings();
    assertEquals(warnings, ['"ping" at "/title": there is no place for "title"']);
  });

  it("returns no errors if every tool is sent", () => {
    assertEquals(new Exposure([ping], "mcp").exportWithWarnings().errors, []);
  });
});
