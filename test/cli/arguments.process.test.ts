import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { flagsOf, readArguments } from "../../src/cli/arguments.ts";
import { CommandError } from "../../src/cli/terminal.ts";
import { type JsonSchemaObject, makeTool, type Tool } from "../../src/tool/mod.ts";
import data from "./arguments.json" with { type: "json" };

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

const TREE: JsonSchemaObject = data.tree;

type Row = readonly [
  what: string,
  properties: Readonly<Record<string, unknown>>,
  words: string | readonly string[],
  wanted: Record<string, unknown>,
];
const rows: {
  readonly read: readonly Row[];
  readonly rejected: readonly (readonly [words: readonly string[], message: string])[];
} = data as never;

describe("readArguments()", () => {
  for (const [what, properties, words, wanted] of rows.read) {
    it(`reads ${what}`, async () => {
      const line = typeof words === "string" ? words.split(" ") : words;
      assertEquals(await read(toolOf(properties), ...line), wanted);
    });
  }

  it("resolves references, even recursive ones", async () => {
    const tool = toolOf({ root: { $ref: "#/$defs/node" } }, TREE);
    assertEquals(await read(tool, "--root.child.child.name", "x"), {
      root: { child: { child: { name: "x" } } },
    });
  });

  for (const [words, message] of rows.rejected) {
    it(`rejects ${words.join(" ")} with the valid form`, async () => {
      const tool = toolOf({ query: { type: "string" }, n: { type: "integer" } });
      const error = await assertRejects(() => read(tool, ...words));
      assertStringIncludes((error as Error).message, message);
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
    assertEquals(flags.map(({ name, argument, isRequired }) => [name, argument.type, isRequired]), [
      ["query", "string", true],
      ["opts.depth", "integer", false],
      ["opts.order", "asc|desc", false],
      ["on", "boolean", false],
      ["list", "string…", false],
    ]);
    assertEquals(flags[0]?.argument.description, "What");
    assertEquals(flags[2]?.argument.values, ["asc", "desc"]);
    assertEquals(flags[3]?.argument.isSwitch, true);
  });

  it("ends for a schema that contains itself", () => {
    const flags = flagsOf(toolOf({ root: { $ref: "#/$defs/node" } }, TREE));
    assertEquals(flags.map(({ name }) => name), [
      "root.name",
      "root.child.name",
      "root.child.child.name",
      "root.child.child.child",
    ]);
  });
});
