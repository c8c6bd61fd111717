// The exports, the imports and the unused code of the bundles of the package.

import { assertEquals, assertGreater, assertLessOrEqual, assertMatch } from "@std/assert";
import { describe } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { app, home, run, SPECIFIERS, testWith } from "./app.ts";

/** The kilobytes (1,000 bytes) after gzip of an app that defines a tool with the core. */
const DEFINE_TOOL_KB = 5.1;

const dist = join(home, "dist");

/** Runs a module in the app on Node. */
function runCode(code: string, ...flags: readonly string[]): string {
  writeFileSync(join(app, "code.mjs"), code);
  return run("node", [...flags, "code.mjs"]).trim();
}

/** The files that an import of a file loads, with the file itself. */
function loadedBy(file: string, loaded: Set<string> = new Set()): Set<string> {
  loaded.add(file);
  const imports = new Bun.Transpiler({ loader: "js" }).scanImports(readFileSync(file));
  for (const { path, kind } of imports) {
    const next = join(dirname(file), path);
    const isOwn = path.startsWith(".") && kind === "import-statement";
    if (isOwn && !loaded.has(next)) loadedBy(next, loaded);
  }
  return loaded;
}

describe("the bundled library", () => {
  const test = testWith();

  test("loads few files for an entry", () => {
    const counts = SPECIFIERS.map((specifier) => {
      const name = specifier === manifest.name ? "mod" : specifier.slice(manifest.name.length + 1);
      return [name, loadedBy(join(dist, `${name}.js`)).size] as const;
    });
    assertEquals(counts.filter(([, count]) => count > 8), []);
    const { core = 0, mod = 0 } = Object.fromEntries(counts);
    assertEquals(core, 2);
    assertLessOrEqual(mod, 5);
  });

  for (const specifier of ["@plue/tools/core", "@plue/tools"]) {
    test(`contains nothing else if only defineTool of ${specifier} is used`, async () => {
      const file = join(app, "define.mjs");
      writeFileSync(
        file,
        `import { defineTool } from "${specifier}";
         export const tool = defineTool({ name: "noop", description: "Does nothing." });`,
      );
      const { outputs } = await Bun.build({ entrypoints: [file], minify: true });
      const code = await outputs[0]?.text() ?? "";
      assertGreater(code.length, 1000);
      assertLessOrEqual(Bun.gzipSync(code, { level: 9 }).byteLength / 1000, DEFINE_TOOL_KB);
    });
  }

  test("has the names of functions in stack traces", () => {
    const printed = runCode(
      `import { defineTool } from "@plue/tools/core";
       try { defineTool({}) } catch ({ stack }) { console.log(stack) }`,
    );
    assertMatch(printed, /at makeTool \(.*?\/dist\/chunks\/core\.js:/);
  });

  test("checks schemas of an app's own TypeBox without code generation", () => {
    const printed = runCode(
      `import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
       import Type from "typebox";
       const greet = defineTool({
         name: "greet",
         description: "Greets.",
         parameters: Type.Object({ name: Type.String({ minLength: 2 }) }),
         execute: ({ name }) => "Hello, " + name,
       });
       const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [greet] }));
       for (const name of ["Ada", "A"]) {
         const result = await dispatcher.dispatch({ name: "greet", arguments: { name } });
         console.log(result.ok ? result.content : result.error.code);
       }`,
      "--disallow-code-generation-from-strings",
    );
    assertEquals(printed, "Hello, Ada\ninvalid_arguments");
  });
});
