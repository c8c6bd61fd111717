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
import {
  decodeArguments,
  exportTools,
  listTargets,
  type TargetName,
} from "../../../src/formats/mod.ts";
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
  it("remembers the export of a list, a target and options", () => {
    const list = Object.freeze([withUnit]);
    const first = exportTools(list, "anthropic").names;
    assertStrictEquals(exportTools(list, "anthropic").names, first);
    assertStrictEquals(exportTools(list, "anthropic", { onLoss: "warn" }).tools.length, 1);
    assertStrictEquals(
      exportTools(list, "anthropic", { onLoss: "warn" }).names,
      exportTools(list, "anthropic", { onLoss: "warn" }).names,
    );
    assertNotStrictEquals(exportTools(list, "anthropic", { onLoss: "warn" }).names, first);
    assertNotStrictEquals(
      exportTools(list, "bedrock").names,
      exportTools(list, "mistral").names,
    );
  });

  it("does not remember a list that can change", () => {
    const list = [withUnit];
    assertEquals(exportTools(list, "openai").tools.length, 1);
    list.push(openMap);
    assertEquals(exportTools(list, "openai").tools.length, 2);
  });

  it("sends no `const` where there are none, whatever its value is", () => {
    const parameters = { type: "object", properties: { a: { const: { b: 1 } } }, required: ["a"] };
    const list = [tool("fixed", { parameters })];
    const [typed] = exportTools(list, "gemini.typed").tools;
    assertEquals(typed?.functionDeclarations[0]?.parameters.properties, {
      a: { description: 'One of: [{"b":1}]' },
    });
    const [ollama] = exportTools(list, "ollama").tools;
    assertEquals(ollama?.function.parameters["properties"], { a: { enum: [{ b: 1 }] } });
  });

  it("takes a toolset, as its listing is now", () => {
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

  it("gives each export tools of its own to write to, for every target", () => {
    const list = Object.freeze([withUnit]);
    for (const { id } of listTargets()) {
      const first = exportTools(list, id);
      assertStrictEquals(first.tools, first.tools);
      const before = JSON.stringify(first.tools);
      overwrite(first.tools);
      assertNotEquals(JSON.stringify(first.tools), before);
      assertEquals(JSON.stringify(exportTools(list, id).tools), before);
      // The schema is cached by tool, so another list has it too.
      assertEquals(JSON.stringify(exportTools([withUnit], id).tools), before);
    }
  });

  it("copies what the tools have under symbols", () => {
    const [schema] = Object.values(exportTools([withUnit], "ai-sdk").tools)
      .map(({ inputSchema }) => inputSchema);
    assertEquals(Object.getOwnPropertySymbols(schema ?? {}), [Symbol.for("vercel.ai.schema")]);
  });

  it("takes no tool at all", () => {
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

  it("names the expected source instead of a registry, a definition or nothing", () => {
    const rows = [
      [undefined, "they must be a toolset or a list of tools"],
      [{ tools: [], select: () => [] }, "a registry gives a toolset by select()"],
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

  it("lets one bad tool spoil nothing", () => {
    const bad = tool("bad", {
      parameters: { type: "object", $schema: "http://json-schema.org/draft-03/schema" },
    });
    const { tools, rejected } = exportTools([bad, withUnit], "mistral");
    assertEquals(tools.map((one) => one.function.name), ["weather"]);
    assertEquals(rejected.map(({ tool, rule }) => [tool, rule]), [["bad", "schema"]]);
    assert(rejected[0]?.message.startsWith('Cannot export "bad" to mistral: '));
  });
});

describe("exportTools() to a strict mode", () => {
  it("makes optional properties nullable, and records their positions", () => {
    const { tools, names } = exportTools([withUnit], "openai.strict");
    assertEquals(tools[0]?.function, {
      name: "weather",
      description: "Does weather.",
      parameters: {
        type: "object",
        properties: { city: { type: "string", minLength: 1 }, unit: { type: ["string", "null"] } },
        required: ["city", "unit"],
        additionalProperties: false,
      },
      strict: true,
    });
    assertEquals(names.encodingOf("weather")?.input?.nulls, new Set(["unit"]));
  });

  it("sends a tool that strict mode cannot express without it, with the reason", () => {
    const { tools, losses, rejected } = exportTools([openMap, withUnit], "openai.strict");
    assertEquals(tools.map((one) => one.function.strict), [false, true]);
    assertEquals(tools[0]?.function.parameters, openMap.parameters);
    assertEquals(losses.filter(({ keyword }) => keyword === "strict").map(({ tool }) => tool), [
      "env",
    ]);
    assertEquals(rejected, []);
  });

  it("rejects it where that is wished", () => {
    const { tools, rejected } = exportTools([openMap], "anthropic.strict", {
      strictFallback: false,
    });
    assertEquals(tools, []);
    assertEquals(rejected[0]?.rule, "map");
  });

  it("leaves out strict for a tool that does not want it", () => {
    const loose = tool("loose", { meta: { provider: { strict: false } } });
    const { tools, losses } = exportTools([loose], "openai.responses.strict");
    assertEquals(tools[0]?.type === "function" && tools[0].strict, false);
    assertEquals(losses, []);
  });

  it("is strict for a tool that requires it, if the target has a strict variant", () => {
    const strict = tool("s", {
      parameters: {
        type: "object",
        properties: { city: { type: "string" }, unit: { type: "string" } },
        required: ["city"],
      },
      meta: { provider: { strict: true } },
    });
    const chat = exportTools([strict, withUnit], "openai.chat");
    assertEquals(chat.tools.map((one) => one.function.strict), [true, undefined]);
    assertEquals(chat.tools[0]?.function.parameters["required"], ["city", "unit"]);
    assertEquals(chat.tools[1]?.function.parameters, withUnit.parameters);
    assertEquals(chat.names.encodings.map((one) => one.strict), [true, false]);
    assertEquals(chat.names.encodingOf("s")?.input?.nulls, new Set(["unit"]));
    assertEquals(exportTools([strict], "anthropic").tools[0]?.strict, true);
    assertEquals(exportTools([strict], "bedrock").tools[0]?.toolSpec?.strict, true);
    const [response] = exportTools([strict], "openai.responses").tools;
    assertEquals(response?.type === "function" && response.strict, true);
    assertEquals(exportTools([strict], "ai-sdk").tools["s"]?.strict, true);
  });

  it("reports that a target has no strict mode for a tool that requires it", () => {
    const strict = tool("s", { meta: { provider: { strict: true } } });
    for (const target of ["gemini", "mcp", "mistral", "cohere", "langchain"] as const) {
      const { losses } = exportTools([strict], target);
      assertEquals(losses.map(({ path, grade }) => [path, grade]), [[
        "/meta/provider/strict",
        "lost",
      ]], target);
    }
  });

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

  it("is strict as far as the budget of a request goes", () => {
    const many = Array.from({ length: 23 }, (_, index) => tool(`t${index}`));
    const { tools, losses } = exportTools(many, "anthropic.strict");
    assertEquals(tools.filter((one) => one.strict).length, 20);
    assertEquals(tools.length, 23);
    assertEquals(losses.filter(({ keyword }) => keyword === "strict").length, 3);
  });

  it("does not make calls from code strict on Anthropic", () => {
    const programmatic = tool("p", { meta: { provider: { allowedCallers: ["programmatic"] } } });
    const { tools } = exportTools([programmatic], "anthropic.strict");
    assertEquals([tools[0]?.strict, tools[0]?.allowed_callers], [false, [
      "code_execution_20260120",
    ]]);
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
    assertEquals(tools[0]?.function.strict, false);
    assert(losses[0]?.message.includes("at most 10 levels"), losses[0]?.message);
  });
});

describe("unions and references in a strict mode", () => {
  const $defs = {
    cat: {
      type: "object",
      properties: { kind: { const: "cat" }, age: { type: "integer" } },
      required: ["kind", "age"],
      additionalProperties: false,
    },
    dog: {
      type: "object",
      properties: { kind: { const: "dog" } },
      required: ["kind"],
      additionalProperties: false,
    },
    word: { type: "string", description: "A word." },
    maybe: { type: ["string", "null"] },
    list: {
      type: "object",
      properties: { next: { anyOf: [{ $ref: "#/$defs/list" }, { type: "null" }] } },
      required: ["next"],
      additionalProperties: false,
    },
  };
  const cat = { $ref: "#/$defs/cat" };
  const dog = { $ref: "#/$defs/dog" };
  const discriminator = { propertyName: "kind" };
  const strict = (a: unknown) => {
    const parameters = {
      type: "object",
      properties: { a },
      required: ["a"],
      additionalProperties: false,
      $defs,
    };
    const { tools } = exportTools([tool("u", { parameters })], "openai.strict");
    const sent = tools[0]?.function;
    const properties = sent?.parameters["properties"] as Record<string, unknown> | undefined;
    return { strict: sent?.strict, a: properties?.["a"] };
  };
  const KEPT: readonly (readonly [title: string, from: unknown, to: unknown])[] = [
    [
      "a oneOf of references beside a discriminator",
      { oneOf: [cat, dog], discriminator },
      { discriminator, anyOf: [cat, dog] },
    ],
    [
      "an anyOf beside what nobody knows",
      { anyOf: [cat, { type: "null" }], "x-order": 1 },
      { anyOf: [cat, { type: "null" }], "x-order": 1 },
    ],
    ["a reference beside what nobody knows", { ...cat, "x-order": 1 }, {
      "x-order": 1,
      anyOf: [cat],
    }],
    [
      "a reference beside a constraint, written out",
      { $ref: "#/$defs/word", minLength: 3 },
      { anyOf: [{ minLength: 3, type: "string", description: "A word." }] },
    ],
    [
      "references beside the type that they have",
      { type: "object", anyOf: [cat, dog] },
      { anyOf: [cat, dog] },
    ],
    [
      "a recursive reference beside a constraint that is dropped",
      { $ref: "#/$defs/list", minProperties: 1 },
      { description: "At least 1 property.", anyOf: [{ $ref: "#/$defs/list" }] },
    ],
    [
      "a reference beside a union",
      { ...cat, anyOf: [{ properties: { age: { minimum: 1 } } }, { required: ["kind"] }] },
      {
        anyOf: [1, undefined].map((minimum) => ({
          ...$defs.cat,
          properties: {
            kind: { const: "cat" },
            age: { ...(minimum === undefined ? {} : { minimum }), type: "integer" },
          },
        })),
      },
    ],
    ["a reference in an allOf of one", { allOf: [{ $ref: "#/$defs/list" }], description: "L" }, {
      description: "L",
      anyOf: [{ $ref: "#/$defs/list" }],
    }],
  ];
  for (const [title, from, to] of KEPT) {
    it(`keep ${title}`, () => {
      assertEquals(strict(from), { strict: true, a: to });
    });
  }

  it("are sent without strict mode if they cannot be expressed", () => {
    const a = { $ref: "#/$defs/list", enum: [{ next: null }] };
    assertEquals(strict(a), { strict: false, a });
  });

  it("are said in the description where there is no other mode", () => {
    const parameters = {
      type: "object",
      properties: {
        a: { type: "string", pattern: "c", anyOf: [{ pattern: "a" }, { pattern: "b" }] },
      },
    };
    const { tools, losses } = exportTools([tool("u", { parameters })], "gemini.typed");
    assertEquals(tools[0]?.functionDeclarations[0]?.parameters.properties?.["a"], {
      type: "STRING",
      pattern: "c",
      description: 'At least one of these fits: [{"pattern":"a"},{"pattern":"b"}]',
    });
    assertEquals(losses.map(({ path, grade }) => [path, grade]), [
      ["/properties/a/anyOf", "moved"],
    ]);
  });

  it("keep null where a reference to what may be null is optional", () => {
    const parameters = {
      type: "object",
      properties: { a: { $ref: "#/$defs/maybe" } },
      additionalProperties: false,
      $defs: { maybe: $defs.maybe },
    };
    const { losses, names } = exportTools([tool("n", { parameters })], "openai.strict");
    assertEquals(losses.map(({ path, grade }) => [path, grade]), [["/properties/a", "ambiguous"]]);
    const rewrite = names.encodingOf("n")?.input;
    assertEquals(decodeArguments({ a: null }, rewrite), { a: null });
  });
});

describe("references", () => {
  const strictSchema = (parameters: Record<string, unknown>) => {
    const { tools, rejected } = exportTools([tool("r", { parameters })], "openai.strict");
    assertEquals(rejected, []);
    assertEquals(tools[0]?.function.strict, true);
    return tools[0]?.function.parameters;
  };
  const closed = { required: ["a"], additionalProperties: false };

  it("to a part that changes get a definition of their own", () => {
    // "a" becomes nullable where it is optional, not where it is referred to.
    assertEquals(
      strictSchema({
        type: "object",
        properties: { a: { type: "string" }, b: { $ref: "#/properties/a" } },
        required: ["b"],
        additionalProperties: false,
      }),
      {
        type: "object",
        properties: { a: { type: ["string", "null"] }, b: { $ref: "#/$defs/schema1" } },
        required: ["a", "b"],
        additionalProperties: false,
        $defs: { schema1: { type: "string" } },
      },
    );
  });

  it("to anchors and to nested definitions are found", () => {
    assertEquals(
      strictSchema({
        type: "object",
        properties: {
          a: { $ref: "#there" },
          b: { $ref: "#/properties/c/$defs/inner" },
          c: {
            type: "object",
            properties: { a: { $ref: "#/properties/c/$defs/inner" } },
            ...closed,
            $defs: { inner: { type: "number" } },
          },
        },
        required: ["a", "b", "c"],
        additionalProperties: false,
        $defs: { x: { $anchor: "there", type: "string" }, schema2: { type: "null" } },
      }),
      {
        type: "object",
        properties: {
          a: { $ref: "#/$defs/x" },
          b: { $ref: "#/$defs/schema3" },
          c: { type: "object", properties: { a: { $ref: "#/$defs/schema3" } }, ...closed },
        },
        required: ["a", "b", "c"],
        additionalProperties: false,
        $defs: { x: { type: "string" }, schema3: { type: "number" } },
      },
    );
  });

  it("that lead outside reject the tool, and leave out a result schema", () => {
    const $ref = "https://example.com/x";
    const { rejected } = exportTools(
      [tool("out", { parameters: { type: "object", properties: { a: { $ref } } } })],
      "gemini",
    );
    assertEquals(rejected.map(({ rule }) => rule), ["$ref external"]);
    const { tools, losses } = exportTools([tool("res", { returns: { $ref } })], "gemini");
    assertEquals(tools[0]?.functionDeclarations[0]?.responseJsonSchema, undefined);
    assertEquals(
      losses.map(({ side, keyword, grade }) => [side, keyword, grade]),
      [["output", "returns", "lost"]],
    );
  });

  it("to the root of the schema stay so", () => {
    assertEquals(
      strictSchema({
        type: "object",
        properties: { next: { $ref: "#" } },
        additionalProperties: false,
      }),
      {
        type: "object",
        properties: { next: { anyOf: [{ $ref: "#" }, { type: "null" }] } },
        required: ["next"],
        additionalProperties: false,
      },
    );
  });
});

describe("limits of a request", () => {
  const many = Array.from(
    { length: 130 },
    (_, index) => tool(`t${String(index).padStart(3, "0")}`),
  );

  it("reject the tools beyond", () => {
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

  it("want one tool that is not deferred", () => {
    const deferred = tool("d", { meta: { provider: { deferLoading: true } } });
    const rules = (tools: readonly Tool[]) =>
      exportTools(tools, "anthropic").warnings.map(({ rule }) => rule);
    assertEquals(rules([deferred]), ["deferLoading", "minLoadedTools"]);
    assertEquals(rules([deferred, withUnit]), ["deferLoading"]);
  });

  it("want a required parameter of each tool, for Cohere's strict requests", () => {
    const { tools, warnings } = exportTools([tool("none")], "cohere");
    assertEquals(tools.length, 1);
    assert(warnings.some(({ rule }) => rule === "minRequired"));
  });
});

describe("the text of all tools together", () => {
  it("is a warning beyond what Anthropic takes", () => {
    const description = "x".repeat(1_000_000);
    const many = Array.from({ length: 5 }, (_, index) => tool(`t${index}`, { description }));
    assertEquals(exportTools(many.slice(0, 4), "anthropic").warnings, []);
    const { tools, rejected, warnings } = exportTools(many, "anthropic");
    assertEquals([tools.length, rejected], [5, []]);
    assertEquals(warnings.map(({ rule }) => rule), ["maxToolText"]);
    assert(warnings[0]?.message.includes("of at most 4194304 characters"), warnings[0]?.message);
  });
});

describe("hints to MCP clients", () => {
  for (const tags of [[], ["write"]]) {
    it(`do not declare a low tool tagged [${tags}] read-only or idempotent`, () => {
      assertEquals(
        exportTools([tool("note", { risk: "low", tags })], "mcp").tools[0]?.annotations,
        {
          readOnlyHint: false,
          idempotentHint: false,
        },
      );
    });
  }

  it("say read-only by the author's word: an annotation, or a tag", () => {
    const wire = exportTools([
      tool("a", { annotations: { readOnlyHint: true } }),
      tool("b", { tags: ["read-only"] }),
    ], "mcp").tools;
    assertEquals(wire.map(({ annotations }) => annotations?.readOnlyHint), [true, true]);
  });
});

describe("losses", () => {
  const rich = tool("rich", {
    title: "Rich",
    returns: { type: "string" },
    examples: [{ input: {} }],
    annotations: { readOnlyHint: true },
    deprecated: "Use poor.",
    icons: [{ src: "https://example.com/i.png" }],
    meta: { note: 1, provider: { deferLoading: true } },
    parameters: {
      type: "object",
      properties: { z: { type: "string", maxLength: 3 }, a: { type: "integer", minimum: 1 } },
      required: ["z", "a"],
      additionalProperties: false,
    },
  });

  it("are in the order of the schema, then of the fields", () => {
    const { losses } = exportTools([rich], "ollama");
    assertEquals(losses.map(({ path, grade }) => `${path} ${grade}`), [
      "/additionalProperties moved",
      "/properties/z/maxLength moved",
      "/properties/a/minimum moved",
      "/title lost",
      "/returns lost",
      "/examples lost",
      "/annotations lost",
      "/icons lost",
      "/deprecated moved",
      "/meta lost",
      "/meta/provider/deferLoading lost",
    ]);
    assert(losses.every(({ tool }) => tool === "rich"));
  });

  it("are said in descriptions, by default", () => {
    const [first] = exportTools([rich], "ollama").tools;
    assertEquals(first?.function.description, "Does rich.\n\nDeprecated: Use poor.");
    assertEquals(first?.function.parameters, {
      type: "object",
      properties: {
        z: { type: "string", description: "At most 3 characters." },
        a: { type: "integer", description: "At least 1." },
      },
      required: ["z", "a"],
      description: "No other properties.",
    });
  });

  it("are omitted with a warning", () => {
    const { tools, losses } = exportTools([rich], "ollama", { onLoss: "warn" });
    assertEquals(tools[0]?.function.parameters, {
      type: "object",
      properties: { z: { type: "string" }, a: { type: "integer" } },
      required: ["z", "a"],
    });
    assertEquals(losses[1]?.grade, "lost");
  });

  it("reject the tool whose input they misrepresent with reject-tool", () => {
    const { tools, rejected } = exportTools([rich, tool("plain")], "anthropic.strict", {
      onLoss: "reject-tool",
      strictFallback: false,
    });
    assertEquals(tools.map(({ name }) => name), ["plain"]);
    assertEquals(rejected.map(({ tool, rule }) => [tool, rule]), [["rich", "onLoss"]]);
    assert(rejected[0]?.message.includes('at "/properties/z/maxLength" of its parameters'));
  });

  it("send it without strict mode, where that says all of it", () => {
    for (const onLoss of ["reject-tool", "throw"] as const) {
      const { tools, losses, rejected } = exportTools([rich], "anthropic.strict", { onLoss });
      assertEquals(rejected, []);
      assertEquals(tools[0]?.strict, false);
      assertEquals(
        losses.find(({ keyword }) => keyword === "strict")?.message,
        'it is sent without strict mode: at "/properties/z/maxLength" of its parameters, ' +
          '"maxLength" cannot be sent',
      );
    }
    assertThrows(
      () => exportTools([rich], "anthropic.strict", { onLoss: "throw", strictFallback: false }),
      TypeError,
      'Cannot export "rich" to anthropic.strict: at "/properties/z/maxLength" of its parameters',
    );
  });

  it("are two where one keyword was two", () => {
    const parameters = {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { a: {}, b: {}, c: {} },
      dependencies: { a: ["b"], c: { required: ["b"] } },
    };
    const { losses } = exportTools([tool("old", { parameters })], "ollama");
    assertEquals(
      losses.filter(({ path }) => path === "/dependencies").map(({ message }) => message),
      [
        '"dependentRequired" is said in the description',
        '"dependentSchemas" is said in the description',
      ],
    );
  });

  it("of a boolean point to where it stood", () => {
    const parameters = {
      type: "object",
      properties: {
        never: false,
        list: { type: "array", items: false },
        choice: { anyOf: [{ type: "string" }, { type: "array", contains: true }] },
      },
    };
    const paths = (target: "cohere" | "gemini.typed" | "ollama") =>
      exportTools([tool("b", { parameters })], target).losses.map(({ path }) => path);
    assertEquals(paths("gemini.typed"), [
      "/properties/never",
      "/properties/choice/anyOf/1/contains",
    ]);
    assertEquals(paths("ollama"), [
      "/properties/never",
      "/properties/list/items",
      "/properties/choice/anyOf/1/contains",
    ]);
  });

  it("are described where a list of constants cannot be sent", () => {
    const parameters = {
      type: "object",
      properties: { a: { type: "string", enum: ["", "x"] }, b: { enum: [1, "1"] } },
    };
    const { tools, losses } = exportTools([tool("e", { parameters })], "gemini.typed");
    assertEquals(tools[0]?.functionDeclarations[0]?.parameters.properties, {
      a: { type: "STRING", description: 'One of: ["","x"]' },
      b: { description: 'One of: [1,"1"]' },
    });
    assertEquals(losses.map(({ path, grade }) => [path, grade]), [
      ["/properties/a/enum", "moved"],
      ["/properties/b/enum", "moved"],
    ]);
    const silent = exportTools([tool("e", { parameters })], "gemini.typed", { onLoss: "warn" });
    assertEquals(silent.losses.map(({ grade }) => grade), ["lost", "lost"]);
  });

  it("throw with throw", () => {
    assertThrows(
      () => exportTools([rich], "ollama", { onLoss: "throw" }),
      TypeError,
      'Cannot export "rich" to ollama: at "/additionalProperties" of its parameters',
    );
  });

  it("of a result schema point into the result schema", () => {
    const odd = tool("odd", {
      returns: { type: "array", items: { type: "number", multipleOf: 2 } },
    });
    const { losses } = exportTools([odd], "gemini.typed");
    assertEquals(
      losses.filter(({ side }) => side === "output").map(({ path, keyword }) => [path, keyword]),
      [["/items/multipleOf", "multipleOf"]],
    );
  });

  it("point into the original schema, not the rewritten one", () => {
    const old = tool("old", {
      parameters: {
        type: "object",
        properties: { a: { $ref: "#/definitions/x~y" } },
        definitions: { "x~y": { type: "array", items: [{ type: "string", minLength: 1 }] } },
        additionalProperties: false,
      },
    });
    const { losses } = exportTools([old], "ollama");
    assertEquals(losses.map(({ path }) => path), [
      "/additionalProperties",
      "/definitions/x~0y/items",
      "/definitions/x~0y/items/0/minLength",
    ]);
  });
});

describe("an empty list of callers", () => {
  it("is not sent to OpenAI Responses, which rejects it, and is a warning", () => {
    const nobody = tool("n", { meta: { provider: { allowedCallers: [] } } });
    const { tools, warnings } = exportTools([nobody], "openai.responses");
    assertEquals(tools[0] !== undefined && Object.hasOwn(tools[0], "allowed_callers"), false);
    assertEquals(warnings.map(({ rule }) => rule), ["allowedCallers empty"]);
  });
});

describe("what providers do not document", () => {
  it("is one warning per form, with the first tool and how many", () => {
    const one = (name: string) =>
      tool(name, {
        parameters: { type: "object", properties: { a: { type: "string", pattern: "^a" } } },
      });
    const { rejected, warnings } = exportTools([one("a"), one("b")], "gemini");
    assertEquals(rejected, []);
    assertEquals(warnings, [{
      tool: "a",
      rule: "pattern",
      message:
        'Gemini API, parametersJsonSchema: whether it takes `pattern` is not documented ("a" and 1 more)',
    }]);
  });
});
