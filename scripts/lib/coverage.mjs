// Line coverage of src/, summed over the suites that ran on Bun.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { parseAst } from "rolldown/parseAst";
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

/** True if a source has more than types and re-exports. */
function hasCode(text) {
  return parseAst(text, { lang: "ts" }).body.some(({ type, declaration }) =>
    !/^(TS|Import|ExportAll)/.test(type) &&
    !(type === "ExportNamedDeclaration" && /^(TS|undefined)/.test(declaration?.type))
  );
}

/** The source files that have code, with their texts. Bun reports only files that a test loads. */
function filesWithCode() {
  return readdirSync(join(ROOT, "src"), { recursive: true })
    .map((name) => `src/${name.split(sep).join("/")}`)
    // The page runs in a browser, where its tests are.
    .filter((name) => name.endsWith(".ts") && !name.startsWith("src/explorer/page/"))
    .map((name) => [name, readFileSync(join(ROOT, name), "utf8")])
    .filter(([, text]) => hasCode(text));
}

/**
 * Reads Bun's reports, which are in a folder for each suite.
 *
 * @returns The percentage, and the files below {@linkcode WANTED}, least covered first.
 */
export function coverage(folder) {
  const covered = addUp(folder);
  let all = 0;
  let hit = 0;
  const low = [];
  for (const [name, text] of filesWithCode()) {
    const hits = [...covered.get(name)?.entries() ?? []];
    // All lines of a file that was never loaded count as not covered.
    const total = covered.has(name) ? hits.length : text.split("\n").length;
    const missed = hits.filter(([, count]) => count === 0).map(([line]) => line);
    const run = hits.length - missed.length;
    all += total;
    hit += run;
    const percent = total === 0 ? 100 : run / total * 100;
    if (percent < WANTED) {
      low.push({ name, percent, missed: covered.has(name) ? missed.join(",") : "never loaded" });
    }
  }
  low.sort((a, b) => a.percent - b.percent);
  return { percent: all === 0 ? 0 : hit / all * 100, low };
}
