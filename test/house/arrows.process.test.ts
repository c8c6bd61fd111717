import { assertEquals, assertGreater } from "@std/assert";
import { dirname, join } from "node:path/posix";
import { describe, it } from "bun:test";
import { filesBelow, specifiersOf, textOf, withoutComments } from "./source_tree.ts";

/** Which folders of `src` a folder may import from. The adapters may use all of them. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  tool: [],
  schema: ["tool"],
  select: ["tool"],
  formats: ["tool", "schema", "select"],
  registry: ["tool", "schema", "select", "formats"],
  execute: ["tool", "schema", "select", "formats", "registry"],
};
const CORE = Object.keys(ARROWS);

/** `tool` of `src/tool/tool.ts`. */
const folderOf = (path: string): string => path.split("/")[1] ?? "";

/** The one adapter that mod.ts wires in. */
const DEFAULT_ENGINE = "src/adapters/typebox/";

/** What is wrong with one import, or `undefined`. */
function problem(file: string, specifier: string): string | undefined {
  const from = file === "mod.ts" ? "mod.ts" : folderOf(file);
  if (!specifier.startsWith(".")) {
    return from === "adapters" ? undefined : `names the package "${specifier}"`;
  }
  if (!specifier.endsWith(".ts")) return `leaves out ".ts" in "${specifier}"`;
  const target = join(dirname(file), specifier);
  if (!target.startsWith("src/")) return `reaches out of src/ with "${specifier}"`;
  const to = folderOf(target);
  if (from === to) return undefined;
  if (from === "mod.ts" && target.startsWith(DEFAULT_ENGINE)) return undefined;
  const allowed = from === "mod.ts"
    ? [...CORE, "core.ts"]
    : from === "core.ts" || from === "adapters"
    ? CORE
    : ARROWS[from] ?? [];
  return allowed.includes(to) ? undefined : `must not import from src/${to}: "${specifier}"`;
}

const FILES = ["mod.ts", ...filesBelow("src", (path) => path.endsWith(".ts"))];

describe("the arrows between the folders of src", () => {
  it("are read from every kind of import", () => {
    assertEquals(
      specifiersOf([
        'import { a } from "./a.ts";',
        'import type { B } from "./b.ts";',
        "import {",
        "  c,",
        '} from "./c.ts";',
        'export { d } from "./d.ts";',
        'export * as e from "./e.ts";',
        'import "./f.ts";',
        'const g = await import("./g.ts");',
        "/** An example:",
        ' * import { no } from "./no.ts";',
        " */",
        '// import { no } from "./no.ts";',
      ].join("\n")).toSorted(),
      ["./a.ts", "./b.ts", "./c.ts", "./d.ts", "./e.ts", "./f.ts", "./g.ts"],
    );
  });

  for (
    const [file, specifier, wrong] of [
      ["src/tool/a.ts", "./b.ts", false],
      ["src/tool/a.ts", "../schema/mod.ts", true],
      ["src/schema/a.ts", "../tool/mod.ts", false],
      ["src/select/a.ts", "../schema/mod.ts", true],
      ["src/execute/a.ts", "../adapters/ajv/mod.ts", true],
      ["src/registry/search/a.ts", "../../tool/mod.ts", false],
      ["src/tool/a.ts", "typebox", true],
      ["src/tool/a.ts", "node:fs", true],
      ["src/adapters/ajv/mod.ts", "ajv", false],
      ["src/adapters/ajv/mod.ts", "../../schema/mod.ts", false],
      ["src/adapters/ajv/mod.ts", "../typebox/formats.ts", false],
      ["src/adapters/ajv/mod.ts", "../../../mod.ts", true],
      ["src/core.ts", "./adapters/typebox/mod.ts", true],
      ["src/core.ts", "./tool/mod.ts", false],
      ["mod.ts", "./src/adapters/typebox/mod.ts", false],
      ["mod.ts", "./src/adapters/hono/mod.ts", true],
      ["mod.ts", "typebox", true],
      ["src/tool/a.ts", "../../test/support/skip.ts", true],
      ["src/tool/a.ts", "./b", true],
    ] as const
  ) {
    it(`${wrong ? "forbid" : "allow"} ${file} to import "${specifier}"`, () => {
      assertEquals(problem(file, specifier) !== undefined, wrong);
    });
  }

  it("hold in every file", () => {
    assertGreater(FILES.length, 10);
    const wrong = FILES.flatMap((file) =>
      specifiersOf(textOf(file)).flatMap((specifier) => {
        const what = problem(file, specifier);
        return what === undefined ? [] : [`${file} ${what}`];
      })
    );
    assertEquals(wrong, []);
  });

  it("cannot be hidden in an import whose specifier is computed", () => {
    const hidden = FILES.filter((file) =>
      !file.startsWith("src/adapters/") && /\bimport\((?!\s*")/.test(withoutComments(textOf(file)))
    );
    assertEquals(hidden, []);
  });
});
