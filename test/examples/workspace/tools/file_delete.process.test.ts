import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { testWorkspace } from "../testing.ts";

describe("file-delete", () => {
  it("deletes a file or an empty folder", async () => {
    await using test = await testWorkspace({ "a": "a", "b": "b" });
    await mkdir(join(test.folder.path, "empty"));
    for (const path of ["a", "empty"]) {
      assertEquals(await test.ok("file-delete", { path }), { path });
    }
    assertEquals(await test.folder.list(), ["b"]);
  });

  it("deletes a link but not its target, inside and outside the workspace", async () => {
    await using test = await testWorkspace({ "real": "r" });
    await symlink("real", join(test.folder.path, "link"));
    await symlink("/etc/passwd", join(test.folder.path, "out"));
    await symlink("nowhere", join(test.folder.path, "dangling"));
    for (const path of ["link", "out", "dangling"]) await test.ok("file-delete", { path });
    assertEquals(await test.folder.list(), ["real"]);
  });
});
