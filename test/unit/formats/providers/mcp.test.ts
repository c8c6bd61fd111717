import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { exportTools, importTools } from "../../../../src/formats/mod.ts";
import { call } from "../../../support/call_tool.ts";

const INPUT = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** A tool that says all that MCP can say. */
const WEATHER = {
  name: "get_weather",
  title: "Weather",
  description: "Says how the weather is.",
  inputSchema: { $schema: "https://json-schema.org/draft/2020-12/schema", ...INPUT },
  outputSchema: { type: "array", items: { type: "object" } },
  annotations: { title: "W", readOnlyHint: true, "x-mood": "sunny" },
  icons: [{
    src: "https://example.com/i.png",
    mimeType: "image/png",
    sizes: ["48x48"],
    theme: "dark",
  }],
  _meta: { "com.example/x": 1 },
  later: { field: true },
};

describe('importTools("mcp")', () => {
  it("reads a result of tools/list, a response, pages, and a list of tools", () => {
    const other = { name: "other", inputSchema: { type: "object" } };
    const rows: readonly unknown[] = [
      { tools: [WEATHER, other] },
      { jsonrpc: "2.0", id: 1, result: { tools: [WEATHER, other] } },
      [{ tools: [WEATHER], nextCursor: "2" }, { tools: [other] }],
      [{ result: { tools: [WEATHER], nextCursor: "2" } }, { result: { tools: [other] } }],
      [WEATHER, other],
    ];
    for (const document of rows) {
      const { tools, warnings, rejected } = importTools("mcp", document);
      assertEquals(tools.map(({ id }) => id), ["get_weather", "other"]);
      assertEquals([warnings, rejected], [[], []]);
    }
  });

  it("keeps all that a tool says", () => {
    const [tool] = importTools("mcp", [WEATHER], { namespace: "sky" }).tools;
    assert(tool !== undefined);
    assertEquals(tool.id, "sky:get_weather");
    assertEquals(tool.title, "Weather");
    assertEquals(tool.parameters, WEATHER.inputSchema);
    assertEquals(tool.returns, WEATHER.outputSchema);
    assertEquals(tool.icons, WEATHER.icons as never);
    assertEquals(tool.meta, {
      "com.example/x": 1,
      provider: {
        source: "mcp",
        annotations: WEATHER.annotations,
        extra: { later: { field: true } },
      },
    });
    assertEquals(tool.risk, "low");
  });

  const SAME: readonly [string, Record<string, unknown>][] = [
    ["that says everything", WEATHER],
    ["that says nothing", { name: "a", inputSchema: { type: "object" } }],
    ["with no hints in its annotations", { name: "a", inputSchema: INPUT, annotations: {} }],
    ["with a title in its annotations", {
      name: "a",
      inputSchema: INPUT,
      annotations: { title: "A" },
    }],
    ["with both titles alike", {
      name: "a",
      title: "A",
      inputSchema: INPUT,
      annotations: { title: "A" },
    }],
    ["with the defaults written out", {
      name: "a",
      description: "A.",
      inputSchema: INPUT,
      annotations: {
        readOnlyHint: false,
        destructiveHint: true,
        idempotentHint: false,
        openWorldHint: true,
      },
    }],
    ["with definitions, as 2020-12 has them too", {
      name: "a",
      inputSchema: {
        type: "object",
        properties: { x: { $ref: "#/definitions/x", description: "X." } },
        definitions: { x: { type: "string" } },
      },
    }],
    ["with a root that is put together", {
      name: "a.b-c",
      inputSchema: {
        type: "object",
        anyOf: [{ required: ["a"] }, { $ref: "#/$defs/b" }],
        $defs: { b: { $anchor: "b" } },
      },
    }],
  ];
  for (const [what, tool] of SAME) {
    it(`returns the same definition after import and export of a tool ${what}`, () => {
      const { tools, warnings } = importTools("mcp", { tools: [tool] });
      assertEquals(warnings, []);
      const { tools: again, losses } = exportTools(tools, "mcp@2026-07-28");
      assertEquals(again as unknown, [tool]);
      assertEquals(losses, []);
    });
  }

  it("exports execution.taskSupport to the revision that has it", () => {
    const tool = {
      name: "a",
      description: "A.",
      inputSchema: INPUT,
      execution: { taskSupport: "optional" },
    };
    const { tools } = importTools("mcp", [tool]);
    assertEquals(exportTools(tools, "mcp@2025-11-25").tools as unknown, [tool]);
  });

  it("exports other fields of execution, except to a revision without it", () => {
    const execution = { taskSupport: "optional", more: [1] };
    const [tool] = importTools("mcp", [{ name: "a", inputSchema: INPUT, execution }]).tools;
    assert(tool !== undefined);
    const with2025 = exportTools([tool], "mcp@2025-11-25");
    assertEquals(with2025.tools[0]?.execution as unknown, execution);
    assertEquals(with2025.losses, []);
    for (const target of ["mcp@2025-06-18", "mcp@2026-07-28"] as const) {
      const { tools, losses } = exportTools([tool], target);
      assertEquals(tools[0]?.execution, undefined);
      assertEquals(losses.map(({ path, grade }) => [path, grade]), [
        ["/meta/provider/taskSupport", "lost"],
        ["/meta/provider/extra/execution", "lost"],
      ]);
    }
    const [odd] = importTools("mcp", [{
      name: "a",
      inputSchema: INPUT,
      execution: { taskSupport: "maybe" },
    }]).tools;
    assert(odd !== undefined);
    assertEquals(exportTools([odd], "mcp@2025-11-25").tools[0]?.execution as unknown, {
      taskSupport: "maybe",
    });
    assertEquals(exportTools([odd], "mcp@2026-07-28").losses.length, 1);
  });

  it("writes a result schema of true or false as an object", () => {
    for (const [outputSchema, sent] of [[true, {}], [false, { not: {} }]] as const) {
      const { tools } = importTools("mcp", [{ name: "a", inputSchema: INPUT, outputSchema }]);
      const { tools: newer, losses } = exportTools(tools, "mcp@2026-07-28");
      assertEquals(newer[0]?.outputSchema, sent);
      assertEquals(losses, []);
      const older = exportTools(tools, "mcp@2025-11-25").tools[0]?.outputSchema;
      assertEquals(older as unknown, {
        type: "object",
        properties: { result: sent },
        required: ["result"],
      });
    }
  });

  it("rewrites definitions where the two drafts would read the schema differently", () => {
    const definitions = { x: { type: "string" } };
    const rows: readonly [Record<string, unknown>, Record<string, unknown>][] = [
      [{ x: { $ref: "#/definitions/x", minLength: 3 } }, { x: { $ref: "#/$defs/x" } }],
      [{ x: { items: [{}] } }, { x: { prefixItems: [{}] } }],
      [{ x: { prefixItems: [{ type: "string" }] } }, { x: {} }],
      [{ x: { $id: "#y" } }, { x: { $anchor: "y" } }],
    ];
    for (const [properties, sent] of rows) {
      const schema = {
        type: "object",
        properties: { ...properties, y: { $ref: "#/definitions/x" } },
        definitions,
      };
      const { tools } = importTools("mcp", [{ name: "a", inputSchema: schema }]);
      assertEquals(exportTools(tools, "mcp").tools[0]?.inputSchema as unknown, {
        type: "object",
        properties: { ...sent, y: { $ref: "#/$defs/x" } },
        $defs: definitions,
      });
    }
  });

  it("treats an empty cursor as absent", () => {
    const tools = [{ name: "a", inputSchema: INPUT }];
    assertEquals(importTools("mcp", { tools, nextCursor: "" }).warnings, []);
    const pages = [{ tools, nextCursor: "" }, { tools: [{ name: "b", inputSchema: INPUT }] }];
    assertEquals(importTools("mcp", pages).warnings, []);
  });

  it("applies MCP's pessimistic defaults to missing hints", () => {
    const [tool] = importTools("mcp", [{ name: "a", inputSchema: INPUT }]).tools;
    assertEquals(tool?.annotations, {
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: true,
    });
    assertEquals(tool?.description, "a");
  });

  const RISKS: readonly [object | undefined, string][] = [
    [undefined, "medium"],
    [{}, "medium"],
    [{ readOnlyHint: true }, "low"],
    [{ readOnlyHint: false }, "medium"],
    [{ destructiveHint: true }, "high"],
    [{ destructiveHint: false }, "medium"],
    [{ readOnlyHint: true, destructiveHint: true }, "high"],
    [{ readOnlyHint: "true" }, "medium"],
  ];
  for (const [annotations, risk] of RISKS) {
    it(`takes ${JSON.stringify(annotations)} for ${risk} risk`, () => {
      const [tool] = importTools("mcp", [{ name: "a", inputSchema: INPUT, annotations }]).tools;
      assertEquals(tool?.risk, risk as never);
    });
  }

  it("rejects an invalid tool with a pointer and a reason", () => {
    const { tools, rejected } = importTools("mcp", {
      tools: [
        null,
        { inputSchema: INPUT },
        { name: "none" },
        { name: "root", inputSchema: { properties: {} } },
        { name: "list", inputSchema: { type: ["object", "null"] } },
        {
          name: "outside",
          inputSchema: { type: "object", properties: { a: { $ref: "https://example.com/a" } } },
        },
        { name: "type", inputSchema: { type: "object", properties: { a: { type: "strng" } } } },
        {
          name: "draft",
          inputSchema: { $schema: "http://json-schema.org/draft-03/schema#", type: "object" },
        },
        { name: "fine", inputSchema: INPUT },
        { name: "fine", inputSchema: INPUT },
      ],
    });
    assertEquals(tools.map(({ name }) => name), ["fine"]);
    assertEquals(
      new Map(rejected.map(({ path, name, rule }) => [path, [name, rule]])),
      new Map<string, (string | undefined)[]>([
        ["/tools/0", [undefined, "type"]],
        ["/tools/1", [undefined, "name"]],
        ["/tools/2/inputSchema", ["none", "parameters"]],
        ["/tools/3/inputSchema", ["root", "parameters"]],
        ["/tools/4/inputSchema", ["list", "parameters"]],
        ["/tools/5", ["outside", "parameters"]],
        ["/tools/6", ["type", "parameters"]],
        ["/tools/7", ["draft", "parameters"]],
        ["/tools/9", ["fine", "name"]],
      ]),
    );
    const of = (name: string): string => rejected.find((one) => one.name === name)?.message ?? "";
    assertStringIncludes(of("outside"), "nothing is fetched");
    assertStringIncludes(of("type"), '"/properties/a/type"');
    assertStringIncludes(of("fine"), "/tools/8");
  });

  it("omits an invalid field, and keeps the tool", () => {
    const { tools, warnings } = importTools("mcp", [{
      name: "a",
      title: 1,
      description: ["A."],
      inputSchema: INPUT,
      outputSchema: { type: "strng" },
      annotations: { readOnlyHint: 1 },
      icons: [{}],
      _meta: { provider: { strict: true } },
    }]);
    assertEquals(tools.length, 1);
    assertEquals(tools[0]?.returns, undefined);
    assertEquals((tools[0]?.meta?.["provider"] as { strict?: boolean }).strict, undefined);
    assertEquals(warnings.map(({ tool, path }) => [tool, path]).sort(), [
      ["a", "/0"],
      ["a", "/0/_meta/provider"],
      ["a", "/0/annotations/readOnlyHint"],
      ["a", "/0/description"],
      ["a", "/0/icons"],
      ["a", "/0/title"],
    ]);
  });

  it("creates a legal name from an illegal one, and keeps the server's", async () => {
    const asked: unknown[] = [];
    const { tools, warnings } = importTools("mcp", [
      { name: "a/b", inputSchema: { type: "object" } },
      { name: "a b", inputSchema: { type: "object" } },
      { name: "a_c", inputSchema: { type: "object" } },
      { name: "x:y", inputSchema: { type: "object" } },
    ], { execute: (name, args) => asked.push(name, args) });
    const names = tools.map(({ name }) => name);
    assertEquals(new Set(names).size, 4);
    assertEquals(names.slice(2), ["a_c", "x_y"]);
    assertEquals(names.slice(0, 2).every((name) => /^a_b_[0-9a-f]{8}$/.test(name)), true);
    assertEquals(warnings.map(({ tool, rule }) => [tool, rule]), [
      [names[0], "name"],
      [names[1], "name"],
      ["x_y", "name"],
    ]);
    await call(tools, names[0] ?? "", {});
    assertEquals(asked, ["a/b", {}]);
  });

  it("does not let a server choose its namespace", () => {
    const [tool] =
      importTools("mcp", [{ name: "trusted:run", inputSchema: INPUT }], { namespace: "theirs" })
        .tools;
    assertEquals(tool?.id, "theirs:trusted_run");
  });

  it("stops at a repeated cursor, and reports further pages", () => {
    const page = (name: string, nextCursor?: string): object => ({
      tools: [{ name, inputSchema: INPUT }],
      ...(nextCursor === undefined ? {} : { nextCursor }),
    });
    const circle = importTools("mcp", [page("a", "1"), page("b", "1"), page("c")]);
    assertEquals(circle.tools.map(({ name }) => name), ["a", "b"]);
    assertEquals(circle.warnings.map(({ path }) => path), ["/1/nextCursor"]);
    const more = importTools("mcp", page("a", "1"));
    assertStringIncludes(more.warnings[0]?.message ?? "", "There are more pages");
  });

  it("uses the shortest lifetime and the narrowest scope of all pages", () => {
    const { cache } = importTools("mcp", [
      { tools: [], ttlMs: 5_000, cacheScope: "public", nextCursor: "1" },
      { tools: [], ttlMs: 1_000, cacheScope: "private" },
    ]);
    assertEquals(cache, { ttlMs: 1_000, scope: "private" });
    assertEquals(importTools("mcp", { tools: [] }).cache, undefined);
  });

  const HEADERS: readonly [string, object, string][] = [
    ["is no token", {
      type: "object",
      properties: { a: { type: "string", "x-mcp-header": "a b" } },
    }, "/properties/a/x-mcp-header"],
    ["stands on a list", {
      type: "object",
      properties: { a: { type: "array", "x-mcp-header": "A" } },
    }, "/properties/a/x-mcp-header"],
    ["is there twice", {
      type: "object",
      properties: {
        a: { type: "string", "x-mcp-header": "A" },
        b: { type: "object", properties: { c: { type: "integer", "x-mcp-header": "a" } } },
      },
    }, "/properties/b/properties/c/x-mcp-header"],
    ["stands in items", {
      type: "object",
      properties: { a: { type: "array", items: { type: "string", "x-mcp-header": "A" } } },
    }, "/properties/a/items/x-mcp-header"],
  ];
  for (const [what, inputSchema, path] of HEADERS) {
    it(`rejects a tool over HTTP whose x-mcp-header ${what}`, () => {
      const tool = { name: "a", inputSchema };
      const { tools, rejected } = importTools("mcp", [tool]);
      assertEquals(tools, []);
      assertEquals(rejected.map(({ path, rule }) => [path, rule]), [[
        `/0/inputSchema${path}`,
        "x-mcp-header",
      ]]);
      const stdio = importTools("mcp", [tool], { transport: "stdio" });
      assertEquals(stdio.tools.length, 1);
      assertEquals(stdio.warnings.map(({ rule }) => rule), ["x-mcp-header"]);
    });
  }

  it("takes a property named x-mcp-header for a property", () => {
    const inputSchema = {
      type: "object",
      properties: {
        "x-mcp-header": { type: "array" },
        a: { type: "string", "x-mcp-header": "A" },
        b: { enum: [{ "x-mcp-header": 1 }] },
      },
    };
    assertEquals(importTools("mcp", [{ name: "a", inputSchema }]).rejected, []);
  });

  const WRAPPED = {
    name: "a",
    inputSchema: { type: "object" },
    outputSchema: {
      type: "object",
      properties: {
        result: {
          type: "array",
          items: { $ref: "#/properties/result/$defs/b" },
          $defs: { b: { type: "integer" } },
        },
      },
      required: ["result"],
    },
  };

  it("imports a result schema that wraps another one unchanged", () => {
    assertEquals(importTools("mcp", [WRAPPED]).tools[0]?.returns, WRAPPED.outputSchema);
  });

  it("rejects an invalid page", () => {
    for (const document of [{}, null, "tools", 7, { tools: {} }, [{ tools: [] }, { nothing: 1 }]]) {
      assertEquals(importTools("mcp", document).rejected.map(({ rule }) => rule), ["document"]);
    }
  });
});
