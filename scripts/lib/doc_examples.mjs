// The examples in guides and comments: each becomes a module, and one test file imports them all.
// Deno's own `--doc` loads and checks all sources again for each example.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ROOT } from "./paths.mjs";

/** Inside the project, where its packages are found. `tsconfig.json` includes it. */
const FOLDER = join(ROOT, "coverage", "doc");

const FENCE = /^([ \t]*(?:\* )?)```(ts|js)\n([^]*?)^[ \t]*(?:\* ?)?```$/gm;

/** The files with examples. */
function sources() {
  const below = (folder, ending) =>
    readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => name.endsWith(ending))
      .map((name) => `${folder}/${name}`.replaceAll("\\", "/")).sort();
  const guides = below("docs", ".md").filter((name) => !name.slice("docs/".length).includes("/"));
  return ["mod.ts", ...below("src", ".ts"), "README.md", ...guides];
}

let written;

/**
 * Writes the examples, apart from those marked with `ignore`, once in this process.
 *
 * @returns The test file, from the project's folder.
 */
export function docExamples() {
  return written ??= write();
}

function write() {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const tests = [];
  for (const source of sources()) {
    const text = readFileSync(join(ROOT, source), "utf8");
    for (const { 1: prefix, 2: language, 3: body, index } of text.matchAll(FENCE)) {
      const line = text.slice(0, index).split("\n").length;
      const file = `${source.replaceAll(/\W+/g, "_")}_${line}.${language}`;
      const code = prefix.includes("*") ? body.replaceAll(/^[ \t]*\* ?/gm, "") : body;
      // Without an import or export it would not be a module.
      writeFileSync(join(FOLDER, file), `${code}export {};\n`);
      tests.push(`test("${source}:${line}", () => import("./${file}"));`);
    }
  }
  const file = join(FOLDER, "all.test.mjs");
  writeFileSync(file, `import { test } from "bun:test";\n${tests.join("\n")}\n`);
  return relative(ROOT, file);
}
