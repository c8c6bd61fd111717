// The declarations of tools, compiled by TypeScript under `strict`. This test runs only on Bun: the
// compiler is another process, and types.test.ts checks the text on every runtime.

import { assertEquals, assertGreater } from "@std/assert";
import { afterAll, describe, it } from "bun:test";
import fc from "fast-check";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildToolset, type Tool, type ToolDefinition, ToolRegistry } from "../../../mod.ts";
import { toolsAsTypeScript } from "../../../src/adapters/code/mod.ts";
import { importTools } from "../../../src/formats/mod.ts";
import { aSchema } from "../../support/arbitrary_schema.ts";
import { cases } from "../../support/laws.ts";
import { projectFolder, startProgram } from "../../support/program.ts";
import { maybe } from "../../support/skip.ts";

const DATA = join(projectFolder, "../shared/data");
const withData = maybe(existsSync(DATA), "../shared/data is not there");
const folder = mkdtempSync(join(tmpdir(), "plue-types-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Compiles declarations and a program, and returns the compiler's messages. */
async function compile(declarations: string, program = "export {};"): Promise<string> {
  writeFileSync(join(folder, "tools.d.ts"), declarations);
  writeFileSync(join(folder, "program.ts"), program);
  await using compiler = startProgram("node", [
    join(projectFolder, "node_modules/typescript/bin/tsc"),
    ...["--strict", "--exactOptionalPropertyTypes", "--noEmit", "--pretty", "false"],
    ...["--ignoreConfig", "--checkers", "1"],
    ...["--lib", "esnext,dom", "--types", "", "--module", "esnext", "--target", "esnext"],
    ...[join(folder, "tools.d.ts"), join(folder, "program.ts")],
  ]);
  const { code } = await compiler.ended;
  return code === 0 ? "" : `exit code ${code}: ${compiler.output.stdout.slice(0, 2_000)}`;
}

function toolOf(index: number, fields: Partial<ToolDefinition>): Tool | undefined {
  try {
    const definition = { name: `t${index}`, namespace: "n", description: "-", ...fields };
    // A registry rejects schemas that are nothing but references to themselves.
    return new ToolRegistry({ tools: [definition as ToolDefinition] }).tools[0];
  } catch {
    return undefined;
  }
}

/** A program that compiles only if `tools.n` has exactly these members. */
function programWith(tools: readonly Tool[]): string {
  const names = tools.map(({ name }) => `${JSON.stringify(name)}: true`);
  return `const members: Record<keyof typeof tools.n, true> = { ${names.join(", ")} };
    // @ts-expect-error Nothing declares it.
    evil;
    export { members };`;
}

describe("the declarations of toolsAsTypeScript()", () => {
  it("compile for any schemas of arguments and results", async () => {
    const { numRuns, seed } = cases(400);
    const schemas = fc.sample(aSchema({ references: true }), { numRuns, seed });
    const tools = schemas.flatMap((schema, index) => {
      const parameters = { type: "object", properties: { value: schema } };
      return toolOf(index, { parameters, returns: Object(schema) }) ?? [];
    });
    assertGreater(tools.length, numRuns / 2);
    assertEquals(await compile(toolsAsTypeScript(buildToolset(tools)), programWith(tools)), "");
  });

  it("compile for hostile texts, which declare nothing", async () => {
    const texts = [
      ...["*/ declare const evil: 1; /*", "\n*/\ndeclare const evil: 1;", "@ts-expect-error"],
      ...["}; declare const evil: 1; ({", "\u2028declare const evil: 1;", "`${evil}`", '"\\'],
      ...["// @ts-ignore", "/// <reference path='x' />", "\r\nevil", "*\u200b/", "**//", "\0"],
      ...["new", "constructor", "__proto__", "#private", "[Symbol.iterator]", "then", "1e3"],
    ];
    const tools = texts.flatMap((text, index) => {
      const schema = {
        type: "object",
        description: text,
        properties: {
          [text]: { enum: [text, { [text]: text }], description: text, default: text },
        },
        additionalProperties: { $ref: "#/$defs/d" },
        $defs: {
          d: { title: text, description: text, type: "string", pattern: "a", format: text },
        },
      };
      return toolOf(index, {
        description: text,
        parameters: schema,
        returns: schema,
        deprecated: text,
      }) ??
        [];
    });
    const named = ["new", "delete", "a-b", "1", "constructor", "__proto__", "a.b"].map((name) =>
      toolOf(0, { name }) as Tool
    );
    const all = [
      ...tools,
      ...named,
      toolOf(0, { name: "n", namespace: undefined as never }) as Tool,
    ];
    assertEquals(tools.length, texts.length);
    assertEquals(
      await compile(toolsAsTypeScript(buildToolset(all)), programWith([...tools, ...named])),
      "",
    );
  });

  withData("compile for the tools of GitHub's MCP server and others", async () => {
    const read = (file: string): unknown => JSON.parse(readFileSync(join(DATA, file), "utf8"));
    const listed = importTools("mcp", read("github-mcp-tools.json"), { namespace: "n" }).tools;
    const { tools } = read("search/dev_livemcp.json") as { tools: readonly ToolDefinition[] };
    const others = tools.flatMap(({ parameters, description }, index) =>
      toolOf(index, { description, parameters: parameters as never }) ?? []
    );
    const all = [...listed, ...others] as readonly Tool[];
    assertEquals(await compile(toolsAsTypeScript(buildToolset(all)), programWith(all)), "");
  });
});
