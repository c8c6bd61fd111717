/** The contract of every {@linkcode ToolIndex}. */

import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import type { ToolAnswer, ToolHit, ToolIndex } from "../../src/registry/search/mod.ts";
import { makeTool, type Tool } from "../../src/tool/mod.ts";

/** Four tools that any index can distinguish, and queries for them. */
const read = makeTool({ name: "file-read", description: "Reads the text of a file." });
const write = makeTool({ name: "file-write", description: "Writes text to a file." });
const log = makeTool({ name: "git-log", description: "Lists the commits of a branch." });
const mail = makeTool({ name: "mail-send", description: "Sends an e-mail to a person." });
const all = [read, write, log, mail];

/** Declares the contract's tests for the index that `create` makes. */
export function describeToolIndex(name: string, create: () => ToolIndex<ToolAnswer>): void {
  const filled = (tools: readonly Tool[]): ToolIndex<ToolAnswer> => {
    const index = create();
    for (const tool of tools) index.add(tool);
    return index;
  };
  const search = async (
    index: ToolIndex<ToolAnswer>,
    query: string,
    limit = 10,
  ): Promise<readonly ToolHit[]> => await index.search(query, limit);
  const ids = async (
    index: ToolIndex<ToolAnswer>,
    query: string,
    limit = 10,
  ): Promise<string[]> => (await search(index, query, limit)).map((hit) => hit.id);

  describe(`${name} as a ToolIndex`, () => {
    it("finds nothing while it is empty", async () => {
      assertEquals(await search(create(), "file", 10), []);
    });

    it("returns the best match first", async () => {
      const index = filled(all);
      assertEquals((await ids(index, "write text to a file"))[0], "file-write");
      assertEquals((await ids(index, "send an e-mail"))[0], "mail-send");
    });

    it("returns scores above 0 in descending order", async () => {
      const scores = (await search(filled(all), "file text commits", 10)).map((hit) => hit.score);
      assertEquals(scores.length > 1, true);
      assertEquals(scores.every((score) => score > 0), true);
      assertEquals(scores, scores.toSorted((a, b) => b - a));
    });

    it("orders equal scores by the code units of the ids", async () => {
      const same = ["b", "B", "a", "ä".normalize("NFKD").slice(0, 1) + "2", "_"].map((id) =>
        makeTool({ name: id, namespace: "n", description: "Feeds the cat." })
      );
      assertEquals(await ids(filled(same), "feeds cat"), ["n:B", "n:_", "n:a", "n:a2", "n:b"]);
    });

    it("returns the same results for any order of the tools", async () => {
      const query = "write the commits of a branch to a file";
      assertEquals(
        await search(filled(all), query, 10),
        await search(filled(all.toReversed()), query, 10),
      );
    });

    it("returns the same results for the same query", async () => {
      const index = filled(all);
      const first = await search(index, "text file", 10);
      await search(index, "send commits", 10);
      assertEquals(await search(index, "text file", 10), first);
    });

    for (
      const [limit, count] of [[0, 0], [-1, 0], [NaN, 0], [0.9, 0], [1, 1], [1.9, 1], [
        Infinity,
        2,
      ]] as const
    ) {
      it(`returns ${count} of 2 hits for a limit of ${limit}`, async () => {
        assertEquals((await search(filled([read, write]), "file", limit)).length, count);
      });
    }

    it("does not find a removed tool, until it is added again", async () => {
      const index = filled(all);
      index.remove("file-write");
      assertEquals((await ids(index, "write text file")).includes("file-write"), false);
      index.add(write);
      assertEquals(
        await search(index, "write text file", 10),
        await search(filled(all), "write text file", 10),
      );
    });

    it("replaces a tool with the same id", async () => {
      const index = filled(all);
      index.add(makeTool({ name: "git-log", description: "Cuts timber." }));
      assertEquals(await ids(index, "timber"), ["git-log"]);
      assertEquals((await ids(index, "branch")).includes("git-log"), false);
    });

    it("finds only tools of the caller", async () => {
      const index = filled(all);
      const hits = await index.search("write text to a file", 10, { among: [read, log] });
      assertEquals(hits.map((hit) => hit.id).filter((id) => id !== "git-log"), ["file-read"]);
      assertEquals(await index.search("write text to a file", 10, { among: [] }), []);
    });

    it("finds nothing for an empty query", async () => {
      for (const query of ["", "  ", "?!"]) assertEquals(await ids(filled(all), query), []);
    });

    it("ignores the removal of an unknown tool", async () => {
      const index = filled(all);
      index.remove("nobody");
      index.remove("constructor");
      assertEquals((await ids(index, "git log"))[0], "git-log");
    });

    it("equals a new index after many changes", async () => {
      const index = create();
      const kept = new Map<string, Tool>();
      // A fixed sequence of additions, replacements and removals of 40 ids.
      let state = 7;
      const next = (below: number): number => {
        state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
        return Math.floor(state / 65_536) % below;
      };
      const nouns = ["file", "branch", "mail", "invoice", "calendar"];
      for (let step = 0; step < 600; step++) {
        const name = `tool-${next(40)}`;
        if (next(3) === 0) {
          index.remove(name);
          kept.delete(name);
        } else {
          const noun = nouns[next(nouns.length)] ?? "";
          const tool = makeTool({ name, description: `Handles one ${noun} and item ${next(9)}.` });
          index.add(tool);
          kept.set(name, tool);
        }
      }
      const anew = filled([...kept.values()]);
      assertEquals(kept.size > 10 && kept.size < 40, true);
      for (const query of ["file", "handles invoice 3", "tool-7", "calendar mail"]) {
        assertEquals(await search(index, query, 100), await search(anew, query, 100));
      }
    });

    it("accepts tools with the names of inherited members of objects", async () => {
      const names = ["constructor", "__proto__", "toString", "hasOwnProperty"];
      const index = filled(names.map((name) => makeTool({ name, description: "Does a thing." })));
      for (const name of names) assertEquals((await ids(index, name))[0], name);
      index.remove("constructor");
      assertEquals((await ids(index, "constructor")).includes("constructor"), false);
    });

    it("never throws, whatever the query is", async () => {
      const index = filled(all);
      for (
        const query of [
          "",
          " \n\t",
          "!?.,;:-_/\\()[]{}<>\"'`",
          "\u0000\ud800",
          "🙂🙂",
          "a".repeat(100_000),
          "A".repeat(100_000),
          "x ".repeat(100_000),
          "\ufdfa".repeat(10_000),
          "检索文件".repeat(10_000),
          "(a+)+$",
        ]
      ) {
        assertEquals(Array.isArray(await search(index, query, 10)), true);
      }
    });
  });
}
