/**
 * What every {@linkcode ToolIndex} keeps to, whatever it ranks by.
 *
 * @module
 */

import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import type { ToolIndex } from "../../src/registry/search/mod.ts";
import { makeTool, type Tool } from "../../src/tool/mod.ts";

/** Four tools that any index can tell apart, and queries for them. */
const read = makeTool({ name: "file-read", description: "Reads the text of a file." });
const write = makeTool({ name: "file-write", description: "Writes text to a file." });
const log = makeTool({ name: "git-log", description: "Lists the commits of a branch." });
const mail = makeTool({ name: "mail-send", description: "Sends an e-mail to a person." });
const all = [read, write, log, mail];

/** Declares the contract's tests for the index that `create` makes. */
export function describeToolIndex(name: string, create: () => ToolIndex): void {
  const filled = (tools: readonly Tool[]): ToolIndex => {
    const index = create();
    for (const tool of tools) index.add(tool);
    return index;
  };
  const ids = (index: ToolIndex, query: string, limit = 10): string[] =>
    index.search(query, limit).map((hit) => hit.id);

  describe(`${name} as a ToolIndex`, () => {
    it("finds nothing while it is empty", () => {
      assertEquals(create().search("file", 10), []);
    });

    it("puts the tool that fits best first", () => {
      const index = filled(all);
      assertEquals(ids(index, "write text to a file")[0], "file-write");
      assertEquals(ids(index, "send an e-mail")[0], "mail-send");
    });

    it("gives scores above 0 that do not rise", () => {
      const scores = filled(all).search("file text commits", 10).map((hit) => hit.score);
      assertEquals(scores.length > 1, true);
      assertEquals(scores.every((score) => score > 0), true);
      assertEquals(scores, scores.toSorted((a, b) => b - a));
    });

    it("orders equals by the code units of their ids", () => {
      const same = ["b", "B", "a", "ä".normalize("NFKD").slice(0, 1) + "2", "_"].map((id) =>
        makeTool({ name: id, namespace: "n", description: "Feeds the cat." })
      );
      assertEquals(ids(filled(same), "feeds cat"), ["n:B", "n:_", "n:a", "n:a2", "n:b"]);
    });

    it("answers alike in whatever order the tools came", () => {
      const query = "write the commits of a branch to a file";
      assertEquals(
        filled(all).search(query, 10),
        filled(all.toReversed()).search(query, 10),
      );
    });

    it("answers the same question alike each time", () => {
      const index = filled(all);
      const first = index.search("text file", 10);
      index.search("send commits", 10);
      assertEquals(index.search("text file", 10), first);
    });

    for (
      const [limit, count] of [[0, 0], [-1, 0], [NaN, 0], [0.9, 0], [1, 1], [1.9, 1], [
        Infinity,
        2,
      ]] as const
    ) {
      it(`gives ${count} of 2 hits for a limit of ${limit}`, () => {
        assertEquals(filled([read, write]).search("file", limit).length, count);
      });
    }

    it("forgets a removed tool, and takes it back", () => {
      const index = filled(all);
      index.remove("file-write");
      assertEquals(ids(index, "write text file").includes("file-write"), false);
      index.add(write);
      assertEquals(index.search("write text file", 10), filled(all).search("write text file", 10));
    });

    it("replaces a tool with the same id", () => {
      const index = filled(all);
      index.add(makeTool({ name: "git-log", description: "Cuts timber." }));
      assertEquals(ids(index, "timber"), ["git-log"]);
      assertEquals(ids(index, "branch").includes("git-log"), false);
    });

    it("ignores the removal of a tool that is not there", () => {
      const index = filled(all);
      index.remove("nobody");
      index.remove("constructor");
      assertEquals(ids(index, "git log")[0], "git-log");
    });

    it("is the same after many changes as one made anew", () => {
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
        assertEquals(index.search(query, 100), anew.search(query, 100));
      }
    });

    it("holds tools with the names of an object's own members", () => {
      const names = ["constructor", "__proto__", "toString", "hasOwnProperty"];
      const index = filled(names.map((name) => makeTool({ name, description: "Does a thing." })));
      for (const name of names) assertEquals(ids(index, name)[0], name);
      index.remove("constructor");
      assertEquals(ids(index, "constructor").includes("constructor"), false);
    });

    it("never throws, whatever the query is", () => {
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
        assertEquals(Array.isArray(index.search(query, 10)), true);
      }
    });
  });
}
