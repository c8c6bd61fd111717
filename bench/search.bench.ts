/**
 * Is plue's search better, and at least as fast, as MiniSearch with the same fields?
 *
 * @module
 */

import { bench, do_not_optimize, group, run } from "mitata";
import { createToolIndex } from "../src/registry/search/mod.ts";
import type { Tool } from "../src/tool/mod.ts";
import { CATALOGUE_QUERIES, makeCatalogue } from "./search_catalogue.ts";
import { HELD_OUT, measureQuality, readGithubTools, type Search, TUNED } from "./search_quality.ts";
import { SEARCH_QUESTIONS } from "./search_questions.ts";
import { miniSearch, plueSearch, type Rival, RIVALS } from "./search_rivals.ts";

const rivals = Object.keys(RIVALS) as Rival[];

function printQuality(tools: readonly Tool[]): void {
  const searches: [string, Search][] = [
    ["plue", plueSearch(tools)],
    ...rivals.map((rival): [string, Search] => [rival, miniSearch(tools, rival)]),
  ];
  for (
    const [title, questions] of [
      ["all questions", SEARCH_QUESTIONS],
      ["half that was tuned on", TUNED],
      ["half that was held out", HELD_OUT],
    ] as const
  ) {
    console.log(`\n${title} (${questions.length}), ${tools.length} tools`);
    console.log(`${"".padEnd(52)} recall@5   MRR  hit@1  hit@5`);
    for (const [name, search] of searches) {
      const { recall5, mrr, hit1, hit5 } = measureQuality(search, questions);
      const cells = [recall5, mrr, hit1, hit5].map((value) => value.toFixed(3).padStart(6));
      console.log(`${name.padEnd(52)}   ${cells.join(" ")}`);
    }
  }
}

/** Bytes that `make` leaves on the heap; `undefined` if the runtime cannot tell. */
function heapOf(make: () => unknown): number | undefined {
  const collect = (globalThis as { gc?: () => void }).gc ??
    (typeof Bun === "undefined" ? undefined : () => Bun.gc(true));
  if (collect === undefined) return undefined;
  collect();
  const before = process.memoryUsage().heapUsed;
  const made = make();
  collect();
  const used = process.memoryUsage().heapUsed - before;
  do_not_optimize(made);
  return used;
}

const github = readGithubTools();
if (github === undefined) {
  console.log("Quality: skipped, ../shared/data/github-mcp-tools.json is not there");
} else {
  printQuality(github);
}

const catalogue = makeCatalogue(1_000);
const compared = rivals.filter((rival) => !rival.endsWith("words"));
for (
  const [name, make] of [
    ["plue", () => plueSearch(catalogue)],
    ...compared.map((rival) => [rival, () => miniSearch(catalogue, rival)] as const),
  ] as const
) {
  const bytes = heapOf(make);
  console.log(
    `\nmemory of an index over 1,000 tools, ${name}: ${
      bytes === undefined ? "not known here" : `${(bytes / 1e6).toFixed(2)} MB`
    }`,
  );
}
console.log();

group(`search 1,000 tools, ${CATALOGUE_QUERIES.length} queries`, () => {
  const measure = (name: string, search: Search) =>
    bench(name, () => {
      for (const query of CATALOGUE_QUERIES) do_not_optimize(search(query));
    });
  measure("plue, best 20", plueSearch(catalogue)).baseline(true);
  measure("plue, all", plueSearch(catalogue, 1_000));
  for (const rival of compared) measure(rival, miniSearch(catalogue, rival));
});

group("build an index of 1,000 tools", () => {
  bench("plue", () => do_not_optimize(plueSearch(catalogue))).baseline(true);
  for (const rival of compared) bench(rival, () => do_not_optimize(miniSearch(catalogue, rival)));
});

group("follow a change: one tool out and in again", () => {
  for (const size of [100, 1_000, 10_000]) {
    const tools = makeCatalogue(size);
    const index = createToolIndex();
    for (const tool of tools) index.add(tool);
    let turn = 0;
    bench(`plue, among ${size} tools`, () => {
      const tool = tools[turn++ % size] as Tool;
      index.remove(tool.id);
      index.add(tool);
    });
  }
});

await run();
