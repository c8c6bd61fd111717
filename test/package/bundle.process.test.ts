import { assertEquals, assertGreater, assertMatch } from "@std/assert";
import { afterAll, beforeAll, describe } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { maybe } from "../support/skip.ts";
import { canRun, ROOT, run } from "./run.ts";

const SPECIFIERS = Object.keys(manifest.exports).map((entry) => entry.replace(".", manifest.name));

/** The kilobytes (1,000 bytes) after gzip of an app that defines a tool with the core. */
const DEFINE_TOOL_KB = 5.1;

const app = mkdtempSync(join(tmpdir(), "plue-bundle-"));
const home = join(app, "node_modules", manifest.name);
const dist = join(home, "dist");

/** Bundles the library into an app with the packages that its entries need. */
function bundle(): void {
  mkdirSync(home, { recursive: true });
  cpSync(join(ROOT, "package.json"), join(home, "package.json"));
  const library = JSON.stringify(join(ROOT, "scripts/lib/library.mjs"));
  const code =
    `const { bundleLibrary } = await import(${library}); await bundleLibrary(process.argv[1]);`;
  run("node", ["--input-type=module", "-e", code, dist], ROOT);
  for (const name of [...Object.keys(manifest.peerDependencies), "typebox"]) {
    const place = join(app, "node_modules", name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), place);
  }
}

/** Runs a module in the app. */
function runCode(code: string, ...flags: readonly string[]): string {
  writeFileSync(join(app, "code.mjs"), code);
  return run("node", [...flags, "code.mjs"], app).trim();
}

/**
 * Lists the exported functions with their names, and which of them are the same. Used here and, as
 * text, in the app.
 */
function listFunctions(
  entries: { readonly [specifier: string]: object },
): readonly string[] {
  const known = new Map<unknown, string>();
  return Object.entries(entries).flatMap(([specifier, entry]) =>
    Object.entries(entry).filter(([, value]) => typeof value === "function")
      .map(([name, value]) => {
        const place = `${specifier} ${name}`;
        if (!known.has(value)) known.set(value, place);
        return `${place}: ${value.name}, ${known.get(value)}`;
      })
  );
}

/** The files that an import of a file loads, with the file itself. */
function loadedBy(file: string, loaded: Set<string> = new Set()): Set<string> {
  loaded.add(file);
  const imports = new Bun.Transpiler({ loader: "js" }).scanImports(
    readFileSync(file),
  );
  for (const { path, kind } of imports) {
    const next = join(dirname(file), path);
    if (
      path.startsWith(".") && kind === "import-statement" && !loaded.has(next)
    ) {
      loadedBy(next, loaded);
    }
  }
  return loaded;
}

describe("the bundled library", () => {
  const test = maybe(canRun("node"), "Node is not here");

  beforeAll(() => {
    if (canRun("node")) bundle();
  });
  afterAll(() => rmSync(app, { recursive: true, force: true }));

  test("has one identity for each class and function, under its own name", async () => {
    const entries: { [specifier: string]: object } = {};
    for (const specifier of SPECIFIERS) {
      entries[specifier] = await import(specifier) as object;
    }
    const printed = runCode(`
      const entries = {};
      for (const specifier of ${JSON.stringify(SPECIFIERS)}) {
        entries[specifier] = await import(specifier);
      }
      ${listFunctions}
      console.log(JSON.stringify(listFunctions(entries)));
    `);
    const expected = listFunctions(entries);
    assertGreater(expected.length, 100);
    assertEquals(JSON.parse(printed).toSorted(), expected.toSorted());
  });

  test("loads few files for an entry", () => {
    const counts = SPECIFIERS.map((specifier) => {
      const name = specifier === manifest.name ? "mod" : specifier.slice(manifest.name.length + 1);
      return [name, loadedBy(join(dist, `${name}.js`)).size] as const;
    });
    assertEquals(counts.filter(([, count]) => count > 8), []);
    const { core = 0, mod = 0 } = Object.fromEntries(counts);
    assertEquals(core, 2);
    assertEquals(mod <= 5, true);
  });

  for (
    const [specifier, names] of [["@plue/tools/core", "core"], [
      "@plue/tools",
      "mod",
    ]]
  ) {
    test(`leaves everything else out where only defineTool of ${names} is used`, async () => {
      const file = join(app, `define_${names}.mjs`);
      writeFileSync(
        file,
        `import { defineTool } from "${specifier}";
         export const tool = defineTool({ name: "noop", description: "Does nothing." });`,
      );
      const { outputs } = await Bun.build({
        entrypoints: [file],
        minify: true,
      });
      const code = await outputs[0]?.text() ?? "";
      assertGreater(code.length, 1000);
      const kilobytes = Bun.gzipSync(code, { level: 9 }).byteLength / 1000;
      assertEquals(kilobytes <= DEFINE_TOOL_KB, true, `${kilobytes} kB`);
    });
  }

  test("contains its sources in its source maps", () => {
    const maps = readdirSync(dist, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".js.map"));
    assertGreater(maps.length, 10);
    for (const file of maps) {
      const { sources, sourcesContent } = JSON.parse(
        readFileSync(join(dist, file), "utf8"),
      ) as {
        readonly sources: readonly string[];
        readonly sourcesContent: readonly (string | null)[];
      };
      assertEquals(sourcesContent.length, sources.length);
      for (const [at, source] of sources.entries()) {
        // Paths from the package's folder `dist`, not from where the bundle was written.
        const path = join(ROOT, "dist", dirname(file), source);
        assertEquals(sourcesContent[at], readFileSync(path, "utf8"));
      }
    }
  });

  test("has stack traces with the lines of the sources", () => {
    const printed = runCode(
      `import { defineTool } from "@plue/tools/core";
       try { defineTool({}) } catch ({ stack }) { console.log(stack) }`,
      "--enable-source-maps",
    );
    const [, file = "", line] = /at makeTool \(.*?\/(src\/[^:]+):(\d+):/.exec(printed) ?? [];
    assertMatch(
      readFileSync(join(ROOT, file), "utf8").split("\n")[Number(line) - 1] ??
        "",
      /\w+\(/,
    );
  });

  test("checks schemas of an app's own TypeBox where no code may be generated", () => {
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
