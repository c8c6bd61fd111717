import { chmod, open, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { testWorkspace } from "../testing.ts";

describe("file-write", () => {
  it("creates a file with the folders that are missing", async () => {
    await using test = await testWorkspace();
    assertEquals(await test.ok("file-write", { path: "a/b/c.txt", content: "häh" }), {
      path: "a/b/c.txt",
      bytes: 4,
      created: true,
    });
    assertEquals(await test.folder.read("a/b/c.txt"), "häh");
    assertEquals(await test.folder.list(), ["a/", "a/b/", "a/b/c.txt"]);
  });

  it("replaces a file only with overwrite", async () => {
    await using test = await testWorkspace({ "a.txt": "old" });
    const error = await test.fails("file-write", { path: "a.txt", content: "new" });
    assertStringIncludes(error.message, "it exists already; set overwrite to replace it");
    assertEquals([await test.folder.read("a.txt"), await test.folder.list()], ["old", ["a.txt"]]);
    await test.ok("file-write", { path: "a.txt", content: "new", overwrite: true });
    assertEquals([await test.folder.read("a.txt"), await test.folder.list()], ["new", ["a.txt"]]);
  });

  it("shows a reader the old file or the new one", async () => {
    await using test = await testWorkspace({ "a.txt": "old" });
    const reader = await open(join(test.folder.path, "a.txt"));
    await test.ok("file-write", { path: "a.txt", content: "new", overwrite: true });
    assertEquals(await reader.readFile("utf8"), "old");
    await reader.close();
  });

  it("keeps the mode of a file that it replaces", async () => {
    await using test = await testWorkspace({ "run.sh": "old" });
    await chmod(join(test.folder.path, "run.sh"), 0o751);
    await test.ok("file-write", { path: "run.sh", content: "new", overwrite: true });
    assertEquals((await stat(join(test.folder.path, "run.sh"))).mode & 0o777, 0o751);
  });

  it("writes through a link that stays inside, to the file it points to", async () => {
    await using test = await testWorkspace({ "real": "old" });
    await symlink("real", join(test.folder.path, "link"));
    await test.ok("file-write", { path: "link", content: "new", overwrite: true });
    assertEquals(await test.folder.read("real"), "new");
  });

  it("changes nothing when the call is aborted before the file is replaced", async () => {
    await using test = await testWorkspace({ "a": "old" });
    const controller = new AbortController();
    const call = test.call("file-write", { path: "a", content: "new", overwrite: true }, {
      signal: controller.signal,
    });
    controller.abort();
    const result = await call;
    assertEquals(result.ok ? "ok" : result.error.code, "aborted");
    await test.registry.dispose();
    assertEquals([await test.folder.list(), await test.folder.read("a")], [["a"], "old"]);
  });

  it("never mixes two calls for the same file", async () => {
    await using test = await testWorkspace({ "a": "old" });
    const texts = ["1", "2", "3", "4"].map((one) => one.repeat(100_000));
    await Promise.all(
      texts.map((content) => test.ok("file-write", { path: "a", content, overwrite: true })),
    );
    assertEquals(texts.includes(await test.folder.read("a")), true);
    assertEquals(await test.folder.list(), ["a"]);
  });
});
