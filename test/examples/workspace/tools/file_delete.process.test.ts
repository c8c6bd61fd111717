import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { testWorkspace } from "../testing.ts";

describe("file-delete", () => {
  it("deletes a file", async () => {
    await using test = await testWorkspace({ "a": "a", "b": "b" });
    assertEquals(await test.ok("file-delete", { path: "a" }), { path: "a" });
    assertEquals(await test.folder.list(), ["b"]);
  });

  it("deletes a link and leaves its target, inside and outside the workspace", async () => {
    await using test = await testWorkspace({ "real": "r" });
    await symlink("real", join(test.folder.path, "link"));
    await symlink("/etc/passwd", join(test.folder.path, "out"));
    await symlink("nowhere", join(test.folder.path, "dangling"));
    for (const path of ["link", "out", "dangling"]) await test.ok("file-delete", { path });
    assertEquals(await test.folder.list(), ["real"]);
  });

  it("deletes an empty folder and rejects a full one", async () => {
    await using test = await testWorkspace({ "full/a": "a" });
    await mkdir(join(test.folder.path, "empty"));
    await test.ok("file-delete", { path: "empty" });
    const error = await test.fails("file-delete", { path: "full" });
    assertStringIncludes(error.message, "the folder is not empty");
    assertEquals(await test.folder.list(), ["full/", "full/a"]);
  });

  for (
    const [what, args, code, message] of [
      ["what is not there", { path: "nope" }, "invalid_arguments", "it does not exist"],
      ["the workspace itself", { path: "." }, "denied", "the workspace itself"],
      ["a path outside", { path: "../x" }, "denied", 'it contains ".."'],
      ["a file behind a link that leads outside", { path: "out/x" }, "denied", "leads outside"],
      [".git", { path: ".git" }, "denied", '".git"'],
      ["a file in .git", { path: ".git/config" }, "denied", '".git"'],
    ] as const
  ) {
    it(`rejects ${what} and changes nothing`, async () => {
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
