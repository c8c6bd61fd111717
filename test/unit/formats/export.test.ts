import {
  assert,
  assertEquals,
  assertNotEquals,
  assertNotStrictEquals,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { describe, it } from "bun:test";
import { exportTools, Exposure, listTargets, type TargetName } from "../../../src/formats/mod.ts";
import { buildToolset } from "../../../src/select/mod.ts";
import { makeTool, type Tool, type ToolDefinition } from "../../../src/tool/mod.ts";

function tool(name: string, more: Partial<ToolDefinition> = {}): Tool {
  return makeTool({ name, description: `Does ${name}.`, ...more });
}

const withUnit = tool("weather", {
  parameters: {
    type: "object",
    properties: { city: { type: "string", minLength: 1 }, unit: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
});

const openMap = tool("env", {
  parameters: {
    type: "object",
    properties: { values: { type: "object", additionalProperties: { type: "string" } } },
    required: ["values"],
    additionalProperties: false,
  },
});

/** Writes to every list and object in a value. */
function overwrite(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const part of Object.values(value)) overwrite(part);
  if (Array.isArray(value)) value.push("written");
  else Object.assign(value, { written: true });
}

describe("exportTools()", () => {
  it("caches the export of a list for a target and options", () => {
    const list = Object.freeze([withUnit]);
    const first = exportTools(list, "anthropic").names;
    assertStrictEquals(exportTools(list, "anthropic").names, first);
    assertStrictEquals(exportTools(list, "anthropic", { onLoss: "warn" }).tools.length, 1);
    assertStrictEquals(
      exportTools(list, "anthropic", { onLoss: "warn" }).names,
      exportTools(list, "anthropic", { onLoss: "warn" }).names,
    );
    assertNotStrictEquals(exportTools(list, "anthropic", { onLoss: "warn" }).names, first);
    assertNotStrictEquals(exportTools(list, "bedrock").names, exportTools(list, "mistral").names);
  });

  it("does not cache a list that can change", () => {
    const list = [withUnit];
    assertEquals(exportTools(list, "openai").tools.length, 1);
    list.push(openMap);
    assertEquals(exportTools(list, "openai").tools.length, 2);
  });

  it("exports the currently listed tools of a toolset", () => {
    let up = true;
    const set = buildToolset([withUnit, tool("a", { isAvailable: () => up })], {});
    assertEquals(exportTools(set, "openai").names.encodings.map(({ id }) => id), ["a", "weather"]);
    up = false;
    assertEquals(exportTools(set, "openai").names.encodings.map(({ id }) => id), ["weather"]);
  });

  it("returns frozen reports", () => {
    const { losses, rejected, warnings, names } = exportTools([withUnit], "openai");
    for (const part of [losses, rejected, warnings, names]) assert(Object.isFrozen(part));
  });

  it("returns separate, writable tools for each export, for every target", () => {
    const list = Object.freeze([withUnit]);
    for (const { id } of listTargets()) {
      const first = exportTools(list, id);
      assertStrictEquals(first.tools, first.tools);
      const before = JSON.stringify(first.tools);
      overwrite(first.tools);
      assertNotEquals(JSON.stringify(first.tools), before);
      assertEquals(JSON.stringify(exportTools(list, id).tools), before);
      // The schema is cached by tool; the cached one must not be overwritten either.
      assertEquals(JSON.stringify(exportTools([withUnit], id).tools), before);
    }
  });

  it("copies the symbol properties of the tools", () => {
    const [schema] = Object.values(exportTools([withUnit], "ai-sdk").tools)
      .map(({ inputSchema }) => inputSchema);
    assertEquals(Object.getOwnPropertySymbols(schema ?? {}), [Symbol.for("vercel.ai.schema")]);
  });

  it("accepts an empty list", () => {
    for (const { id } of listTargets()) {
      const { losses, rejected, names } = exportTools([], id);
      assertEquals([losses.length, rejected.length, names.encodings.length], [0, 0, 0]);
    }
    assertEquals(exportTools([], "gemini").tools, []);
  });

  it("lists the targets", () => {
    assertThrows(
      () => exportTools([], "openai.chatt" as TargetName),
      RangeError,
      'Cannot find the target "openai.chatt": it must be one of "ai-sdk", ',
    );
    assertThrows(() => exportTools([], "constructor" as TargetName), RangeError);
  });

  it("rejects a registry, a definition and nothing, and names the valid sources", () => {
    const rows = [
      [undefined, "they must be a toolset or a list of tools"],
      [{ tools: [], select: () => [] }, "pass registry.select() of a registry"],
      [[{ name: "a", description: "A." }], '"/0" is not a tool; create it with defineTool'],
      [[null], '"/0" is not a tool; create it with defineTool'],
    ] as const;
    for (const [source, words] of rows) {
      const error = assertThrows(
        () => exportTools(source as unknown as Tool[], "openai"),
        TypeError,
        "Cannot export the tools: ",
      );
      assertStringIncludes(error.message, words);
    }
  });

  it("rejects unknown options", () => {
    // The cached export of the same list without options must not be returned.
    const list = Object.freeze([]);
    exportTools(list, "openai", {});
    assertThrows(
      () => exportTools(list, "openai", { onlos: "throw" } as object),
      TypeError,
      'Cannot export the tools: "/onlos" is not one of its fields',
    );
    assertThrows(
      () => exportTools([], "openai", { onLoss: "ignore" as "warn" }),
      TypeError,
      'onLoss must be "describe", "warn", "reject-tool" or "throw", not "ignore"',
    );
    assertThrows(() => exportTools([], "openapi", { path: "/x" }), TypeError, '"{id}"');
  });

  it("rejects two tools with one id", () => {
    assertThrows(
      () => exportTools([withUnit, withUnit], "openai"),
      TypeError,
      'Cannot export the tools: two tools have the id "weather"',
    );
  });
});

describe("exportTools() to a strict mode", () => {
  it("applies the limits of the strict mode to a tool that requires it, or falls back", () => {
    const many = Array.from(
      { length: 21 },
      (_, index) => tool(`t${index}`, { meta: { provider: { strict: true } } }),
    );
    const { tools, losses } = exportTools(many, "anthropic");
    assertEquals(tools.filter((one) => one.strict).length, 20);
    assertEquals(tools.at(20)?.strict, undefined);
    assertEquals(losses.map(({ tool, path, grade }) => [tool, path, grade]), [
      ["t20", "/meta/provider/strict", "weakened"],
    ]);
    const open = tool("open", {
      parameters: openMap.parameters as Record<string, unknown>,
      meta: { provider: { strict: true } },
    });
    assertEquals(exportTools([open], "openai.chat").tools[0]?.function.parameters, open.parameters);
    const { rejected } = exportTools([open], "openai.chat", { strictFallback: false });
    assertEquals(rejected[0]?.rule, "map");
  });

  it("is strict within the budget of a request", () => {
    const many = Array.from({ length: 23 }, (_, index) => tool(`t${index}`));
    const { tools, losses } = exportTools(many, "anthropic.strict");
    assertEquals(tools.filter((one) => one.strict).length, 20);
    assertEquals(tools.length, 23);
    assertEquals(losses.filter(({ keyword }) => keyword === "strict").length, 3);
  });

  it("rejects a schema that is nested too deeply, and falls back", () => {
    let parameters: Record<string, unknown> = {
      type: "object",
      properties: {},
      additionalProperties: false,
    };
    for (let level = 0; level < 10; level++) {
      parameters = {
        type: "object",
        properties: { inner: parameters },
        required: ["inner"],
        additionalProperties: false,
      };
    }
    const { tools, losses } = exportTools([tool("deep", { parameters })], "openai.strict");
    assertEquals(tools[0]?.function.strict, undefined);
    assert(losses[0]?.message.includes("the limit is 10 levels"), losses[0]?.message);
  });
});

describe("limits of a request", () => {
  const many = Array.from(
    { length: 130 },
    (_, index) => tool(`t${String(index).padStart(3, "0")}`),
  );

  it("reject the tools above them", () => {
    const { tools, rejected } = exportTools(many, "openai");
    assertEquals(tools.length, 128);
    assertEquals(rejected.map(({ tool, rule }) => [tool, rule]), [["t128", "maxTools"], [
      "t129",
      "maxTools",
    ]]);
  });

  it("that are not documented are warnings", () => {
    const { tools, rejected, warnings } = exportTools(many, "openai.responses");
    assertEquals([tools.length, rejected.length], [130, 0]);
    assertEquals(warnings.map(({ rule, tool }) => [rule, tool]), [["maxTools", "t128"]]);
  });
});

describe("the text of all tools together", () => {
  it("is a warning above the limit of Anthropic", () => {
    const description = "x".repeat(1_000_000);
    const many = Array.from({ length: 5 }, (_, index) => tool(`t${index}`, { description }));
    assertEquals(exportTools(many.slice(0, 4), "anthropic").warnings, []);
    const { tools, rejected, warnings } = exportTools(many, "anthropic");
    assertEquals([tools.length, rejected], [5, []]);
    assertEquals(warnings.map(({ rule }) => rule), ["maxToolText"]);
    assert(warnings[0]?.message.includes("the limit is 4194304"), warnings[0]?.message);
  });
});

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

  it("throws instead of exporting only a part of the tools", () => {
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
    assertEquals(warnings, ['"ping" at "/title": the target has no field for "title"']);
  });

  it("returns no errors if every tool is sent", () => {
    assertEquals(new Exposure([ping], "mcp").exportWithWarnings().errors, []);
  });
});
