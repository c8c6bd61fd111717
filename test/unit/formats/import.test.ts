import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { IMPORT_SOURCES, importTools } from "../../../src/formats/mod.ts";
import { documentPart, documentWord } from "../../support/arbitrary_document.ts";
import { call } from "../../support/call_tool.ts";
import { cases } from "../../support/laws.ts";
import fc from "fast-check";

const INPUT = { type: "object", properties: { a: { type: "string" } } };
const MCP = [{ name: "a", inputSchema: INPUT }];

describe("importTools()", () => {
  it("spends a bounded time on the patterns of one source, and omits the rest", () => {
    const schema = (of: number) => ({
      type: "object",
      properties: Object.fromEntries(Array.from({ length: 60 }, (_, at) => {
        return [`p${at}`, { pattern: `(?:(?:(?:x${of}_${at}|yy){0,9}z){0,9}){0,9}q` }];
      })),
    });
    const { tools, warnings } = importTools(
      "mcp",
      Array.from({ length: 12 }, (_, of) => ({ name: `t${of}`, inputSchema: schema(of) })),
    );
    const left = tools.flatMap(({ parameters }) =>
      Object.values(parameters["properties"] ?? {}).filter((part) => "pattern" in Object(part))
    );
    assertEquals(tools.length, 12);
    assert(left.length > 60 && left.length < 400, `${left.length} patterns are left`);
    assert(warnings.some(({ tool, rule }) => tool === "t11" && rule === "pattern"));
  });

  it("bounds titles and descriptions", () => {
    const long = "x".repeat(100_000);
    const { tools: [tool] } = importTools("mcp", [{
      name: "read",
      title: long,
      description: long,
      inputSchema: { type: "object", description: long.slice(0, 50_000) },
    }, { name: long, inputSchema: INPUT }]);
    assertEquals(tool?.title?.length, 500);
    assertEquals(tool?.description.length, 8_192);
    assertEquals(String(tool?.parameters["description"]).length, 8_192);
  });

  it("makes definitions, or tools that the passed function runs", async () => {
    assertEquals(importTools("mcp", MCP).tools[0]?.execute, undefined);
    const { tools } = importTools("mcp", MCP, {
      namespace: "x",
      execute: (name, args, context) => ({ name, args, callId: typeof context.callId }),
    });
    const result = await call(tools, "x:a", { a: "b" });
    assertEquals(result.ok && result.content, { name: "a", args: { a: "b" }, callId: "string" });
  });

  it("sets one risk for all, or calls a function for each", () => {
    assertEquals(importTools("mcp", MCP, { risk: "critical" }).tools[0]?.risk, "critical");
    const received: unknown[] = [];
    const { tools } = importTools("mcp", [
      { name: "a", inputSchema: INPUT, annotations: { readOnlyHint: true } },
    ], {
      namespace: "x",
      risk: (question) => {
        received.push(question);
        return "high";
      },
    });
    assertEquals(tools[0]?.risk, "high");
    assertEquals(received, [{
      id: "x:a",
      sourceName: "a",
      annotations: { readOnlyHint: true },
      suggested: "low",
      findings: [],
    }]);
  });

  it("does not report an error of the program as an error of the document", () => {
    const risk = (): never => {
      throw new Error("no idea");
    };
    assertThrows(() => importTools("mcp", MCP, { risk }), Error, "no idea");
  });

  it("throws for an unknown source", () => {
    assertThrows(
      () => importTools("constructor" as never, {}),
      TypeError,
      "the source must be auto, anthropic",
    );
  });

  it("limits the number of reported problems", () => {
    const tools = Array.from(
      { length: 1_200 },
      (_, index) => ({ name: `t ${index}`, inputSchema: INPUT }),
    );
    const { warnings, tools: made } = importTools("mcp", tools);
    assertEquals(made.length, 1_200);
    assertEquals(warnings.length, 1_001);
    assertEquals(warnings.at(-1)?.rule, "maxWarnings");
  });

  it("bounds the schemas of all tools together, and of each", () => {
    const wide = {
      type: "object",
      properties: Object.fromEntries(
        Array.from({ length: 6_000 }, (_, index) => [`p${index}`, true]),
      ),
    };
    const one = importTools("mcp", [{ name: "wide", inputSchema: wide }, ...MCP]);
    assertEquals(one.tools.map(({ name }) => name), ["wide", "a"]);
    const objects = {
      type: "object",
      properties: Object.fromEntries(
        Array.from({ length: 6_000 }, (_, index) => [`p${index}`, {}]),
      ),
    };
    const each = importTools("mcp", [{ name: "wide", inputSchema: objects }, ...MCP]);
    assertEquals(each.tools.map(({ name }) => name), ["a"]);
    assertStringIncludes(each.rejected[0]?.message ?? "", "at most 5000 schemas");
    const all = importTools("mcp", [...MCP, { name: "wide", inputSchema: wide }], {
      limits: { maxValues: 100 },
    });
    assertEquals(all.rejected.map(({ name, rule }) => [name, rule]), [["wide", "maxValues"]]);
  });

  it("recognises documents that are deeper than a stack, or contain themselves", () => {
    let deep: Record<string, unknown> = {};
    for (let level = 0; level < 50_000; level++) deep = { items: deep };
    const loop: Record<string, unknown> = {};
    loop["properties"] = { a: loop, b: loop };
    for (const parameters of [deep, loop]) {
      const { source, rejected } = importTools("auto", [{ name: "a", parameters }]);
      assertEquals([source, rejected.length], ["openai", 1]);
    }
    const wide = Array.from({ length: 20_000 }, (_, index) => [`p${index}`, {}]);
    const typed = { properties: { ...Object.fromEntries(wide), last: { type: "STRING" } } };
    assertEquals(importTools("auto", [{ name: "a", parameters: typed }]).source, "openai");
  });

  it("rejects an entry that is too deep, or contains itself", () => {
    let deep: Record<string, unknown> = { type: "object" };
    for (let level = 0; level < 5_000; level++) deep = { type: "object", properties: { a: deep } };
    const round: Record<string, unknown> = { name: "round", inputSchema: INPUT };
    round["round"] = round;
    const { tools, rejected } = importTools("mcp", [
      { name: "deep", inputSchema: deep },
      round,
      ...MCP,
    ]);
    assertEquals(tools.map(({ name }) => name), ["a"]);
    assertEquals(rejected.map(({ path }) => path), ["/0", "/1"]);
  });

  it("imports tools with hostile names", () => {
    const document = JSON.parse(
      '[{"name":"__proto__","inputSchema":{"type":"object","properties":{"__proto__":{"type":"string"}}},' +
        '"__proto__":{"x":1},"_meta":{"__proto__":2}},' +
        '{"name":"constructor","inputSchema":{"type":"object"}}]',
    );
    const { tools } = importTools("mcp", document);
    assertEquals(tools.map(({ id }) => id), ["__proto__", "constructor"]);
    assertEquals(Object.keys(tools[0]?.parameters["properties"] as object), ["__proto__"]);
    assertEquals(Object.keys(tools[0]?.meta ?? {}), ["__proto__", "provider"]);
    assertEquals(({} as { x?: unknown }).x, undefined);
  });

  it("does not change the document, nor follow its changes", () => {
    const document = structuredClone(MCP);
    const before = JSON.stringify(document);
    const { tools } = importTools("mcp", document);
    assertEquals(JSON.stringify(document), before);
    (document[0] as { inputSchema: { properties: Record<string, unknown> } }).inputSchema
      .properties["b"] = {};
    assertEquals(Object.keys(tools[0]?.parameters["properties"] as object), ["a"]);
  });

  it("returns the same for the same document", () => {
    const write = (): string => JSON.stringify(importTools("mcp", MCP));
    assertEquals(write(), write());
  });

  it("never throws for any document", () => {
    fc.assert(
      fc.property(
        documentPart,
        fc.constantFrom(...IMPORT_SOURCES, "auto" as const),
        (document, source) => {
          const { tools } = importTools(source, document, {});
          assertEquals(new Set(tools.map(({ id }) => id)).size, tools.length);
        },
      ),
      cases(400, 7),
    );
    const entry = fc.record({
      name: fc.oneof(fc.string(), documentWord),
      type: fc.option(documentWord, { nil: undefined }),
      function: documentPart,
      parameters: documentPart,
      inputSchema: fc.record({
        type: fc.constant("object"),
        properties: documentPart,
        allOf: documentPart,
      }),
      input_schema: documentPart,
      toolSpec: documentPart,
      annotations: documentPart,
      outputSchema: documentPart,
    }, { requiredKeys: [] });
    fc.assert(
      fc.property(
        fc.array(entry),
        fc.constantFrom(...IMPORT_SOURCES, "auto" as const),
        (document, source) => {
          importTools(source, document, {});
        },
      ),
      cases(200, 8),
    );
  });
});

