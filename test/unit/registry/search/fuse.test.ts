import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import type * as plue from "../../../../src/registry/search/mod.ts";
import { createToolIndex, fuseIndexes } from "../../../../src/registry/search/mod.ts";
import { makeTool } from "../../../../src/tool/mod.ts";
import { describeToolIndex } from "../../../contract/tool_index_contract.ts";

describeToolIndex(
  "fuseIndexes() of two that answer at once",
  () => fuseIndexes(createToolIndex(), createToolIndex({ synonyms: ["mail post"] })),
);

/** An index that returns its results asynchronously. */
function later(): plue.ToolIndex<Promise<readonly plue.ToolHit[]>> {
  const index = createToolIndex();
  return { ...index, search: (...args) => Promise.resolve(index.search(...args)) };
}

describeToolIndex(
  "fuseIndexes() with one that answers later",
  () => fuseIndexes<plue.ToolAnswer>(createToolIndex(), later()),
);

/** An index that always finds the given ids. */
function always(...ids: string[]): plue.ToolIndex {
  return {
    add() {},
    remove() {},
    search: (_, limit) => ids.slice(0, limit).map((id, place) => ({ id, score: 100 - place })),
  };
}

const echo = makeTool({ name: "echo", description: "Repeats a text." });

describe("fuseIndexes()", () => {
  const fused = fuseIndexes(always("a", "b", "c"), always("c", "a"));

  it("orders by the sum of reciprocal ranks", () => {
    const percent = (score: number): number => Math.round(1_000 * score) / 10;
    assertEquals(fused.search("x", 10).map(({ id, score }) => [id, percent(score)]), [
      ["a", percent(61 / 2 * (1 / 61 + 1 / 62))],
      ["c", percent(61 / 2 * (1 / 63 + 1 / 61))],
      ["b", percent(61 / 2 * (1 / 62))],
    ]);
  });

  it("scores 1 for a tool that is first everywhere", () => {
    assertEquals(fuseIndexes(always("a"), always("a", "b")).search("x", 1)[0]?.score, 1);
  });

  it("finds nothing where the best fused score is below minScore", () => {
    assertEquals(fused.search("x", 10, { minScore: 0.995 }), []);
    assertEquals(fused.search("x", 10, { minScore: 0.9 }).length, 3);
  });

  it("returns the reasons of the index that has them", () => {
    const words = createToolIndex();
    const both = fuseIndexes(always("echo"), words);
    both.add(echo);
    assertEquals(both.search("echo", 1)[0]?.matches, [{ word: "echo", fields: ["name"] }]);
  });
});
