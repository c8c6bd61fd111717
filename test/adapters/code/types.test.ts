import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import fc from "fast-check";
import {
  buildToolset,
  defineTool,
  type JsonSchemaObject,
  type Tool,
  type ToolDefinition,
  ToolRegistry,
} from "../../../mod.ts";
import { toolsAsTypeScript, type ToolTypesOptions } from "../../../src/adapters/code/mod.ts";
import { countTokens, createToolBridge } from "../../../src/finding/mod.ts";
import { aCharacter } from "../../support/arbitrary_schema.ts";
import { cases } from "../../support/laws.ts";
import data from "./types.json" with { type: "json" };

function toolWith(fields: Partial<ToolDefinition>): Tool {
  return defineTool({ name: "t", description: "Does it.", ...fields } as ToolDefinition) as Tool;
}

function write(tools: readonly Tool[], options?: ToolTypesOptions): string {
  return toolsAsTypeScript(buildToolset(tools), options);
}

/** Returns the declarations of tools, without the text before `tools`. */
function declarationsOf(...tools: readonly Tool[]): string {
  const text = write(tools);
  return text.slice(text.indexOf("declare const tools: ") + 21);
}

/** Returns a text without its comments and strings. */
function codeIn(text: string): string {
  return text.replace(/\/\*\*[\s\S]*?\*\//g, "/**/").replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\/\*\*\/\s*/g, "");
}

const many = Array.from({ length: 200 }, (_, index) =>
  toolWith({
    name: `tool_${index}`,
    namespace: index % 2 === 0 ? "even" : "odd",
    description: `Does the thing ${index}. `.repeat(1 + index % 7),
  }));

const rows: readonly (readonly [type: string, schema: JsonSchemaObject])[] = data.types as never;

describe("toolsAsTypeScript()", () => {
  for (const [type, schema] of rows) {
    it(`writes a result as ${JSON.stringify(type)}`, () => {
      const text = write([toolWith({ returns: schema })]);
      const [, result] = / {2}t\(\): Promise<(.*)>;\n\};\n$/s.exec(text) ?? [];
      const [, named = ""] = /namespace Types \{\n {2}(.*?)\n\}/s.exec(text) ?? [];
      assertEquals(named === "" ? result : `${result} with ${named}`, type);
    });
  }

  it("writes a member for each namespace, and a function with members for a tool of its name", () => {
    const ofName = (name: string, namespace?: string): Tool =>
      toolWith({ name, description: "-", ...(namespace !== undefined && { namespace }) });
    assertEquals(
      declarationsOf(
        ...[ofName("file-read"), ofName("git"), ofName("new", "git"), ofName("delete", "git")],
        ...[ofName("__proto__"), ofName("x", "a.b")],
      ),
      data.members.join("\n"),
    );
  });

  it("requires the arguments of a tool only if the tool requires one of them", () => {
    const properties = { a: { type: "string" } };
    const withParameters = (name: string, parameters: JsonSchemaObject): Tool =>
      toolWith({ name, description: "-", parameters });
    assertEquals(
      codeIn(declarationsOf(
        withParameters("all", { type: "object", properties, required: ["a"] }),
        withParameters("any", { type: "object" }),
        withParameters("none", { type: "object", properties: {} }),
        withParameters("some", { type: "object", properties }),
      )),
      data.parameters.join("\n"),
    );
  });

  it("names equal types of several tools once, and different types differently", () => {
    const returning = (name: string, type: string): Tool => {
      const item = {
        type: "object",
        properties: { value: { type }, next: { $ref: "#/$defs/item" } },
      };
      return toolWith({ name, returns: { $ref: "#/$defs/item", $defs: { item } } });
    };
    const text = write([
      ...[returning("a", "string"), returning("b", "string"), returning("c", "number")],
    ]);
    assertEquals(text.match(/type \w+ = .*/g), [
      "type Item = { value?: string; next?: Types.Item };",
      "type Item_5569b3b6 = { value?: number; next?: Types.Item_5569b3b6 };",
    ]);
    assertEquals(text.match(/Promise<.*>/g), [
      ...["Promise<Types.Item>", "Promise<Types.Item>", "Promise<Types.Item_5569b3b6>"],
    ]);
  });

  it("writes a chain of 2,400 definitions", () => {
    const definition = (_: unknown, index: number) => [
      `d${index}`,
      { type: "object", properties: { next: { $ref: `#/$defs/d${(index + 1) % 2_400}` } } },
    ];
    const $defs = Object.fromEntries(Array.from({ length: 2_400 }, definition));
    const text = write([toolWith({ returns: { $ref: "#/$defs/d0", $defs } })]);
    assertEquals(text.match(/type D/g)?.length, 2_400);
  });

  it("writes the same text in any order of registration", () => {
    const written = [many, many.toReversed()].map((tools) =>
      toolsAsTypeScript(new ToolRegistry({ tools }).select(), { maxTokens: 2_000 })
    );
    assertEquals(written[0], written[1]);
  });

  it("writes the target tools of a bridge, and only available tools", () => {
    const hidden = toolWith({ name: "hidden", isAvailable: () => false });
    const toolset = buildToolset([toolWith({}), hidden]);
    const text = toolsAsTypeScript(createToolBridge(toolset));
    assertEquals(text, write([toolWith({})]));
  });

  it("stays within maxTokens, and names or counts the omitted tools", () => {
    for (const maxTokens of [100, 150, 500, 1_000, 3_000, 5_000]) {
      const text = write(many, { maxTokens });
      assert(countTokens(text) <= maxTokens, `${countTokens(text)} of ${maxTokens}`);
      const declared = text.match(/\btool_\d+\(/g) ?? [];
      const [, names = "", others = "0"] =
        /^\/\/ .* here: (.*?)(?:(?: and )?(\d+) (?:other )?tools)?\.\n$/m.exec(text) ?? [];
      const named = names.split(", ").filter((name) => name !== "");
      assertEquals(declared.length + named.length + Number(others), many.length);
      assert(maxTokens < 500 || declared.length > maxTokens / 60);
    }
    assertEquals(write(many, { maxTokens: 50_000 }), write(many));
  });

  it("throws if the options or the toolset are not valid", () => {
    const message = (run: () => unknown): string => assertThrows(run, Error).message;
    const any = toolsAsTypeScript as (source: unknown, options?: unknown) => string;
    const none = buildToolset([]);
    assertEquals(
      [
        message(() => any(new ToolRegistry())),
        message(() => any(none, { maxTokens: 0 })),
        message(() => any(none, { tokens: 100 })),
      ],
      data.messages,
    );
  });

  it("keeps each description, default and pattern inside its comment", () => {
    const hostile = fc.oneof(
      fc.string({ unit: fc.constantFrom("*", "/", "\n", "@ts-ignore", "`", "\u2028", "\\", "x") }),
      fc.string({ unit: aCharacter }),
    );
    fc.assert(
      fc.property(hostile, hostile, (first, second) => {
        const describedBy = (description: string, value: string): string => {
          const a = { type: "string", description: value, default: value, format: value };
          const parameters = { type: "object", properties: { a } };
          return declarationsOf(toolWith({ description: `-${description}`, parameters }));
        };
        const text = describedBy(first, second);
        assertEquals(codeIn(text).replace(/\s/g, ""), "{t(args?:{a?:string;}):Promise<unknown>;};");
        assertEquals(/@ts-|[\u2028\u2029\u202e]/.test(text), false);
      }),
      cases(100),
    );
  });

  it("writes names and literals of any characters as strings", () => {
    const word = fc.string({ unit: aCharacter, minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(word, word, (name, value) => {
        const properties = { [`-${name}`]: { const: value } };
        const text = declarationsOf(toolWith({ parameters: { type: "object", properties } }));
        assertStringIncludes(codeIn(text), 't(args?: { ""?: "" }): Promise<unknown>;');
        const [, key, literal] = /\{ ("(?:[^"\\]|\\.)*")\?: ("(?:[^"\\]|\\.)*") \}/.exec(text) ??
          [];
        // JSON has no escapes of code points.
        const read = (source = ""): unknown =>
          JSON.parse(
            source.replace(/\\u\{(\w+)\}/g, (_, code) =>
              JSON.stringify(String.fromCodePoint(parseInt(code, 16))).slice(1, -1)),
          );
        assertEquals([read(key), read(literal)], [`-${name}`, value]);
      }),
      cases(100),
    );
  });
});
