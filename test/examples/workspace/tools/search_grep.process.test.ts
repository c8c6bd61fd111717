import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { testWorkspace } from "../testing.ts";

interface Found {
  readonly matches: readonly {
    readonly path: string;
    readonly line: number;
    readonly column: number;
    readonly text: string;
  }[];
  readonly filesSearched: number;
  readonly filesSkipped: number;
  readonly linesCut: number;
  readonly truncated: boolean;
}

const places = (found: Found) =>
  found.matches.map(({ path, line, column }) => `${path}:${line}:${column}`);

describe("search-grep", () => {
  it("finds plain text, with path, line, column and the line itself", async () => {
    await using test = await testWorkspace({ "src/a.ts": "one\n  two(x)\r\n", "b.md": "two(x)" });
    assertEquals(await test.ok<Found>("search-grep", { pattern: "two(x)" }), {
      matches: [
        { path: "b.md", line: 1, column: 1, text: "two(x)" },
        { path: "src/a.ts", line: 2, column: 3, text: "  two(x)" },
      ],
      filesSearched: 2,
      filesSkipped: 0,
      linesCut: 0,
      truncated: false,
    });
  });

  it("matches every character of plain text literally", async () => {
    const text = "a.b*c+d?e^f$g{h}i(j)k|l[m]n\\o/p-q#r😀";
    await using test = await testWorkspace({ "f": `x\n${text}\n` });
    for (const character of text) {
      const found = await test.ok<Found>("search-grep", { pattern: character });
      assertEquals([character, found.matches[0]?.line], [character, 2]);
    }
    assertEquals(places(await test.ok<Found>("search-grep", { pattern: text })), ["f:2:1"]);
  });

  it("ignores case with ignoreCase, and matches regular expressions with regex", async () => {
    await using test = await testWorkspace({ "f": "Hello\nhelp\nHELD\n" });
    const find = async (args: unknown) => places(await test.ok<Found>("search-grep", args));
    assertEquals(await find({ pattern: "hel" }), ["f:2:1"]);
    assertEquals(await find({ pattern: "hel", ignoreCase: true }), ["f:1:1", "f:2:1", "f:3:1"]);
    assertEquals(await find({ pattern: "^H.l+o?$", regex: true }), ["f:1:1"]);
    assertEquals(await find({ pattern: "l[pd]$", regex: true, ignoreCase: true }), [
      "f:2:3",
      "f:3:3",
    ]);
  });

  it("searches one file, a folder, or the files whose paths have an ending", async () => {
    await using test = await testWorkspace({ "a.ts": "x", "s/b.ts": "x", "s/c.md": "x" });
    const find = async (args: object) =>
      places(await test.ok<Found>("search-grep", { pattern: "x", ...args }));
    assertEquals(await find({ path: "s/c.md" }), ["s/c.md:1:1"]);
    assertEquals(await find({ path: "s" }), ["s/b.ts:1:1", "s/c.md:1:1"]);
    assertEquals(await find({ ending: ".ts" }), ["a.ts:1:1", "s/b.ts:1:1"]);
    assertEquals(await find({ path: "s", ending: ".ts" }), ["s/b.ts:1:1"]);
  });

  it("streams each match, and reports progress", async () => {
    const files = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`f${String(index).padStart(2, "0")}`, "x\n"]),
    );
    await using test = await testWorkspace(files);
    const events = [];
    for await (const event of test.stream("search-grep", { pattern: "x" })) events.push(event);
    const outputs = events.filter(({ type }) => type === "output");
    assertEquals(outputs.length, 60);
    assert(events.some((event) => event.type === "progress" && event.progress.done === 25));
    const last = events.at(-1);
    assert(last?.type === "result" && last.result.ok);
    assertEquals((last.result.content as Found).filesSearched, 60);
  });

  it("stops at maxMatches with truncated: true", async () => {
    await using test = await testWorkspace({ "f": "x\n".repeat(50) });
    const found = await test.ok<Found>("search-grep", { pattern: "x", maxMatches: 5 });
    assertEquals([found.matches.length, found.truncated], [5, true]);
  });

  it("skips binary files, .git and links", async () => {
    await using test = await testWorkspace({
      "text": "needle",
      "binary": new Uint8Array([0, ...new TextEncoder().encode("needle")]),
      ".git/config": "needle",
    });
    await symlink("text", join(test.folder.path, "link"));
    await symlink("/etc", join(test.folder.path, "out"));
    const found = await test.ok<Found>("search-grep", { pattern: "needle" });
    assertEquals([places(found), found.filesSkipped], [["text:1:1"], 1]);
  });

  it("searches only the beginning of a very long line, counts it, and shows the part with the match", async () => {
    await using test = await testWorkspace({
      "f": `${"a".repeat(5_000)}needle${"b".repeat(20_000)}needle2\n`,
    });
    const found = await test.ok<Found>("search-grep", { pattern: "needle" });
    assertEquals([places(found), found.linesCut], [["f:1:5001"], 1]);
    const shown = found.matches[0]?.text ?? "";
    assertStringIncludes(shown, "needle");
    assert(shown.length <= 302);
    assertEquals((await test.ok<Found>("search-grep", { pattern: "needle2" })).matches, []);
  });

  it("searches and counts only the beginning of a line with a large pattern", async () => {
    const optional = "a?".repeat(490);
    await using test = await testWorkspace({ "f": `${"a".repeat(9_999)}b\n${"a".repeat(50)}b\n` });
    const found = await test.ok<Found>("search-grep", { pattern: `(${optional})*b`, regex: true });
    assertEquals([places(found), found.linesCut, found.truncated], [["f:2:1"], 1, false]);
  });

  it("stops after too many steps with truncated: true", async () => {
    await using test = await testWorkspace({ "f": `${"a".repeat(99)}\n`.repeat(20_000) });
    const found = await test.ok<Found>("search-grep", {
      pattern: `(${"a?".repeat(490)})*b`,
      regex: true,
      ignoreCase: true,
    });
    assertEquals([found.matches, found.filesSearched, found.truncated], [[], 1, true]);
  });

  it("stops when the call is aborted", async () => {
    // In a file of this size, the search cannot end before the first match is read.
    await using test = await testWorkspace({ "f": `x${"a".repeat(5_000)}!\n`.repeat(800) });
    const controller = new AbortController();
    let last;
    for await (
      const event of test.stream("search-grep", { pattern: "x(a+)+b|x", regex: true }, {
        signal: controller.signal,
      })
    ) {
      if (event.type === "output") controller.abort();
      last = event;
    }
    assert(last?.type === "result" && !last.result.ok);
    assertEquals([last.result.error.code, last.result.error.acknowledged], ["aborted", true]);
  });
});
