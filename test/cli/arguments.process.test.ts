import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { flagsOf, readArguments } from "../../src/cli/arguments.ts";
import { CommandError } from "../../src/cli/terminal.ts";
import { type JsonSchemaObject, makeTool, type Tool } from "../../src/tool/mod.ts";

function toolOf(
  properties: { readonly [name: string]: unknown },
  more: JsonSchemaObject = {},
): Tool {
  const parameters = { type: "object", properties, ...more };
  return makeTool({ name: "tool", description: "A tool of these tests.", parameters });
}

const FILES: Readonly<Record<string, string>> = {
  "note.txt": "a note\n",
  "data.json": '{"depth": 3}',
  "-": '{"query": "from stdin"}',
};

const read = (tool: Tool, ...words: readonly string[]): Promise<Record<string, unknown>> =>
  readArguments(tool, words, (path) => {
    const text = FILES[path];
    return text === undefined
      ? Promise.reject(new Error("there is no such file"))
      : Promise.resolve(text);
  });

const TREE: JsonSchemaObject = {
  $defs: {
    node: {
      type: "object",
      properties: { name: { type: "string" }, child: { $ref: "#/$defs/node" } },
    },
  },
};

const TEXT = { type: "string" };
const INTEGER = { type: "integer" };
const FLAG = { type: "boolean" };

