import { assertEquals, assertGreater } from "@std/assert";
import { dirname, join } from "node:path/posix";
import { describe, it } from "bun:test";
import { filesBelow, specifiersOf, textOf, withoutComments } from "./source_tree.ts";

/**
 * The folders of `src` that each folder may import. The adapters may import all of these folders.
 * Neither the registry nor the dispatcher imports the formats. The command line (`cli`) and the
 * page (`explorer`) may import everything, and nothing imports them. /
 */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  tool: [],
  schema: ["tool"],
  select: ["tool"],
  registry: ["tool", "schema", "select"],
  execute: ["tool", "schema", "select", "registry"],
  formats: ["tool", "schema", "select"],
  finding: ["tool", "schema", "select", "registry", "execute", "formats"],
};
const FOLDERS = Object.keys(ARROWS);
/** The folders of `src/core.ts`, and of `mod.ts`. */
const CORE = FOLDERS.filter((folder) => !["formats", "finding"].includes(folder));
const ENDS: readonly string[] = ["cli", "explorer"];

/** The folder of a file: `tool` for `src/tool/tool.ts`. */
const folderOf = (path: string): string => path.split("/")[1] ?? "";

/** The only adapter that mod.ts imports. */
const DEFAULT_ENGINE = "src/adapters/typebox/";

/** Returns the problem with one import, or `undefined`. */
function problem(file: string, specifier: string): string | undefined {
  const from = file === "mod.ts" ? "mod.ts" : folderOf(file);
  if (!specifier.startsWith(".")) {
    return ["adapters", ...ENDS].includes(from) ? undefined : `names the package "${specifier}"`;
  }
  if (!/\.(tsx?|json)$/.test(specifier)) return `leaves out ".ts" in "${specifier}"`;
  const target = join(dirname(file), specifier);
  if (!target.startsWith("src/")) return `reaches out of src/ with "${specifier}"`;
  const to = folderOf(target);
  if (from === to) return undefined;
  if (from === "mod.ts" && target.startsWith(DEFAULT_ENGINE)) return undefined;
  const allowed = ENDS.includes(from)
    ? [...FOLDERS, "adapters", "core.ts", ...(from === "cli" ? ["explorer"] : [])]
    : from === "mod.ts"
    ? [...CORE, "core.ts"]
    : from === "core.ts"
    ? CORE
    : from === "adapters"
    ? FOLDERS
    : ARROWS[from] ?? [];
  return allowed.includes(to) ? undefined : `must not import from src/${to}: "${specifier}"`;
}

const FILES = ["mod.ts", ...filesBelow("src", (path) => /\.tsx?$/.test(path))];

describe("the imports between the folders of src", () => {
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
      ["src/select/a.ts", "../schema/mod.ts", true],
      ["src/formats/a.ts", "../select/mod.ts", false],
      ["src/formats/a.ts", "../registry/mod.ts", true],
      ["src/core.ts", "./formats/mod.ts", true],
      ["src/execute/a.ts", "../adapters/ajv/mod.ts", true],
      ["src/registry/search/a.ts", "../../tool/mod.ts", false],
      ["src/tool/a.ts", "node:fs", true],
      ["src/adapters/ajv/mod.ts", "ajv", false],
      ["src/adapters/ajv/mod.ts", "../../schema/mod.ts", false],
      ["src/adapters/ajv/mod.ts", "../typebox/formats.ts", false],
      ["src/core.ts", "./adapters/typebox/mod.ts", true],
      ["src/core.ts", "./tool/mod.ts", false],
      ["mod.ts", "./src/adapters/typebox/mod.ts", false],
      ["mod.ts", "./src/adapters/hono/mod.ts", true],
      ["src/cli/a.ts", "../adapters/hono/mod.ts", false],
      ["src/cli/a.ts", "node:fs", false],
      ["src/adapters/hono/mod.ts", "../../cli/mod.ts", true],
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
      !["adapters", ...ENDS].includes(folderOf(file)) &&
      /\bimport\((?!\s*")/.test(withoutComments(textOf(file)))
    );
    assertEquals(hidden, []);
  });
});

/** The imports of each file, types included, of files in the list. */
type Imports = ReadonlyMap<string, readonly string[]>;

