import {
  chmod,
  mkdir,
  readdir,
  rename,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { writeJournal } from "./journal.ts";
import { resolveInside } from "./paths.ts";
import { Refusal } from "./refusal.ts";
import { temporaryFolder } from "./testing.ts";
import { fileTransaction, FileTransactionManager } from "./transactions.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

async function start(files: Record<string, string> = {}) {
  const folder = await temporaryFolder(files);
  const manager = new FileTransactionManager({ root: folder.path });
  const path = (name: string) =>
    resolveInside(folder.path, name, { forChange: true, followLast: false });
  return { folder, manager, path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

describe("FileTransactionManager", () => {
  it("keeps a new, a changed and a removed file on commit, and leaves nothing behind", async () => {
    await using test = await start({ "a.txt": "old", "b.txt": "b" });
    const tx = test.manager.begin();
    await tx.write(await test.path("a.txt"), bytes("new"));
    await tx.write(await test.path("c.txt"), bytes("c"));
    await tx.remove(await test.path("b.txt"));
    await test.manager.commit(tx);
    assertEquals(await test.folder.list(), ["a.txt", "c.txt"]);
    assertEquals(await test.folder.read("a.txt"), "new");
    assertEquals(test.manager.openCount, 0);
  });

  it("takes everything back on rollback, last change first, and leaves nothing behind", async () => {
    const before = { "a.txt": "old", "b.txt": "b", "sub/deep/x": "x", "sub/y": "y" };
    await using test = await start(before);
    const list = await test.folder.list();
    const tx = test.manager.begin();
    await tx.write(await test.path("a.txt"), bytes("1"));
    await tx.write(await test.path("a.txt"), bytes("2"));
    await tx.remove(await test.path("b.txt"));
    await tx.write(await test.path("b.txt"), bytes("another"));
    await tx.remove(await test.path("sub"));
    await tx.makeFolders(test.folder.path, join(test.folder.path, "sub/new"), "sub/new");
    await tx.write(await test.path("sub/new/z"), bytes("z"));
    await tx.write(await test.path("fresh"), bytes("f"));
    await tx.remove(await test.path("fresh"));
    await test.manager.rollback(tx);
    assertEquals(await test.folder.list(), list);
    for (const [name, text] of Object.entries(before)) {
      assertEquals(await test.folder.read(name), text);
    }
  });

  it("restores the same inode, mode and times", async () => {
    await using test = await start({ "run.sh": "#!/bin/sh" });
    const name = join(test.folder.path, "run.sh");
    await chmod(name, 0o750);
    const before = await stat(name, { bigint: true });
    const tx = test.manager.begin();
    await tx.write(await test.path("run.sh"), bytes("changed"));
    assertEquals((await stat(name)).mode & 0o777, 0o750);
    await test.manager.rollback(tx);
    const after = await stat(name, { bigint: true });
    assertEquals([after.ino, after.mode, after.mtimeNs], [before.ino, before.mode, before.mtimeNs]);
  });

  it("restores a removed folder with its modes and links", async () => {
    await using test = await start({ "d/a": "a", "d/e/b": "b" });
    await chmod(join(test.folder.path, "d/e"), 0o700);
    await symlink("a", join(test.folder.path, "d/link"));
    const list = await test.folder.list();
    const tx = test.manager.begin();
    await tx.remove(await test.path("d"));
    assertEquals((await test.folder.list()).some((name) => name.startsWith("d/")), false);
    await test.manager.rollback(tx);
    assertEquals(await test.folder.list(), list);
    assertEquals((await stat(join(test.folder.path, "d/e"))).mode & 0o777, 0o700);
  });

  it("appends to a copy, so a reader never sees half of it", async () => {
    await using test = await start({ "log": "one\n" });
    const tx = test.manager.begin();
    await tx.write(await test.path("log"), bytes("two\n"), "current");
    assertEquals(await test.folder.read("log"), "one\ntwo\n");
    await test.manager.rollback(tx);
    assertEquals(await test.folder.read("log"), "one\n");
  });

  it("appends to a file of many pieces, and refuses one that is too large to copy", async () => {
    const text = "0123456789".repeat(350_000);
    await using test = await start({ "log": text, "huge": "" });
    await truncate(join(test.folder.path, "huge"), 268_435_457);
    const tx = test.manager.begin();
    await tx.write(await test.path("log"), bytes("end"), "current");
    const huge = await test.path("huge");
    await assertRejects(() => tx.write(huge, bytes("x"), "current"), Refusal, "is larger than");
    await test.manager.commit(tx);
    assertEquals(await test.folder.read("log") === `${text}end`, true);
    assertEquals(await test.folder.list(), ["huge", "log"]);
  });

  it("does not make a folder behind a link that came after the check", async () => {
    await using test = await start({ "ws/sub/a": "a", "outside/x": "x" });
    const root = join(test.folder.path, "ws");
    const manager = new FileTransactionManager({ root });
    const path = await resolveInside(root, "sub/new/file", { forChange: true });
    await rename(join(root, "sub"), join(root, "old"));
    await symlink("../outside", join(root, "sub"));
    const tx = manager.begin();
    await assertRejects(
      () => tx.makeFolders(root, join(path.absolute, ".."), path.shown),
      Refusal,
      "its folder was moved meanwhile",
    );
    await assertRejects(() => tx.write(path, bytes("x")), Refusal);
    await manager.rollback(tx);
    assertEquals((await test.folder.list()).filter((name) => name.startsWith("outside")), [
      "outside/",
      "outside/x",
    ]);
  });

  it("makes no folder for a transaction that changes nothing", async () => {
    await using test = await start();
    const tx = test.manager.begin();
    assertEquals(await readdir(test.folder.path), []);
    await test.manager.commit(tx);
    assertEquals(await readdir(test.folder.path), []);
  });

  it("refuses changes after the end, as an ignored abort would make them", async () => {
    await using test = await start({ "a": "old" });
    const tx = test.manager.begin();
    const path = await test.path("a");
    await test.manager.rollback(tx);
    await assertRejects(() => tx.write(path, bytes("late")), Refusal, "its transaction has ended");
    assertEquals(await test.folder.list(), ["a"]);
    assertEquals(await test.folder.read("a"), "old");
  });

  it("takes back a change that was still running when the rollback came", async () => {
    await using test = await start({ "a": "old" });
    const tx = test.manager.begin();
    const running = tx.write(await test.path("a"), bytes("x".repeat(1_000_000)));
    await Promise.resolve();
    await test.manager.rollback(tx);
    await running;
    assertEquals(await test.folder.read("a"), "old");
    assertEquals(await test.folder.list(), ["a"]);
  });

  it("keeps two open transactions off the same path, and off a folder and its contents", async () => {
    await using test = await start({ "a": "1", "d/b": "2" });
    const first = test.manager.begin();
    const second = test.manager.begin();
    await first.write(await test.path("a"), bytes("first"));
    await first.write(await test.path("d/b"), bytes("first"));
    for (const name of ["a", "d"]) {
      const path = await test.path(name);
      const refused = await assertRejects(
        () => second.remove(path),
        Refusal,
        "another call is changing it",
      );
      assertEquals([refused.code, refused.retryable], ["unavailable", true]);
    }
    await test.manager.commit(first);
    await second.write(await test.path("a"), bytes("second"));
    await test.manager.commit(second);
    assertEquals(await test.folder.read("a"), "second");
  });

  it("does not overwrite what somebody else changed meanwhile, and says so", async () => {
    await using test = await start({ "a": "old" });
    const tx = test.manager.begin();
    await tx.write(await test.path("a"), bytes("ours"));
    await writeFile(join(test.folder.path, "theirs"), "theirs");
    await rename(join(test.folder.path, "theirs"), join(test.folder.path, "a"));
    await assertRejects(
      async () => await test.manager.rollback(tx),
      Error,
      '"a": it was changed by something else',
    );
    assertEquals(await test.folder.read("a"), "theirs");
    // The old content is kept for a person to look at.
    const kept = (await test.folder.list()).find((name) => name.endsWith("0.old"));
    assertEquals(await test.folder.read(kept ?? ""), "old");
  });

  it("refuses a file that is marked read-only, also for root", async () => {
    await using test = await start({ "a": "old" });
    await chmod(join(test.folder.path, "a"), 0o444);
    const tx = test.manager.begin();
    const path = await test.path("a");
    await assertRejects(() => tx.write(path, bytes("new")), Refusal, "it is read-only");
    await test.manager.rollback(tx);
    assertEquals(await test.folder.read("a"), "old");
  });

  it("refuses to end or use a transaction that is not its own", async () => {
    await using test = await start();
    const alien = { id: "alien" };
    await assertRejects(() => test.manager.commit(alien), TypeError, "begun by another manager");
    assertThrows(() => fileTransaction({ transaction: alien }), TypeError, "workspace's own");
    assertThrows(() => fileTransaction({ transaction: undefined }), TypeError, "workspace's own");
  });
});

describe("FileTransactionManager.recover()", () => {
  /** The pid of a process that has ended. */
  async function deadPid(): Promise<number> {
    const { spawn } = await import("node:child_process");
    const child = spawn("true");
    await new Promise((resolve) => child.once("close", resolve));
    return child.pid ?? 0;
  }

  async function leaveBehind(test: Awaited<ReturnType<typeof start>>, pid: number) {
    const tx = test.manager.begin();
    await tx.write(await test.path("a"), bytes("half-done"));
    await tx.remove(await test.path("b"));
    const name = (await readdir(test.folder.path)).find((entry) => entry.startsWith(".plue-tx-"));
    const folder = join(test.folder.path, name ?? "");
    // The same journal, as a process with another pid would have written it.
    const journal = await test.folder.read(`${name}/journal.jsonl`);
    await writeFile(
      join(folder, "journal.jsonl"),
      journal.replace(/"pid":\d+/, `"pid":${pid}`),
    );
    return { folder, tx };
  }

  it("rolls back what a process that died left open", async () => {
    await using test = await start({ "a": "old", "b": "b" });
    await leaveBehind(test, await deadPid());
    assertEquals(await new FileTransactionManager({ root: test.folder.path }).recover(), 1);
    assertEquals(await test.folder.list(), ["a", "b"]);
    assertEquals(await test.folder.read("a"), "old");
  });

  it("leaves the transactions of processes that run", async () => {
    await using test = await start({ "a": "old", "b": "b" });
    const { tx } = await leaveBehind(test, process.pid);
    assertEquals(await new FileTransactionManager({ root: test.folder.path }).recover(), 0);
    assertEquals(await test.folder.read("a"), "half-done");
    await test.manager.rollback(tx);
  });

  it("clears away what was committed, and passes over a step that was not begun", async () => {
    await using test = await start({ "a": "new" });
    const pid = await deadPid();
    await mkdir(join(test.folder.path, ".plue-tx-x.done"));
    await writeJournal(join(test.folder.path, ".plue-tx-x.done"), { pid });
    const cut = join(test.folder.path, ".plue-tx-y");
    await mkdir(cut);
    await writeJournal(cut, { pid });
    await writeJournal(cut, { kind: "removed", path: "a", backup: "0.old" });
    await writeFile(join(cut, "journal.jsonl"), '{"kind":"rem', { flag: "a" });
    assertEquals(await test.manager.recover(), 1);
    assertEquals(await test.folder.list(), ["a"]);
  });

  it("does not follow a journal outside the workspace", async () => {
    await using test = await start({ "ws/.plue-tx-z/0.old": "evil" });
    const root = join(test.folder.path, "ws");
    const folder = join(root, ".plue-tx-z");
    await writeJournal(folder, { pid: await deadPid() });
    await writeJournal(folder, { kind: "removed", path: "../stolen", backup: "0.old" });
    await assertRejects(
      () => new FileTransactionManager({ root }).recover(),
      Error,
      "leads outside the workspace",
    );
    assertEquals((await test.folder.list()).includes("stolen"), false);
  });
});
