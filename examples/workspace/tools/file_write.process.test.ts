import { chmod, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, it } from "bun:test";
import { ToolDispatcher } from "../../../mod.ts";
import { createWorkspaceRegistry } from "../mod.ts";
import { testWorkspace } from "../testing.ts";

describe("file-write", () => {
  it("creates a file", async () => {
    await using test = await testWorkspace();
    assertEquals(await test.ok("file-write", { path: "a.txt", content: "häh" }), {
      path: "a.txt",
      bytes: 4,
      created: true,
    });
    assertEquals(await test.folder.read("a.txt"), "häh");
    assertEquals(await test.folder.list(), ["a.txt"]);
  });

  it("does not replace a file unless it is told to", async () => {
    await using test = await testWorkspace({ "a.txt": "old" });
    const error = await test.fails("file-write", { path: "a.txt", content: "new" });
    assertStringIncludes(error.message, 'it exists already; use mode "overwrite" or "append"');
    assertEquals(await test.folder.read("a.txt"), "old");
    await test.ok("file-write", { path: "a.txt", content: "new", mode: "overwrite" });
    assertEquals(await test.folder.read("a.txt"), "new");
  });

  it("appends, and creates what it appends to", async () => {
    await using test = await testWorkspace({ "log": "1\n" });
    await test.ok("file-write", { path: "log", content: "2\n", mode: "append" });
    assertEquals(await test.folder.read("log"), "1\n2\n");
    const fresh = await test.ok("file-write", { path: "new", content: "1\n", mode: "append" });
    assertEquals([fresh["created"], await test.folder.read("new")], [true, "1\n"]);
  });

  it("keeps the mode of a file that it replaces", async () => {
    await using test = await testWorkspace({ "run.sh": "old" });
    await chmod(join(test.folder.path, "run.sh"), 0o751);
    await test.ok("file-write", { path: "run.sh", content: "new", mode: "overwrite" });
    assertEquals((await stat(join(test.folder.path, "run.sh"))).mode & 0o777, 0o751);
  });

  it("makes the folders that are missing only if it is asked to", async () => {
    await using test = await testWorkspace();
    const error = await test.fails("file-write", { path: "a/b/c", content: "x" });
    assertStringIncludes(error.message, "its folder does not exist; set createFolders");
    assertEquals(await test.folder.list(), []);
    await test.ok("file-write", { path: "a/b/c", content: "x", createFolders: true });
    assertEquals(await test.folder.list(), ["a/", "a/b/", "a/b/c"]);
  });

  it("writes through a link that stays inside, to the file it points to", async () => {
    await using test = await testWorkspace({ "real": "old" });
    await symlink("real", join(test.folder.path, "link"));
    await test.ok("file-write", { path: "link", content: "new", mode: "overwrite" });
    assertEquals(await test.folder.read("real"), "new");
  });

  it("writes bytes from base64, and refuses what is not base64", async () => {
    await using test = await testWorkspace();
    await test.ok("file-write", { path: "b", content: "AAEC/w==", encoding: "base64" });
    const read = await test.ok("file-read", { path: "b", encoding: "base64" });
    assertEquals(read["content"], "AAEC/w==");
    for (const content of ["no base64!", "A", "AAEC/w=x"]) {
      const error = await test.fails("file-write", { path: "c", content, encoding: "base64" });
      assertStringIncludes(error.message, "it is not base64");
    }
    assertEquals(await test.folder.list(), ["b"]);
  });

  it("takes names that mean something to JavaScript", async () => {
    await using test = await testWorkspace();
    for (const path of ["__proto__", "constructor", "toString"]) {
      await test.ok("file-write", { path, content: path });
      assertEquals(await test.folder.read(path), path);
    }
  });

  it("takes everything back when the result is refused, folders too", async () => {
    await using test = await testWorkspace({ "a": "old" });
    const { registry, transactions } = createWorkspaceRegistry({
      root: test.folder.path,
      journals: test.folder.journals,
    });
    // The call fails after the tool has done its work: its result is larger than the caller takes.
    const dispatcher = new ToolDispatcher(registry, { transactions, maxOutputBytes: 128 });
    const path = `new/${"deep".repeat(50)}/b`;
    const result = await dispatcher.dispatch({
      name: "file-write",
      arguments: { path, content: "x", createFolders: true },
    });
    assertEquals(result.ok ? "ok" : result.error.code, "output_too_large");
    assertEquals(await test.folder.list(), ["a"]);
  });

  it("takes everything back when the commit fails", async () => {
    await using test = await testWorkspace({ "a": "old" });
    const { registry, transactions } = createWorkspaceRegistry({
      root: test.folder.path,
      journals: test.folder.journals,
    });
    const dispatcher = new ToolDispatcher(registry, {
      transactions: {
        begin: () => transactions.begin(),
        commit() {
          throw new Error("the disk is gone");
        },
        rollback: (transaction, reason) => transactions.rollback(transaction, reason),
      },
    });
    const result = await dispatcher.dispatch({
      name: "file-write",
      arguments: { path: "a", content: "new", mode: "overwrite" },
    });
    assertEquals(result.ok ? "ok" : result.error.code, "transaction_failed");
    assertEquals([await test.folder.list(), await test.folder.read("a")], [["a"], "old"]);
  });

  it("takes everything back when the call is aborted while it writes", async () => {
    await using test = await testWorkspace({ "a": "old" });
    const { registry, transactions } = createWorkspaceRegistry({
      root: test.folder.path,
      journals: test.folder.journals,
    });
    const controller = new AbortController();
    const dispatcher = new ToolDispatcher(registry, {
      transactions: {
        begin() {
          const transaction = transactions.begin();
          const write = transaction.write.bind(transaction);
          // The caller goes away when the change has been begun.
          transaction.write = (...args) => {
            const done = write(...args);
            controller.abort();
            return done;
          };
          return transaction;
        },
        commit: (transaction) => transactions.commit(transaction),
        rollback: (transaction) => transactions.rollback(transaction),
      },
    });
    const result = await dispatcher.dispatch({
      name: "file-write",
      arguments: { path: "a", content: "new", mode: "overwrite" },
    }, { signal: controller.signal });
    assertEquals(result.ok ? "ok" : result.error.code, "aborted");
    assertEquals([await test.folder.list(), await test.folder.read("a")], [["a"], "old"]);
  });

  it("does not run without transactions", async () => {
    await using test = await testWorkspace();
    const { registry } = createWorkspaceRegistry({
      root: test.folder.path,
      journals: test.folder.journals,
    });
    const result = await new ToolDispatcher(registry).dispatch({
      name: "file-write",
      arguments: { path: "a", content: "x" },
    });
    assertEquals(result.ok ? "ok" : result.error.code, "transaction_failed");
    assertEquals(await test.folder.list(), []);
  });

  it("lets one of two calls for the same file win, and never mixes them", async () => {
    await using test = await testWorkspace({ "a": "old" });
    const texts = ["1", "2", "3", "4"].map((one) => one.repeat(100_000));
    const results = await Promise.all(
      texts.map((content) => test.call("file-write", { path: "a", content, mode: "overwrite" })),
    );
    const won = results.flatMap((result, index) => result.ok ? [texts[index]] : []);
    const lost = results.flatMap((result) => result.ok ? [] : [result.error]);
    assertEquals(won.includes(await test.folder.read("a")), true);
    for (const error of lost) assertEquals([error.code, error.retryable], ["unavailable", true]);
    assertEquals(await test.folder.list(), ["a"]);
  });

  for (
    const [what, args, code, message] of [
      ["a path outside", { path: "../x" }, "denied", 'it contains ".."'],
      ["an absolute path outside", { path: "/tmp/x" }, "denied", "outside the workspace"],
      ["a link that leads outside", { path: "out", mode: "overwrite" }, "denied", "leads outside"],
      ["a new file behind such a link", { path: "outdir/x" }, "denied", "leads outside"],
      ["a link to nothing", { path: "nothing" }, "denied", "symbolic link"],
      ["a folder", { path: "d", mode: "overwrite" }, "invalid_arguments", "not a regular file"],
      [
        "a file as a folder",
        { path: "a/b", createFolders: true },
        "invalid_arguments",
        "not a folder",
      ],
      ["git's own files", { path: ".git/hooks/pre-commit", createFolders: true }, "denied", ".git"],
      ["a .git file", { path: "d/.git" }, "denied", ".git"],
      [
        "an open transaction",
        { path: ".plue-tx-a/x", createFolders: true },
        "denied",
        "transactions",
      ],
      ["a name with NUL", { path: "a\0" }, "invalid_arguments", "NUL"],
      ["an unknown mode", { path: "x", mode: "replace" }, "invalid_arguments", "mode"],
    ] as const
  ) {
    it(`refuses ${what}, and changes nothing`, async () => {
      await using test = await testWorkspace({ "ws/a": "a", "ws/d/x": "x", "outside/secret": "s" });
      const root = join(test.folder.path, "ws");
      await symlink("../outside/secret", join(root, "out"));
      await symlink("../outside", join(root, "outdir"));
      await symlink("../outside/nothing", join(root, "nothing"));
      const before = await test.folder.list();
      const { registry, transactions } = createWorkspaceRegistry({
        root,
        journals: test.folder.journals,
      });
      const result = await new ToolDispatcher(registry, { transactions }).dispatch({
        name: "file-write",
        arguments: { content: "evil", ...args },
      });
      assert(!result.ok);
      assertEquals(result.error.code, code);
      assertStringIncludes(result.error.message, message);
      assertEquals(await test.folder.list(), before);
      assertEquals(await test.folder.read("outside/secret"), "s");
    });
  }
});
