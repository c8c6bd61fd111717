import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { testWorkspace } from "../testing.ts";

interface List {
  readonly path: string;
  readonly entries: readonly {
    readonly path: string;
    readonly type: string;
    readonly size?: number;
    readonly modified?: string;
  }[];
  readonly truncated: boolean;
}

const FILES = {
  "b.ts": "bb",
  "a.md": "a",
  "src/z.ts": "z",
  "src/deep/y.ts": "y",
  "src-x/w": "w",
  ".git/config": "c",
};

const paths = (list: List) => list.entries.map(({ path }) => path);

describe("file-list", () => {
  it("lists a folder sorted by name, with types, sizes and times", async () => {
    await using test = await testWorkspace(FILES);
    const list = await test.ok<List>("file-list");
    assertEquals(
      list.entries.map(({ path, type, size }) => [path, type, size]),
      [
        [".git", "folder", undefined],
        ["a.md", "file", 1],
        ["b.ts", "file", 2],
        ["src", "folder", undefined],
        ["src-x", "folder", undefined],
      ],
    );
    assertEquals(
      list.entries.every(({ modified }) => !Number.isNaN(Date.parse(modified ?? ""))),
      true,
    );
    assertEquals([list.path, list.truncated], [".", false]);
  });

  it("does not list .git itself, nor open transactions", async () => {
    await using test = await testWorkspace({ ".git/config": "c", ".plue-tx-1/0.old": "x" });
    for (const path of [".git", "./.GIT", ".plue-tx-1"]) {
      assertEquals((await test.fails("file-list", { path })).code, "denied");
    }
  });

  it("goes down when it is asked to, a folder before what is in it, but not into .git", async () => {
    await using test = await testWorkspace(FILES);
    assertEquals(paths(await test.ok<List>("file-list", { recursive: true })), [
      ".git",
      "a.md",
      "b.ts",
      "src",
      "src/deep",
      "src/deep/y.ts",
      "src/z.ts",
      "src-x",
      "src-x/w",
    ]);
  });

  it("goes no deeper than it is told", async () => {
    await using test = await testWorkspace(FILES);
    const list = await test.ok<List>("file-list", { path: "src", recursive: true, maxDepth: 1 });
    assertEquals(paths(list), ["src/deep", "src/z.ts"]);
  });

  it("takes a pattern by name, and by path from the folder", async () => {
    await using test = await testWorkspace(FILES);
    const find = async (args: unknown) => paths(await test.ok<List>("file-list", args));
    assertEquals(await find({ recursive: true, pattern: "*.ts" }), [
      "b.ts",
      "src/deep/y.ts",
      "src/z.ts",
    ]);
    assertEquals(await find({ path: "src", recursive: true, pattern: "deep/*" }), [
      "src/deep/y.ts",
    ]);
  });

  it("answers the first entries of many, always the same, and says that there are more", async () => {
    const files = Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => [`f${String(index).padStart(2, "0")}`, ""]),
    );
    await using test = await testWorkspace(files);
    const list = await test.ok<List>("file-list", { limit: 10 });
    assertEquals(paths(list), Object.keys(files).slice(0, 10));
    assertEquals(list.truncated, true);
    assertEquals((await test.ok<List>("file-list", { limit: 30 })).truncated, false);
  });

  it("names links without following them, also when they lead in a circle or outside", async () => {
    await using test = await testWorkspace({ "d/a": "a" });
    await symlink("..", join(test.folder.path, "d/up"));
    await symlink("/etc", join(test.folder.path, "out"));
    const list = await test.ok<List>("file-list", { recursive: true });
    assertEquals(list.entries.map(({ path, type }) => [path, type]), [
      ["d", "folder"],
      ["d/a", "file"],
      ["d/up", "link"],
      ["out", "link"],
    ]);
  });

  it("does not show open transactions", async () => {
    await using test = await testWorkspace({ ".plue-tx-1/0.old": "x", "a": "a" });
    assertEquals(paths(await test.ok<List>("file-list", { recursive: true })), ["a"]);
  });

  for (
    const [what, args, code, message] of [
      ["a folder that is not there", { path: "nope" }, "invalid_arguments", "it does not exist"],
      ["a file", { path: "a.md" }, "invalid_arguments", "it is not a folder"],
      ["a path outside", { path: ".." }, "denied", 'it contains ".."'],
      ["a link that leads outside", { path: "out" }, "denied", "leads outside"],
      [
        "a pattern that stands for thousands",
        { pattern: "{1..9999}" },
        "invalid_arguments",
        "its braces stand for too many patterns",
      ],
      ["a limit above what is bounded", { limit: 1e6 }, "invalid_arguments", "limit"],
    ] as const
  ) {
    it(`refuses ${what}`, async () => {
      await using test = await testWorkspace(FILES);
      await symlink("/etc", join(test.folder.path, "out"));
      const error = await test.fails("file-list", args);
      assertEquals(error.code, code);
      assertStringIncludes(error.message, message);
    });
  }
});
