import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher } from "../../../mod.ts";
import { createWorkspaceRegistry } from "../mod.ts";
import { testWorkspace } from "../testing.ts";

describe("file-delete", () => {
  it("deletes a file", async () => {
    await using test = await testWorkspace({ "a": "a", "b": "b" });
    assertEquals(await test.ok("file-delete", { path: "a" }), {
      path: "a",
      type: "file",
      deleted: 1,
    });
    assertEquals(await test.folder.list(), ["b"]);
  });

  it("deletes a link, not what it points to, wherever that is", async () => {
    await using test = await testWorkspace({ "real": "r" });
    await symlink("real", join(test.folder.path, "link"));
    await symlink("/etc/passwd", join(test.folder.path, "out"));
    await symlink("nowhere", join(test.folder.path, "dangling"));
    for (const path of ["link", "out", "dangling"]) {
      assertEquals((await test.ok("file-delete", { path }))["type"], "link");
    }
    assertEquals(await test.folder.list(), ["real"]);
  });

  it("deletes an empty folder, and a full one only when it is told to", async () => {
    await using test = await testWorkspace({ "full/a": "a", "full/deep/b": "b" });
    await mkdir(join(test.folder.path, "empty"));
    assertEquals((await test.ok("file-delete", { path: "empty" }))["deleted"], 1);
    const error = await test.fails("file-delete", { path: "full" });
    assertStringIncludes(error.message, "the folder is not empty; set recursive");
    assertEquals((await test.ok("file-delete", { path: "full", recursive: true }))["deleted"], 4);
    assertEquals(await test.folder.list(), []);
  });

  it("puts a folder back when the call fails after all", async () => {
    await using test = await testWorkspace({ "full/a": "a", "full/deep/b": "b" });
    const before = await test.folder.list();
    const { registry, transactions } = createWorkspaceRegistry({
      root: test.folder.path,
      journals: test.folder.journals,
    });
    const seen: string[] = [];
    const dispatcher = new ToolDispatcher(registry, {
      transactions: {
        begin: () => transactions.begin(),
        async commit() {
          // It is gone in the moment before the commit, which then fails.
          seen.push(...(await test.folder.list()).filter((name) => name.startsWith("full")));
          throw new Error("the disk is gone");
        },
        rollback: (transaction, reason) => transactions.rollback(transaction, reason),
      },
    });
    const result = await dispatcher.dispatch({
      name: "file-delete",
      arguments: { path: "full", recursive: true },
    });
    assertEquals(result.ok ? "ok" : result.error.code, "transaction_failed");
    assertEquals(seen, []);
    assertEquals(await test.folder.list(), before);
    assertEquals(await test.folder.read("full/deep/b"), "b");
  });

  for (
    const [what, args, code, message] of [
      ["what is not there", { path: "nope" }, "invalid_arguments", "it does not exist"],
      ["the workspace itself", { path: ".", recursive: true }, "denied", "the workspace itself"],
      ["a path outside", { path: "../x" }, "denied", 'it contains ".."'],
      ["a file behind a link that leads outside", { path: "out/x" }, "denied", "leads outside"],
      [".git", { path: ".git", recursive: true }, "denied", '".git"'],
      ["a file in .git", { path: ".git/config" }, "denied", '".git"'],
      [
        "a folder that holds a repository",
        { path: "sub", recursive: true },
        "denied",
        "sub/repo/.git",
      ],
    ] as const
  ) {
    it(`refuses ${what}, and changes nothing`, async () => {
      await using test = await testWorkspace({
        "a": "a",
        ".git/config": "c",
        "sub/repo/.git/config": "c",
      });
      await symlink("/etc", join(test.folder.path, "out"));
      const before = await test.folder.list();
      const error = await test.fails("file-delete", args);
      assertEquals(error.code, code);
      assertStringIncludes(error.message, message);
      assertEquals(await test.folder.list(), before);
    });
  }
});