describe("readArguments()", () => {
  for (
    const [what, properties, words, wanted] of [
      ["text", { q: TEXT }, ["--q", "x y"], { q: "x y" }],
      ["text behind =", { q: TEXT }, "--q=a=b", { q: "a=b" }],
      ["text that looks like a number", { q: TEXT }, "--q 007", { q: "007" }],
      ["a whole number", { n: INTEGER }, "--n 7", { n: 7 }],
      ["a negative number", { n: { type: "number" } }, "--n=-0.5", { n: -0.5 }],
      ["what is no number, for the schema to refuse", { n: INTEGER }, "--n x", { n: "x" }],
      ["a switch", { on: FLAG }, "--on", { on: true }],
      ["a switch that is off", { on: FLAG }, "--no-on", { on: false }],
      ["a switch with a value", { on: FLAG }, "--on=false", { on: false }],
      ["a switch before another flag", { on: FLAG, q: TEXT }, "--on --q x", { on: true, q: "x" }],
      ["null where it is allowed", { n: { type: ["integer", "null"] } }, "--n null", { n: null }],
      ["a value of an enum, of its own type", { e: { enum: [1, "two", true] } }, "--e 1", { e: 1 }],
      ["a list, item by item", { l: { type: "array", items: INTEGER } }, "--l 1 --l 2", {
        l: [1, 2],
      }],
      ["a list as JSON", { l: { type: "array" } }, ["--l", '["a",2]'], { l: ["a", 2] }],
      ["a part of an object", { o: { type: "object", properties: { d: INTEGER } } }, "--o.d 2", {
        o: { d: 2 },
      }],
      ["an object as JSON", { o: { type: "object" } }, ["--o", '{"d":2}'], { o: { d: 2 } }],
      ["a part over an object", { o: { type: "object", properties: { d: INTEGER } } }, [
        "--o",
        '{"c":1}',
        "--o.d=2",
      ], { o: { c: 1, d: 2 } }],
      [
        "an item of a list of objects",
        { l: { type: "array", items: { type: "object", properties: { n: INTEGER } } } },
        "--l.0.n=1 --l.1.n=2",
        { l: [{ n: 1 }, { n: 2 }] },
      ],
      [
        "a name of a map",
        { m: { type: "object", additionalProperties: { type: "number" } } },
        "--m.any 5",
        { m: { any: 5 } },
      ],
      ["another case", { maxResults: INTEGER }, "--max-results 3", { maxResults: 3 }],
      ["a name with a dot", { "a.b": TEXT }, "--a.b x", { "a.b": "x" }],
      ["a union", { u: { anyOf: [INTEGER, TEXT] } }, "--u 12", { u: 12 }],
      ["what has no type", { any: {} }, ["--any", '{"a":1}'], { any: { a: 1 } }],
      ["what has no type and is no JSON", { any: {} }, "--any text", { any: "text" }],
      ["a file", { q: TEXT }, "--q @note.txt", { q: "a note\n" }],
      ["a file of JSON", { o: { type: "object" } }, "--o @data.json", { o: { depth: 3 } }],
      ["a text that begins with @", { q: TEXT }, "--q @@ann", { q: "@ann" }],
      ["JSON", { q: TEXT }, '{"q":"x"}', { q: "x" }],
      ["JSON by --json", { q: TEXT }, ["--json", '{"q":"x"}'], { q: "x" }],
      ["flags over JSON", { q: {}, r: {} }, ["--q", "2", '{"q":1,"r":1}'], { q: 2, r: 1 }],
      ["JSON of standard input", { query: TEXT }, "-", { query: "from stdin" }],
      ["an argument of its own that is called json", { json: TEXT }, "--json {}", { json: "{}" }],
      [
        "__proto__ as a name",
        { m: { type: "object", additionalProperties: true } },
        "--m.__proto__ 1",
        { m: JSON.parse('{"__proto__":1}') },
      ],
    ] as readonly [string, Record<string, unknown>, string | string[], unknown][]
  ) {
    it(`reads ${what}`, async () => {
      const given = typeof words === "string" ? words.split(" ") : words;
      assertEquals(await read(toolOf(properties), ...given), wanted);
    });
  }

  it("resolves references, even recursive ones", async () => {
    const tool = toolOf({ root: { $ref: "#/$defs/node" } }, TREE);
    assertEquals(await read(tool, "--root.child.child.name", "x"), {
      root: { child: { child: { name: "x" } } },
    });
  });

  for (
    const [words, said] of [
      [["--quary", "x"], "there is no flag --quary; did you mean --query?"],
      [["--zzz", "x"], "there is no flag --zzz; it has --query, --n"],
      [["x"], "arguments are flags such as --name value"],
      [["[1]"], "they must be a JSON object, not a list"],
      [["@nothing.json"], "there is no such file"],
      [["--query", "@nothing.txt"], 'is written "@@…"'],
      [["--query"], "argument missing"],
      [["--json"], "before it, it prints the result as JSON"],
    ] as const
  ) {
    it(`rejects ${words.join(" ")} with the valid form`, async () => {
      const tool = toolOf({ query: { type: "string" }, n: { type: "integer" } });
      const error = await assertRejects(() => read(tool, ...words));
      assertStringIncludes((error as Error).message, said);
    });
  }

  it("fails with the exit code of a wrong command line", async () => {
    const error = await assertRejects(() => read(toolOf({}), "--x", "1"), CommandError);
    assertEquals(error.exitCode, 2);
    assertStringIncludes(error.message, "it takes no arguments");
  });
});

describe("flagsOf()", () => {
  it("lists the fields of objects with types, values and required fields", () => {
    const flags = flagsOf(toolOf({
      query: { type: "string", description: "What" },
      opts: {
        type: "object",
        properties: { depth: { type: "integer" }, order: { enum: ["asc", "desc"] } },
        required: ["depth"],
      },
      on: { type: "boolean" },
      list: { type: "array", items: { type: "string" } },
    }, { required: ["query"] }));
    assertEquals(flags.map(({ name, type, isRequired }) => [name, type, isRequired]), [
      ["query", "string", true],
      ["opts.depth", "integer", false],
      ["opts.order", "asc|desc", false],
      ["on", "boolean", false],
      ["list", "string…", false],
    ]);
    assertEquals(flags[0]?.description, "What");
    assertEquals(flags[2]?.values, ["asc", "desc"]);
    assertEquals(flags[3]?.isSwitch, true);
  });

  it("ends for a schema that holds itself", () => {
    const flags = flagsOf(toolOf({ root: { $ref: "#/$defs/node" } }, TREE));
    assertEquals(flags.map(({ name }) => name), [
      "root.name",
      "root.child.name",
      "root.child.child.name",
      "root.child.child.child",
    ]);
  });
});
