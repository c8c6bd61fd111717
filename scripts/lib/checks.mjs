// The checks that are not test files. Each is one program, judged by its exit code.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ROOT } from "./paths.mjs";
import { capture } from "./process.mjs";

const TSC = join("node_modules", "typescript", "bin", "tsc");
const DENO_FOLDERS = ["mod.ts", "src", "test", "examples", "bench", "scripts"];

/** The folder for examples, where they find the project's packages. `tsconfig.json` includes it. */
const EXAMPLES = join(ROOT, "coverage", "doc");

const FENCE = /^([ \t]*(?:\* )?)```(ts|js)\n([^]*?)^[ \t]*(?:\* ?)?```$/gm;

function filesWithExamples() {
  const below = (folder, ending) =>
    readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => name.endsWith(ending))
      .map((name) => `${folder}/${name}`.replaceAll("\\", "/")).sort();
  const guides = below("docs", ".md").filter((name) => !name.startsWith("docs/decisions/"));
  return ["mod.ts", ...below("src", ".ts"), "README.md", ...guides];
}

let written;

/**
 * Writes the examples in guides and comments, apart from those marked with `ignore`, once in this
 * process: each becomes a module, and one test file imports them all. Deno's own `--doc` loads and
 * checks all sources again for each example.
 *
 * @returns The test file, from the project's folder.
 */
export function docExamples() {
  if (written !== undefined) return written;
  rmSync(EXAMPLES, { recursive: true, force: true });
  mkdirSync(EXAMPLES, { recursive: true });
  const tests = [];
  for (const source of filesWithExamples()) {
    const text = readFileSync(join(ROOT, source), "utf8");
    for (const { 1: prefix, 2: language, 3: body, index } of text.matchAll(FENCE)) {
      const line = text.slice(0, index).split("\n").length;
      const file = `${source.replaceAll(/\W+/g, "_")}_${line}.${language}`;
      const code = prefix.includes("*") ? body.replaceAll(/^[ \t]*\* ?/gm, "") : body;
      // Without an import or export it would not be a module.
      writeFileSync(join(EXAMPLES, file), `${code}export {};\n`);
      tests.push(`test("${source}:${line}", () => import("./${file}"));`);
    }
  }
  const file = join(EXAMPLES, "all.test.mjs");
  writeFileSync(file, `import { test } from "bun:test";\n${tests.join("\n")}\n`);
  return written = relative(ROOT, file);
}

/**
 * The checks. `show`: true if the check's output is printed at the end. `keep`: the lines of a
 * failure that are printed. `packages`: the folders with packages that the check needs.
 */
export const CHECKS = [
  {
    name: "types",
    packages: ["test/mcp", "test/oauth", "test/explorer", "test/oracles", "test/edge"],
    steps() {
      docExamples();
      return ["tsconfig.json", "tsconfig.core.json"]
        // Several checkers would each infer most of the types again.
        .map((config) => [process.execPath, TSC, "-p", config, "--checkers", "1"]);
    },
  },
  // Builds the site, which fails on dead links and on pages that load files from other hosts.
  {
    name: "site",
    packages: ["scripts/site"],
    steps: () => [[process.execPath, "scripts/build_docs.mjs", "--check"]],
  },
  {
    name: "format",
    steps: () => [["deno", "fmt", "--check", ...DENO_FOLDERS]],
    // Show the files, not their lines.
    keep: /^(from |error: Found)/,
  },
  { name: "lint", steps: () => [["deno", "lint", ...DENO_FOLDERS]] },
  {
    name: "publish",
    // This step rejects exports without explicit types. "types" checks the other types.
    steps: () => [
      "deno publish --dry-run --allow-dirty --no-check --node-modules-dir=manual".split(" "),
    ],
  },
  // True if the explorer's page equals its build.
  { name: "page", steps: () => [["bun", "scripts/build_explorer.ts", "--check"]] },
  { name: "size", show: true, steps: () => [["bun", "scripts/size.ts"]] },
];

/** Runs one check. */
export async function runCheck({ steps, keep = /^/ }) {
  const result = { passed: 0, failed: 0, skipped: 0, ms: 0, printed: "", output: "" };
  const failures = [];
  for (const [command, ...args] of steps()) {
    const { code, output, ms } = await capture(command, args);
    result.ms += ms;
    result.printed += output;
    result[code === 0 ? "passed" : "failed"]++;
    if (code === 0) continue;
    failures.push([command, ...args].join(" "));
    const lines = output.split("\n").filter((line) => keep.test(line)).join("\n");
    result.output += `$ ${failures.at(-1)}\n${lines}\n`;
  }
  return { ...result, skips: [], failures };
}