const LIST = {
  tools: ["read", "write", "wipe"].map((name) => ({ name, inputSchema: { type: "object" } })),
};

/** The ids, and the rules of warnings and rejections. */
function outcome({ tools, warnings, rejected }: ReturnType<typeof importTools>) {
  return [
    tools.map(({ id }) => id),
    warnings.map(({ rule }) => rule),
    rejected.map(({ rule }) => rule),
  ];
}

describe("importTools() with include and exclude", () => {
  it("omits excluded tools, even if they are included", () => {
    const options = { include: ["read", "wipe"], exclude: (name: string) => name.startsWith("w") };
    assertEquals(outcome(importTools("mcp", LIST, options)), [["read"], [], []]);
  });

  it("imports no tool if a function does not return a boolean", () => {
    // Values that the types exclude.
    const include = (() => "yes") as unknown as (name: string) => boolean;
    assertEquals(importTools("mcp", LIST, { include }).tools, []);
  });
});

describe("importTools() with roles, scopes and risk", () => {
  it("calls a function for each tool", () => {
    const { tools } = importTools("mcp", LIST, {
      scopes: ({ id, sourceName }) => [id, `do:${sourceName}`],
      namespace: "x",
    });
    assertEquals(tools[0]?.scopes, ["x:read", "do:read"]);
  });

  for (
    const [options, what] of [
      [{ include: "read" }, "include must be a list of names, or a function"],
      [{ exclude: [1] }, "exclude must be a list of names, or a function"],
      [{ roles: "dev" }, "the roles must be a list of strings"],
      [{ roles: { read: "dev" } }, 'the roles of "read" must be a list of strings'],
      [{ scopes: () => [1] }, "the scopes must be a list of strings"],
      [{ risk: () => "huge" }, "the risk must be one of safe, low"],
      [{ risk: { read: "huge" } }, 'the risk of "read" must be one of'],
      [{ risk: () => Promise.reject(new Error("late")) }, "must not be a promise"],
      [{ exclude: () => Promise.reject(new Error("late")) }, "must not be a promise"],
    ] as const
  ) {
    it(`rejects ${JSON.stringify(options)}, because ${what}`, () => {
      assertThrows(() => importTools("mcp", LIST, options as never), TypeError, what);
    });
  }
});

describe("importTools() of icons", () => {
  const icons = (...sources: readonly string[]) => ({
    tools: [{
      name: "draw",
      inputSchema: { type: "object" },
      icons: sources.map((src) => ({ src })),
    }],
  });

  it("omits icons that run code or read files, or are too large or too many", () => {
    const bad = [
      "javascript:alert(1)",
      "file:///etc/passwd",
      `data:image/png,${"A".repeat(70_000)}`,
    ];
    const many = Array.from({ length: 20 }, (_, index) => `https://a.example/${index}`);
    const { tools, warnings } = importTools("mcp", icons(...bad, ...many));
    assertEquals(tools[0]?.icons.map(({ src }) => src), many.slice(0, 16));
    assertEquals(warnings.map(({ rule }) => rule), ["icons"]);
  });
});
