import { describe, it } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { listIn } from "../../../src/formats/wire.ts";
import {
  exportTools,
  type ImportSource,
  importTools,
  type TargetName,
} from "../../../src/formats/mod.ts";
import { isObject, makeTool } from "../../../src/tool/mod.ts";

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
      const list = isObject(document) ? listIn(document["session"], "tools") : document;
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

  it("never replace fields that plue sets", () => {
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
