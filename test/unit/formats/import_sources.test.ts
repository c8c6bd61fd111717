import { assert, assertEquals, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import * as plue from "../../../src/formats/mod.ts";
import { call } from "../../support/call_tool.ts";
import { fill } from "./cases.ts";
import { makeTool } from "../../../src/tool/mod.ts";
import cases from "./cases/imports.json" with { type: "json" };

type Remark = readonly [path: string, name: string | null, rule: string, message: string];

/** A document of a source, and its import. */
interface Row {
  readonly title: string;
  readonly source: plue.ImportSource | "auto";
  /** The source that is detected; `null` if none is detected. */
  readonly detects?: plue.ImportSource | null;
  readonly document: unknown;
  readonly options?: object;
  /** Some fields of the tools; absent if they do not matter. */
  readonly tools?: readonly Readonly<Record<string, unknown>>[];
  readonly rejected?: readonly Remark[];
  readonly warnings?: readonly Remark[];
  /** The message of the error, instead of an import. */
  readonly throws?: string;
  /** The tools, exported again; `same` as the document. */
  readonly exported?: Readonly<
    Record<string, { readonly tools: unknown; readonly losses?: readonly unknown[] }>
  >;
}

const ROWS = fill(cases.rows, fill(cases.texts, cases.texts) as typeof cases.texts) as Row[];

for (const source of [...plue.IMPORT_SOURCES, "auto"] as const) {
  describe(`importTools("${source}")`, () => {
    for (const row of ROWS.filter((one) => one.source === source)) {
      it(row.title, () => {
        const read = () => plue.importTools(source, row.document, row.options ?? {});
        if (row.throws !== undefined) {
          assertEquals(assertThrows(read, Error).message, row.throws);
          return;
        }
        const imported = read();
        if (row.detects !== undefined) assertEquals(imported.source ?? null, row.detects);
        const { tools, rejected, warnings } = imported;
        if (row.tools !== undefined) {
          assertEquals(tools.length, row.tools.length);
          const shown = tools.map((tool, index) =>
            Object.fromEntries(
              Object.keys(row.tools?.[index] ?? {})
                .map((field) => [field, tool[field as keyof typeof tool] ?? null]),
            )
          );
          assertEquals(shown, row.tools);
        }
        assertEquals<unknown>(
          rejected.map(({ path, name, rule, message }) => [path, name ?? null, rule, message]),
          row.rejected ?? [],
        );
        assertEquals<unknown>(
          warnings.map(({ path, tool, rule, message }) => [path, tool ?? null, rule, message]),
          row.warnings ?? [],
        );
        for (const [target, expected] of Object.entries(row.exported ?? {})) {
          const again = plue.exportTools(tools, target as plue.TargetName);
          const { tools: sent, losses = [] } = expected;
          assertEquals(again.tools as unknown, sent === "same" ? row.document : sent, target);
          assertEquals(again.losses.map(({ path, grade }) => [path, grade]), losses, target);
        }
      });
    }
  });
}

describe("calls of imported tools", () => {
  it("use the names of the source, even if these are not legal ids", async () => {
    const received: unknown[] = [];
    const inputSchema = { type: "object" };
    const documents = ["a/b", "a b", "a_c", "x:y"].map((name) => ({ name, inputSchema }));
    const { tools, warnings } = plue.importTools("mcp", documents, {
      execute: (name, args) => received.push(name, args),
    });
    const names = tools.map(({ name }) => name);
    assertEquals(new Set(names).size, 4);
    assertEquals(names.slice(2), ["a_c", "x_y"]);
    assertEquals(names.slice(0, 2).every((name) => /^a_b_[0-9a-f]{8}$/.test(name)), true);
    const remarks = [names[0], names[1], "x_y"].map((name) => [name, "name"]);
    assertEquals(warnings.map(({ tool, rule }) => [tool, rule]), remarks);
    await call(tools, names[0] ?? "", {});
    assertEquals(received, ["a/b", {}]);
  });

  it("have the nulls of OpenAI's strict tools", async () => {
    const inner = { x: { type: ["integer", "null"] }, y: { type: "integer" } };
    const object = { type: "object", additionalProperties: false };
    const parameters = {
      ...object,
      properties: {
        a: { type: ["string", "null"] },
        b: { anyOf: [{ $ref: "#/$defs/b" }, { type: "null" }] },
        c: { type: "array", items: { $ref: "#/$defs/b" } },
        d: { type: ["null"] },
      },
      required: ["a", "b", "c", "d"],
      $defs: { b: { ...object, properties: inner, required: ["x", "y"] } },
    };
    const received: unknown[] = [];
    const document = [{ type: "function", name: "run", parameters, strict: true }];
    const execute = (_name: string, args: unknown) => void received.push(args);
    const { tools } = plue.importTools("openai", document, { unstrict: true, execute });
    await call(tools, "run", { c: [{ y: 1 }, { x: 2, y: 3 }], d: null });
    await call(tools, "run", { a: "s", b: { y: 4 }, c: [], d: null });
    assertEquals(received, [
      { a: null, b: null, c: [{ x: null, y: 1 }, { x: 2, y: 3 }], d: null },
      { a: "s", b: { x: null, y: 4 }, c: [], d: null },
    ]);
  });
});

describe("fields that plue does not know", () => {
  const json = { type: "object", properties: {} };
  it("are exported to targets that accept all hints", () => {
    const { tools } = plue.importTools("anthropic", [{ later: 1, name: "a", input_schema: json }]);
    for (const target of ["openapi", "ai-sdk"] as const) {
      const { tools: sent, losses } = plue.exportTools(tools, target);
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
    const [sent] = plue.exportTools([tool], "anthropic").tools;
    assertEquals([sent?.name, sent?.input_schema.type], ["a", "object"]);
    assertEquals(sent !== undefined && "later" in sent, false);
  });
});
