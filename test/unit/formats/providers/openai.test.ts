import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { exportTools, importTools } from "../../../../src/formats/mod.ts";
import { call } from "../../../support/call_tool.ts";
import type { JsonSchemaObject } from "../../../../src/tool/mod.ts";

const INPUT = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 } },
  required: ["city"],
};
const WEATHER = { name: "get_weather", description: "Says how the weather is.", parameters: INPUT };

describe('importTools("openai")', () => {
  const DOCUMENTS: readonly [string, unknown][] = [
    ["a chat request", { model: "m", tools: [{ type: "function", function: WEATHER }] }],
    ["a list of chat tools", [{ type: "function", function: WEATHER }]],
    ["one chat tool", { type: "function", function: WEATHER }],
    ["a request with functions", { functions: [WEATHER] }],
    ["a Responses request", { tools: [{ type: "function", ...WEATHER, strict: null }] }],
    ["a Realtime session", {
      type: "session.update",
      session: { tools: [{ type: "function", ...WEATHER }] },
    }],
    ["a Mistral request", {
      tools: [{ type: "function", function: { ...WEATHER, strict: false } }],
    }],
  ];
  for (const [what, document] of DOCUMENTS) {
    it(`reads ${what}`, () => {
      const { tools, warnings, rejected } = importTools("openai", document, { namespace: "sky" });
      assertEquals([warnings, rejected], [[], []]);
      assertEquals(
        tools.map(({ id, description, parameters, risk }) => [id, description, parameters, risk]),
        [
          ["sky:get_weather", WEATHER.description, INPUT, "medium"],
        ],
      );
    });
  }

  const SAME: readonly [
    "openai.chat" | "openai.responses" | "openai.realtime",
    readonly object[],
  ][] = [
    ["openai.chat", [{ type: "function", function: WEATHER }]],
    ["openai.responses", [
      { type: "function", ...WEATHER, strict: false },
      {
        type: "function",
        name: "later",
        description: "L.",
        parameters: INPUT,
        strict: false,
        output_schema: { type: "object" },
        defer_loading: true,
        allowed_callers: ["direct", "programmatic"],
        async: true,
      },
      {
        type: "namespace",
        name: "crm",
        description: "Customers.",
        tools: [{
          type: "function",
          name: "find",
          description: "Finds.",
          parameters: INPUT,
          strict: false,
        }],
      },
    ]],
    ["openai.realtime", [{ type: "function", ...WEATHER }]],
  ];
  for (const [target, document] of SAME) {
    it(`returns the same definition after import and export as ${target}`, () => {
      const { tools, rejected } = importTools("openai", document);
      assertEquals(rejected, []);
      assertEquals(exportTools(tools, target).tools as unknown, document);
    });
  }

  it("exports a strict tool as strict", () => {
    const strict = {
      type: "function",
      function: {
        name: "a",
        description: "A.",
        parameters: {
          type: "object",
          properties: { x: { type: ["string", "null"] } },
          required: ["x"],
          additionalProperties: false,
        },
        strict: true,
      },
    };
    for (const unstrict of [false, true]) {
      const { tools } = importTools("openai", [strict], { unstrict });
      assertEquals(exportTools(tools, "openai.chat.strict").tools as unknown, [strict]);
    }
  });

  it("reads nullable properties of strict tools as optional ones, on demand", () => {
    const parameters = {
      type: "object",
      properties: {
        a: { type: ["string", "null"], enum: ["x", null] },
        b: { anyOf: [{ $ref: "#/$defs/b" }, { type: "null" }], description: "B." },
        c: { anyOf: [{ type: "string" }, { type: "integer" }, { type: "null" }] },
        d: { type: "null" },
        e: { type: "string" },
      },
      required: ["a", "b", "c", "d", "e"],
      $defs: {
        b: { type: "object", properties: { x: { type: ["integer", "null"] } }, required: ["x"] },
      },
    };
    const read = (strict: boolean, unstrict: boolean): JsonSchemaObject | undefined =>
      importTools("openai", [{ type: "function", name: "a", parameters, strict }], { unstrict })
        .tools[0]
        ?.parameters;
    assertEquals(read(true, false), parameters);
    assertEquals(read(false, true), parameters);
    assertEquals(read(true, true), {
      type: "object",
      properties: {
        a: { type: "string", enum: ["x"] },
        b: { $ref: "#/$defs/b", description: "B." },
        c: { anyOf: [{ type: "string" }, { type: "integer" }] },
        d: { type: "null" },
        e: { type: "string" },
      },
      required: ["d", "e"],
      $defs: { b: { type: "object", properties: { x: { type: "integer" } }, required: [] } },
    });
  });

  it("passes the nulls of strict tools on to their functions", async () => {
    const parameters = {
      type: "object",
      properties: {
        a: { type: ["string", "null"] },
        b: { anyOf: [{ $ref: "#/$defs/b" }, { type: "null" }] },
        c: { type: "array", items: { $ref: "#/$defs/b" } },
        d: { type: ["null"] },
      },
      required: ["a", "b", "c", "d"],
      additionalProperties: false,
      $defs: {
        b: {
          type: "object",
          properties: { x: { type: ["integer", "null"] }, y: { type: "integer" } },
          required: ["x", "y"],
          additionalProperties: false,
        },
      },
    };
    const asked: unknown[] = [];
    const { tools } = importTools(
      "openai",
      [{ type: "function", name: "run", parameters, strict: true }],
      { unstrict: true, execute: (_name, args) => void asked.push(args) },
    );
    await call(tools, "run", { c: [{ y: 1 }, { x: 2, y: 3 }], d: null });
    await call(tools, "run", { a: "s", b: { y: 4 }, c: [], d: null });
    assertEquals(asked, [
      { a: null, b: null, c: [{ x: null, y: 1 }, { x: 2, y: 3 }], d: null },
      { a: "s", b: { x: null, y: 4 }, c: [], d: null },
    ]);
  });

  it("reads a function without a schema as one without parameters", () => {
    for (const parameters of [undefined, null]) {
      const [tool] =
        importTools("openai", [{ type: "function", function: { name: "a", parameters } }]).tools;
      assertEquals(tool?.parameters, {
        type: "object",
        properties: {},
        additionalProperties: false,
      });
    }
    const typeless = importTools("openai", [{ name: "a", parameters: { properties: {} } }]);
    assertEquals(typeless.tools[0]?.parameters["type"], "object");
    assertEquals(typeless.warnings.map(({ path, rule }) => [path, rule]), [[
      "/0/parameters",
      "type",
    ]]);
  });

  it("expands namespaces, below the given one", () => {
    const document = [
      {
        type: "namespace",
        name: "crm",
        description: "C.",
        tools: [{ type: "function", name: "find" }, { type: "custom", name: "say" }],
      },
      { type: "function", name: "find" },
    ];
    assertEquals(importTools("openai", document).tools.map(({ id }) => id), ["crm:find", "find"]);
    const { tools, rejected } = importTools("openai", document, { namespace: "x" });
    assertEquals(tools.map(({ id }) => id), ["x.crm:find", "x:find"]);
    assertEquals(rejected.map(({ path, name, rule }) => [path, name, rule]), [[
      "/0/tools/1",
      "say",
      "type",
    ]]);
  });

  it("rejects other kinds of tools, and keeps the rest", () => {
    const { tools, rejected } = importTools("openai", {
      tools: [
        { type: "web_search" },
        { type: "custom", custom: { name: "say" } },
        { type: { toString: 1 } },
        { type: "namespace", name: "a b", tools: [] },
        { type: "namespace", name: "a" },
        { type: "function", function: {} },
        { type: "function", function: { name: "list", parameters: { type: "array" } } },
        7,
        { type: "function", function: WEATHER },
      ],
    });
    assertEquals(tools.map(({ name }) => name), ["get_weather"]);
    assertEquals(rejected.map(({ path, rule }) => [path, rule]), [
      ["/tools/0", "type"],
      ["/tools/1", "type"],
      ["/tools/2", "type"],
      ["/tools/3", "namespace"],
      ["/tools/4", "namespace"],
      ["/tools/5/function", "name"],
      ["/tools/6/function/parameters", "parameters"],
      ["/tools/7", "type"],
    ]);
    assertStringIncludes(rejected[0]?.message ?? "", '"web_search"');
  });

  it("reads nullable as accepting null, as its authors intend", () => {
    const parameters = {
      type: "object",
      nullable: true,
      properties: {
        a: { type: "string", nullable: true },
        b: { type: "string", enum: ["x"], nullable: true, description: "B." },
        c: { type: "array", items: { type: "number", nullable: true } },
        nullable: { type: "boolean", nullable: false },
        d: { nullable: true },
      },
    };
    const { tools, warnings } = importTools("openai", [{ name: "t", parameters }]);
    assertEquals(tools[0]?.parameters["properties"] as unknown, {
      a: { type: ["string", "null"] },
      b: { type: ["string", "null"], enum: ["x", null], description: "B." },
      c: { type: "array", items: { type: ["number", "null"] } },
      nullable: { type: "boolean", nullable: false },
      d: { nullable: true },
    });
    assertEquals(warnings.map(({ path, rule }) => [path, rule]), [["/0/parameters", "nullable"]]);
    // MCP's schemas are JSON Schema, which does not know it.
    const [mcp] = importTools("mcp", [{ name: "t", inputSchema: parameters }]).tools;
    assertEquals(mcp?.parameters as unknown, parameters);
  });

  it("keeps unknown fields, and adds no hints", () => {
    const [tool] = importTools("openai", [{ type: "function", ...WEATHER, later: 1 }]).tools;
    assert(tool !== undefined);
    assertEquals(tool.meta, {
      provider: {
        source: "openai",
        surface: "responses",
        annotations: null,
        extra: { later: 1 },
      },
    });
    assertEquals(exportTools([tool], "mcp").tools[0]?.annotations, undefined);
    const outer = importTools("openai", [{ type: "function", function: WEATHER, later: 1 }]);
    assertEquals(outer.warnings.map(({ path }) => path), ["/0/later"]);
  });

  it("reads draft-07 where it is used", () => {
    const parameters = {
      type: "object",
      properties: {
        pair: { type: "array", items: [{ type: "string" }, { $ref: "#/definitions/n" }] },
      },
      definitions: { n: { type: "number" } },
    };
    const { tools, rejected } = importTools("openai", [{ name: "a", parameters }]);
    assertEquals(rejected, []);
    assertEquals(tools[0]?.parameters, parameters);
  });
});
