import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { isMembers, listIn } from "../../../../src/formats/import/fields.ts";
import { type ImportSource, importTools } from "../../../../src/formats/import/mod.ts";
import { exportTools, type TargetName } from "../../../../src/formats/mod.ts";
import { makeTool } from "../../../../src/tool/mod.ts";

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

  it("gives back what it was given", () => {
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

describe('importTools("bedrock")', () => {
  const TOOL = { toolSpec: { name: "a", description: "A.", inputSchema: { json: INPUT } } };

  it("gives back what it was given, cache points too", () => {
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
      ["/0", "The cache point stands behind no tool, and is left out"],
      ["/2", "The cache point is not known, and is left out"],
    ]);
    assertEquals(exportTools(tools, "bedrock").tools.length, 1);
  });

  it("reads strict, and rejects what has no schema", () => {
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

describe('importTools("gemini")', () => {
  const JSON_TOOL = {
    name: "a",
    description: "A.",
    parametersJsonSchema: INPUT,
    responseJsonSchema: { type: "integer" },
  };
  const TYPED = {
    name: "a",
    description: "A.",
    parameters: {
      type: "OBJECT",
      properties: {
        city: { type: "STRING", minLength: "1", example: "Rome" },
        days: { type: "ARRAY", items: { type: "INTEGER", nullable: true }, maxItems: "7" },
        unit: { anyOf: [{ type: "STRING", enum: ["c", "f"] }, { type: "NUMBER" }], nullable: true },
      },
      required: ["city"],
      propertyOrdering: ["city", "days", "unit"],
    },
  };

  it("gives back what it was given, with JSON Schema", () => {
    const { tools, rejected } = importTools("gemini", {
      tools: [{ functionDeclarations: [JSON_TOOL] }],
    });
    assertEquals(rejected, []);
    assertEquals(exportTools(tools, "gemini").tools as unknown, [{
      functionDeclarations: [JSON_TOOL],
    }]);
  });

  it("gives back what it was given, with the typed schema", () => {
    const { tools, rejected } = importTools("gemini", [{ functionDeclarations: [TYPED] }]);
    assertEquals(rejected, []);
    assertEquals(exportTools(tools, "gemini.typed").tools as unknown, [{
      functionDeclarations: [TYPED],
    }]);
  });

  it("reads the typed schema as JSON Schema", () => {
    assertEquals(importTools("gemini", [TYPED]).tools[0]?.parameters, {
      type: "object",
      properties: {
        city: { type: "string", minLength: 1, examples: ["Rome"] },
        days: { type: "array", items: { type: ["integer", "null"] }, maxItems: 7 },
        unit: {
          anyOf: [{ type: "string", enum: ["c", "f"] }, { type: "number" }, { type: "null" }],
        },
      },
      required: ["city"],
      propertyOrdering: ["city", "days", "unit"],
    });
  });

  it("reads Vertex's references, and a type that nobody said", () => {
    const [tool] = importTools("gemini", [{
      name: "a",
      parameters: {
        type: "OBJECT",
        properties: { n: { ref: "#/defs/N" }, any: { type: "TYPE_UNSPECIFIED" } },
        defs: { N: { type: "OBJECT", properties: { next: { ref: "#/defs/N" } } } },
        additionalProperties: { type: "STRING" },
      },
    }]).tools;
    assertEquals(tool?.parameters, {
      type: "object",
      properties: { n: { $ref: "#/$defs/N" }, any: {} },
      $defs: { N: { type: "object", properties: { next: { $ref: "#/$defs/N" } } } },
      additionalProperties: { type: "string" },
    });
  });

  it("reads declarations wherever they stand, in either spelling", () => {
    const declaration = { name: "a", parameters_json_schema: INPUT };
    for (
      const document of [
        declaration,
        [declaration],
        { functionDeclarations: [declaration] },
        [{ function_declarations: [declaration] }],
        { config: { tools: [{ functionDeclarations: [declaration] }] } },
      ]
    ) {
      assertEquals(importTools("gemini", document).tools.map(({ parameters }) => parameters), [
        INPUT,
      ]);
    }
  });

  it("reads behavior, and takes no parameters for none", () => {
    const { tools } = importTools("gemini", [{ name: "a", behavior: "NON_BLOCKING" }, {
      name: "b",
      behavior: "BLOCKING",
    }]);
    assertEquals(tools.map(({ meta }) => (meta?.["provider"] as { async?: boolean }).async), [
      true,
      false,
    ]);
    assertEquals(tools[0]?.parameters["additionalProperties"], false);
  });

  it("warns of a length that is none, and rejects what is no function", () => {
    const { tools, warnings, rejected } = importTools("gemini", [
      { googleSearch: {} },
      {
        name: "a",
        parameters: {
          type: "OBJECT",
          properties: { "x/y": { type: "STRING", maxLength: "many" } },
        },
      },
    ]);
    assertEquals(tools.map(({ name }) => name), ["a"]);
    assertEquals(warnings.map(({ path }) => path), ["/1/parameters/properties/x~1y/maxLength"]);
    assertEquals(rejected.map(({ path, rule }) => [path, rule]), [["/0", "name"]]);
  });
});

describe("fields that plue has no words for", () => {
  const json = { type: "object", properties: {} };
  const flat = { type: "function", name: "a", parameters: json, strict: false };
  const ROWS: readonly [ImportSource, TargetName, unknown, readonly TargetName[]][] = [
    [
      "openai",
      "openai.chat",
      [{ type: "function", function: { later: 1, name: "a", parameters: json } }],
      ["openai.responses", "openai.realtime", "mistral"],
    ],
    ["openai", "openai.responses", [{ later: 1, ...flat }], ["openai.chat", "openai.realtime"]],
    [
      "openai",
      "openai.realtime",
      { session: { tools: [{ later: 1, type: "function", name: "a", parameters: json }] } },
      ["openai.responses"],
    ],
    ["anthropic", "anthropic", [{ later: 1, name: "a", input_schema: json }], ["bedrock", "mcp"]],
    ["bedrock", "bedrock", [{ toolSpec: { later: 1, name: "a", inputSchema: { json } } }], [
      "anthropic",
    ]],
    ["mcp", "mcp", [{ later: 1, name: "a", inputSchema: json }], ["openai", "gemini"]],
    ["gemini", "gemini", [{
      functionDeclarations: [{
        later: 1,
        name: "a",
        description: "A.",
        parametersJsonSchema: json,
      }],
    }], ["openai", "mcp"]],
  ];
  for (const [source, target, document, others] of ROWS) {
    it(`go back to ${target}, and are losses elsewhere`, () => {
      const { tools } = importTools(source, document);
      const { tools: again, losses } = exportTools(tools, target);
      const list = isMembers(document) ? listIn(document["session"], "tools") : document;
      assertEquals<unknown>(again, list);
      assertEquals(losses, []);
      for (const other of others) {
        const { tools: sent, losses } = exportTools(tools, other);
        assert(!JSON.stringify(sent).includes("later"));
        assertEquals(
          losses.map(({ path, keyword, grade }) => [path, keyword, grade]),
          [["/meta/provider/extra/later", "later", "lost"]],
        );
      }
    });
  }

  it("are carried along by targets that carry all hints", () => {
    const { tools } = importTools("anthropic", [{ later: 1, name: "a", input_schema: json }]);
    for (const target of ["openapi", "ai-sdk"] as const) {
      const { tools: sent, losses } = exportTools(tools, target);
      assert(JSON.stringify(sent).includes('"later":1'));
      assertEquals(losses, []);
    }
  });

  it("never stand in for what plue knows", () => {
    const extra = { name: "b", input_schema: {}, ["__proto__"]: { later: 1 } };
    const tool = makeTool({
      name: "a",
      description: "A.",
      meta: { provider: { source: "anthropic", extra } },
    });
    const [sent] = exportTools([tool], "anthropic").tools;
    assertEquals([sent?.name, sent?.input_schema.type], ["a", "object"]);
    assertEquals(sent !== undefined && "later" in sent, false);
  });
});
