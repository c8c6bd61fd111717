import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { createAdapter, exportTools, Exposure, type TargetName } from "../../../src/formats/mod.ts";
import { makeTool } from "../../../src/tool/mod.ts";

const ping = makeTool({ name: "ping", title: "Ping", description: "Answers." });
const bad = makeTool({
  name: "bad",
  description: "Cannot be sent.",
  parameters: { type: "object", properties: { a: { $ref: "https://example.com/a" } } },
});

describe("createAdapter()", () => {
  it("exports to its target with its options", () => {
    const list = Object.freeze([ping]);
    const adapter = createAdapter("openai", { onLoss: "warn" });
    assertEquals(adapter.target, "openai.chat");
    assertEquals(adapter.info.title, "OpenAI Chat Completions");
    assertStrictEquals(adapter.export(list), exportTools(list, "openai", { onLoss: "warn" }));
  });

  it("refuses a target that there is not", () => {
    assertThrows(() => createAdapter("nobody" as TargetName), RangeError, '"nobody"');
  });
});

describe("Exposure", () => {
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
      'Cannot export "bad" to openai.chat: it uses `$ref` that leads outside of the schema',
    );
  });

  it("says what is missing with the tools that are left", () => {
    const { tools, warnings } = new Exposure([bad, ping], createAdapter("openai"))
      .exportWithWarnings();
    assertEquals(tools.map((tool) => tool.function.name), ["ping"]);
    assertEquals(warnings, [
      'Cannot export "bad" to openai.chat: it uses `$ref` that leads outside of the schema',
      '"ping" at "/title": there is no place for "title"',
    ]);
  });
});