function importsOf(files: readonly string[]): Imports {
  const known = new Set(files);
  return new Map(files.map((file) => {
    const targets = specifiersOf(textOf(file)).filter((specifier) => specifier.startsWith("."))
      .map((specifier) => join(dirname(file), specifier));
    return [file, targets.filter((target) => known.has(target))];
  }));
}

/** The files that `start` imports, directly or indirectly; `start` only if it is in a circle. */
function reachedFrom(start: string, imports: Imports): ReadonlySet<string> {
  const reached = new Set<string>();
  const waiting = [...imports.get(start) ?? []];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    waiting.push(...imports.get(file) ?? []);
  }
  return reached;
}

/** The groups of files that import each other, directly or through others, each group sorted. */
function circlesIn(imports: Imports): readonly (readonly string[])[] {
  const reached = new Map([...imports.keys()].map((file) => [file, reachedFrom(file, imports)]));
  const isMutual = (a: string, b: string): boolean =>
    reached.get(a)?.has(b) === true && reached.get(b)?.has(a) === true;
  const files = [...imports.keys()].sort();
  return files
    // The first file of a circle represents it.
    .filter((file) => isMutual(file, file) && file === files.find((one) => isMutual(one, file)))
    .map((first) => files.filter((file) => isMutual(file, first)));
}

describe("the imports of src", () => {
  it("are searched for circles of any length", () => {
    const imports = new Map([
      ["a", ["b"]],
      ["b", ["c", "e"]],
      ["c", ["d"]],
      ["d", ["b"]],
      ["e", []],
      ["f", ["f"]],
    ]);
    assertEquals(circlesIn(imports), [["b", "c", "d"], ["f"]]);
    assertEquals(circlesIn(new Map([["a", ["b"]], ["b", []]])), []);
  });

  it("have no circle, types included", () => assertEquals(circlesIn(importsOf(FILES)), []));
});

/** Matches the definition of a function or variable of libplue that is not `static`. */
const C_DEFINITION = /^(?!static |extern |typedef |#)[a-z][^;{}()]*?\b(plue_\w+)(?=\(|;| =|\[)/gm;

/** The files of libplue, such as `state` for state.c and state.h, with the files that they use. */
function arrowsInC(sources: ReadonlyMap<string, string>): Imports {
  const nameOf = (path: string): string => path.split("/").at(-1)?.replace(/\.[ch]$/, "") ?? "";
  const texts = [...sources].map(([path, text]) =>
    [path, text.replaceAll(/\/\*[^]*?\*\//g, "")] as const
  );
  const owners = new Map<string, string>();
  for (const [path, text] of texts) {
    if (!path.endsWith(".c")) continue;
    for (const [, name = ""] of text.matchAll(C_DEFINITION)) owners.set(name, nameOf(path));
  }
  // The table of functions by which lower files reach higher ones.
  owners.delete("plue_above");
  const arrows = new Map<string, string[]>();
  for (const [path, text] of texts) {
    const from = nameOf(path);
    const to = new Set(arrows.get(from));
    for (const [, header = ""] of text.matchAll(/^#include "(\w+)\.h"/gm)) to.add(header);
    for (const [name] of text.replaceAll(/"(?:\\.|[^"\\])*"/g, "").matchAll(/\bplue_\w+/g)) {
      if (path.endsWith(".c")) to.add(owners.get(name) ?? from);
    }
    to.delete(from);
    arrows.set(from, [...to]);
  }
  return arrows;
}

describe("the files of libplue", () => {
  const files = filesBelow("ffi/src", (path) => /\.[ch]$/.test(path));

  it("include and call no file above them", () => {
    const arrows = arrowsInC(new Map(files.map((path) => [path, textOf(path)])));
    assertGreater(arrows.size, 15);
    assertEquals(circlesIn(arrows), []);
    assertEquals(arrows.get("state"), ["platform", "outcome"]);
  });

  it("are found in a circle if one calls another that includes it", () => {
    const arrows = arrowsInC(
      new Map([
        ["ffi/src/a.c", '#include "b.h"\nint plue_a(void) {\n    return 1;\n}\n'],
        ["ffi/src/b.c", "int plue_b(void) {\n    return plue_a(); /* plue_c() */\n}\n"],
      ]),
    );
    assertEquals(circlesIn(arrows), [["a", "b"]]);
  });
});
