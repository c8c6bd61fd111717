// Line coverage of src/, added up over the suites that ran on Bun.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { capture } from "./process.mjs";
import { ROOT } from "./paths.mjs";

/** The share of the lines of src/ that the tests must run, in percent. */
export const WANTED = 95;

function addUp(folder) {
  const files = new Map();
  for (const suite of readdirSync(folder)) {
    const lcov = join(folder, suite, "lcov.info");
    if (!existsSync(lcov)) continue;
    let lines;
    for (const row of readFileSync(lcov, "utf8").split("\n")) {
      if (row.startsWith("SF:")) {
        const name = relative(ROOT, resolve(ROOT, row.slice(3))).split(sep).join("/");
        if (!files.has(name)) files.set(name, new Map());
        lines = files.get(name);
      } else if (row.startsWith("DA:")) {
        const [line, hits] = row.slice(3).split(",").map(Number);
        lines.set(line, (lines.get(line) ?? 0) + hits);
      }
    }
  }
  return files;
}

/**
 * The source files that have code, and the number of its lines. Bun's coverage report leaves out
 * files that were never loaded.
 */
async function filesWithCode() {
  const names = readdirSync(join(ROOT, "src"), { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `src/${name.split(sep).join("/")}`)
    // The page runs in a browser, where its tests are.
    .filter((name) => !name.startsWith("src/explorer/page/"));
  const script = `const of = new Bun.Transpiler({ loader: "ts" });
    for (const name of process.argv.slice(1)) {
      const code = of.transformSync(await Bun.file(name).text());
      // Types leave no code, and tables of contents only exports.
      const own = code.replace(/(export|import)\\s*(\\{[^}]*\\})?\\s*(from\\s*)?("[^"]*")?;/g, "").trim();
      if (own !== "") console.log(name, own.split("\\n").length);
    }`;
  const { output } = await capture("bun", ["-e", script, ...names]);
  return [...output.matchAll(/^(src\/.*) (\d+)$/gm)].map((
    [, name, lines],
  ) => [name, Number(lines)]);
}

/**
 * Reads Bun's reports, which are in a folder for each suite.
 *
 * @returns The percentage, and the files below {@linkcode WANTED}, least covered first.
 */
export async function coverage(folder) {
  const covered = addUp(folder);
  let all = 0;
  let hit = 0;
  const low = [];
  for (const [name, linesOfCode] of await filesWithCode()) {
    const lines = covered.get(name);
    // The file was never loaded: count its lines of code as not covered.
    const total = lines?.size ?? linesOfCode;
    const run = lines === undefined ? [] : [...lines].filter(([, hits]) => hits > 0);
    all += total;
    hit += run.length;
    const percent = total === 0 ? 100 : run.length / total * 100;
    if (percent < WANTED) {
      const missed = lines === undefined
        ? "never loaded"
        : ranges([...lines].filter(([, hits]) => hits === 0).map(([line]) => line));
      low.push({ name, percent, missed });
    }
  }
  low.sort((a, b) => a.percent - b.percent);
  return { percent: all === 0 ? 0 : hit / all * 100, low };
}

function ranges(lines) {
  const result = [];
  for (const line of lines.sort((a, b) => a - b)) {
    const last = result.at(-1);
    if (last !== undefined && line === last[1] + 1) last[1] = line;
    else result.push([line, line]);
  }
  return result.map(([from, to]) => from === to ? `${from}` : `${from}-${to}`).join(",");
}
