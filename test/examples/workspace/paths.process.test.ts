import { mkdir, realpath, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertRejects } from "@std/assert";
import { describe, it } from "bun:test";
import { openInside } from "../../../examples/workspace/held.ts";
import { isGitName, resolveInside } from "../../../examples/workspace/paths.ts";
import { Refusal } from "../../../examples/workspace/refusal.ts";
import { temporaryFolder } from "./testing.ts";

describe("resolveInside()", () => {
  it("resolves a path relative to the root, even of a file that does not exist", async () => {
    await using folder = await temporaryFolder({ "src/a.txt": "a" });
    const found = await resolveInside(folder.path, "./src//a.txt");
    assertEquals(found.relative, "src/a.txt");
    assertEquals(found.absolute, join(folder.path, "src/a.txt"));
    const missing = await resolveInside(folder.path, "src/new/b.txt");
    assertEquals(missing.relative, "src/new/b.txt");
  });

  it("resolves the root itself, and an absolute path inside it", async () => {
    await using folder = await temporaryFolder({ "a.txt": "a" });
    assertEquals((await resolveInside(folder.path, ".")).relative, ".");
    assertEquals((await resolveInside(folder.path, `${folder.path}/a.txt`)).relative, "a.txt");
  });

  for (
    const [what, path, message] of [
      ["..", "../x", 'it contains ".."'],
      [".. inside", "a/../b", 'it contains ".."'],
      ["an absolute path outside", "/etc/passwd", "absolute and outside"],
      ["NUL", "a\0b", "none of them NUL"],
      ["the empty path", "", "1 to 4096 characters"],
      ["a path that is too long", "a/".repeat(3000), "1 to 4096 characters"],
      ["a name that is too long", "a".repeat(300), "its name is too long"],
      ["a file used as a folder", "a.txt/b", "not a folder"],
    ] as const
  ) {
    it(`rejects ${what}`, async () => {
      await using folder = await temporaryFolder({ "a.txt": "a" });
      await assertRejects(() => resolveInside(folder.path, path), Refusal, message);
    });
  }

  it("rejects a sibling whose name begins like the root's", async () => {
    await using folder = await temporaryFolder({ "root/a": "a", "root-secret/b": "b" });
    const root = join(folder.path, "root");
    await assertRejects(
      () => resolveInside(root, join(folder.path, "root-secret/b")),
      Refusal,
      "outside the workspace",
    );
  });

  it("follows a link that stays inside", async () => {
    await using folder = await temporaryFolder({ "real/a.txt": "a" });
    await symlink("real", join(folder.path, "link"));
    assertEquals((await resolveInside(folder.path, "link/a.txt")).relative, "real/a.txt");
  });

  it("rejects links that lead outside: to a file, a folder, a missing file and a new folder", async () => {
    await using folder = await temporaryFolder({ "root/a": "a", "outside/secret": "s" });
    const root = join(folder.path, "root");
    await symlink("../outside/secret", join(root, "file"));
    await symlink(join(folder.path, "outside"), join(root, "folder"));
    await symlink("../outside/not-yet", join(root, "nothing"));
    for (const path of ["file", "folder", "folder/secret", "folder/new/deep.txt", "nothing"]) {
      const refused = await assertRejects(
        () => resolveInside(root, path),
        Refusal,
        "outside the workspace",
      );
      assertEquals(refused.code, "denied");
    }
  });

  it("rejects links that point to each other", async () => {
    await using folder = await temporaryFolder();
    await symlink("b", join(folder.path, "a"));
    await symlink("a", join(folder.path, "b"));
    await assertRejects(() => resolveInside(folder.path, "a"), Refusal, "symbolic link");
  });

  it("returns the link itself with followLast: false, and still checks its folder", async () => {
    await using folder = await temporaryFolder({ "root/a": "a", "outside/secret": "s" });
    const root = join(folder.path, "root");
    await symlink("../outside/secret", join(root, "file"));
    await symlink("../outside", join(root, "folder"));
    const link = await resolveInside(root, "file", { followLast: false });
    assertEquals(link.relative, "file");
    await assertRejects(
      () => resolveInside(root, "folder/secret", { followLast: false }),
      Refusal,
      "outside",
    );
  });

  it("rejects .git in every spelling and through links", async () => {
    await using folder = await temporaryFolder({ ".git/config": "c" });
    await symlink(".git", join(folder.path, "link"));
    for (
      const path of [".git", ".git/config", ".GIT/hooks/x", "sub/.git", "link/config"]
    ) {
      await assertRejects(
        () => resolveInside(folder.path, path),
        Refusal,
        "not for the file tools",
      );
    }
    assertEquals((await resolveInside(folder.path, ".gitignore")).relative, ".gitignore");
  });
});

describe("isGitName()", () => {
  it("returns true for every spelling of .git that a file system accepts", () => {
    for (const name of [".git", ".GiT", ".git ", ".git.", "git~1", ".g\u200cit", ".git::$DATA"]) {
      assertEquals([name, isGitName(name)], [name, true]);
    }
    for (const name of [".gitignore", ".github", "git", ".git2", "a.git"]) {
      assertEquals([name, isGitName(name)], [name, false]);
    }
  });
});

describe("openInside()", () => {
  it("rejects a file and a folder that were replaced by a link after the check", async () => {
    await using folder = await temporaryFolder({
      "root/a.txt": "a",
      "root/sub/b.txt": "b",
      "outside/b.txt": "secret",
    });
    const root = await realpath(join(folder.path, "root"));
    const file = await resolveInside(root, "a.txt");
    const below = await resolveInside(root, "sub/b.txt");
    await rename(join(root, "a.txt"), join(root, "old"));
    await symlink("../outside/b.txt", join(root, "a.txt"));
    await rename(join(root, "sub"), join(root, "old-sub"));
    await symlink("../outside", join(root, "sub"));
    await assertRejects(() => openInside(file), Refusal, "it is a symbolic link");
    await assertRejects(() => openInside(below), Refusal, "it was moved");
  });

  it("rejects a named pipe without waiting for it", async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, "d"));
    const { execFileSync } = await import("node:child_process");
    execFileSync("mkfifo", [join(folder.path, "pipe")]);
    const pipe = await resolveInside(folder.path, "pipe");
    await assertRejects(() => openInside(pipe), Refusal, "not a regular file");
  });
});
