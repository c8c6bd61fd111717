/**
 * Is plue's search as fast as MiniSearch with the same fields? How much memory does plue's index
 * take? `search_quality.ts` compares the results.
 */

import { bench, do_not_optimize, group, run } from "mitata";
import { createToolIndex } from "../src/registry/search/mod.ts";
import type { Tool } from "../src/tool/mod.ts";
import { CATALOGUE_QUERIES, makeCatalogue } from "./search_catalogue.ts";
import type { Search } from "./search_quality.ts";
import { miniSearch, plueSearch, type Rival } from "./search_rivals.ts";

/** The bytes that `make` leaves on the heap; `undefined` if the runtime does not show them. */
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

const catalogue = makeCatalogue(1_000);
const compared: readonly Rival[] = [
  "MiniSearch, defaults",
  "MiniSearch, recommended",
  "MiniSearch, recommended, plue's splitting",
];
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
  measure("plue, all", plueSearch(catalogue, {}, 1_000));
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
