import { spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { maybe } from "../../test/support/skip.ts";
import { startProgram } from "../testing.ts";
import { beginJournal, type JournalEntry, journalsFolder, writeJournal } from "./journal.ts";
import { startTime } from "./marked_processes.ts";
import { resolveInside } from "./paths.ts";
import { Refusal } from "./refusal.ts";
import { temporaryFolder } from "./testing.ts";
import { type FileTransaction, fileTransaction, FileTransactionManager } from "./transactions.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

async function start(files: Record<string, string> = {}) {
  const folder = await temporaryFolder(files);
  const manager = new FileTransactionManager({ root: folder.path }, folder.journals);
  const path = (name: string) => resolveInside(folder.path, name, { followLast: false });
  const abandoned: FileTransaction[] = [];
  return {
    folder,
    manager,
    path,
    /** Transactions that stand for those of a process that died. They still hold folders open. */
    abandoned,
    async [Symbol.asyncDispose]() {
      for (const tx of abandoned) await manager.rollback(tx).catch(() => undefined);
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Whether this process may mount a file system of its own. */
function canMount(): { readonly mounts: boolean; readonly why: string } {
  const why = "only root on Linux may mount a small disk";
  if (process.platform !== "linux" || process.getuid?.() !== 0) return { mounts: false, why };
  const folder = mkdtempSync(join(tmpdir(), "plue-disk-"));
  const mounts = spawnSync("mount", ["-t", "tmpfs", "tmpfs", folder]).status === 0;
  if (mounts) spawnSync("umount", [folder]);
  rmdirSync(folder);
  return { mounts, why };
}

/** A disk of a few pages at this path, which can be filled. */
async function smallDisk(path: string) {
  await mkdir(path, { mode: 0o700 });
  const options = "size=64k,mode=0700";
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path]);
  if (mounted.status !== 0) throw new Error(String(mounted.stderr));
  return {
    async fill() {
      const filler = join(path, "filler");
      const full = await assertRejects(() => writeFile(filler, new Uint8Array(131_072)), Error);
      assertStringIncludes(full.message, "ENOSPC");
    },
    [Symbol.dispose]() {
      spawnSync("umount", ["-l", path]);
    },
  };
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
    const manager = new FileTransactionManager({ root }, test.folder.journals);
    const path = await resolveInside(root, "sub/new/file");
    await rename(join(root, "sub"), join(root, "old"));
    await symlink("../outside", join(root, "sub"));
    const tx = manager.begin();
    await assertRejects(
      () => tx.makeFolders(root, join(path.absolute, ".."), path.shown),
      Refusal,
      "it was moved meanwhile",
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

  type Test = Awaited<ReturnType<typeof start>>;

  const recover = (test: Test, root = test.folder.path) =>
    new FileTransactionManager({ root }, test.folder.journals).recover();

  /** A transaction with a change, a deletion and a new folder, as a process with that pid left it. */
  async function leaveBehind(test: Test, pid: number, started = startTime(pid)) {
    const tx = test.manager.begin();
    test.abandoned.push(tx);
    await tx.write(await test.path("a"), bytes("half-done"));
    await tx.remove(await test.path("d/b"));
    const [name = ""] = await readdir(test.folder.journals);
    const journal = join(test.folder.journals, name);
    const text = await readFile(journal, "utf8");
    await writeFile(
      journal,
      text.replace(/"pid":\d+,"started":\d+/, `"pid":${pid},"started":${started}`),
    );
    return { tx, journal, folder: join(test.folder.path, `.plue-tx-${tx.id}`) };
  }

  /** A transaction that died, with these steps and these backups. */
  async function left(
    test: Test,
    root: string,
    entries: readonly JournalEntry[],
    backups: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const folder = ".plue-tx-dead";
    const journal = await beginJournal(test.folder.journals, {
      pid: await deadPid(),
      started: 0,
      root,
      folder,
    });
    for (const entry of entries) await writeJournal(journal, entry);
    await mkdir(join(root, folder));
    for (const [name, text] of Object.entries(backups)) {
      await writeFile(join(root, folder, name), text);
    }
    return join(root, folder);
  }

  async function inodeOf(path: string): Promise<string> {
    const { dev, ino } = await lstat(path, { bigint: true });
    return `${dev}:${ino}`;
  }

  it("rolls back what a process that died left open", async () => {
    await using test = await start({ "a": "old", "d/b": "b" });
    await leaveBehind(test, await deadPid());
    assertEquals(await recover(test), 1);
    assertEquals(await test.folder.list(), ["a", "d/", "d/b"]);
    assertEquals(await test.folder.read("a"), "old");
    assertEquals(await readdir(test.folder.journals), []);
  });

  it("leaves the transactions of processes that run, and those of other workspaces", async () => {
    await using test = await start({ "a": "old", "d/b": "b" });
    const { tx } = await leaveBehind(test, process.pid);
    assertEquals(await recover(test), 0);
    await using other = await temporaryFolder();
    assertEquals(await recover(test, other.path), 0);
    assertEquals(await test.folder.read("a"), "half-done");
    await test.manager.rollback(tx);
    assertEquals(await test.folder.read("a"), "old");
  });

  const isLinux = process.platform === "linux";
  maybe(isLinux, "only Linux says when processes were started")(
    "knows a process that runs from another one that got its number",
    async () => {
      await using test = await start({ "a": "old", "d/b": "b" });
      await using other = startProgram("sh", ["-c", "echo started; exec sleep 1000"]);
      await other.printed(/started/);
      const { pid = 0 } = other.child;
      const { journal } = await leaveBehind(test, pid);
      assertEquals(await recover(test), 0);
      assertEquals(await test.folder.read("a"), "half-done");
      const text = await readFile(journal, "utf8");
      await writeFile(journal, text.replace(/"started":\d+/, '"started":1'));
      assertEquals(await recover(test), 1);
      assertEquals(await test.folder.read("a"), "old");
    },
  );

  it("clears away what was committed, and passes over a step that was not begun", async () => {
    await using test = await start({ "a": "old", "d/b": "b" });
    const { journal } = await leaveBehind(test, await deadPid());
    await writeJournal(journal, { kind: "committed" });
    assertEquals(await recover(test), 0);
    assertEquals(await test.folder.list(), ["a", "d/"]);
    assertEquals(await test.folder.read("a"), "half-done");

    await left(test, test.folder.path, []);
    const [cut = ""] = await readdir(test.folder.journals);
    await writeFile(join(test.folder.journals, cut), '{"kind":"rem', { flag: "a" });
    assertEquals(await recover(test), 1);
    assertEquals(await test.folder.list(), ["a", "d/"]);
  });

  it("forgets a transaction whose folder somebody has removed", async () => {
    await using test = await start({ "a": "old", "d/b": "b" });
    const { folder } = await leaveBehind(test, await deadPid());
    await rm(folder, { recursive: true });
    assertEquals(await recover(test), 0);
    assertEquals(await readdir(test.folder.journals), []);
  });

  it("believes no journal that lies in the workspace", async () => {
    const journal = `{"pid":${await deadPid()}}\n` +
      '{"kind":"removed","path":".git/hooks/pre-commit","backup":"0.old"}\n';
    await using test = await start({
      ".git/hooks/a": "",
      ".plue-tx-x/0.old": "evil",
      ".plue-tx-x/journal.jsonl": journal,
    });
    const before = await test.folder.list();
    assertEquals(await recover(test), 0);
    assertEquals(await test.folder.list(), before);
  });

  it("follows no link that came into the workspace meanwhile, whatever the step", async () => {
    const files = { "ws/a": "a", "outside/key": "key", "outside/empty/x": "x" };
    const evil = { "0.old": "evil" };
    const rows: [string, (root: string) => Promise<JournalEntry>][] = [
      ["a removed file", async (root) => ({
        kind: "removed",
        path: "link/new",
        before: await inodeOf(join(root, ".plue-tx-dead/0.old")),
        backup: "0.old",
      })],
      ["a removed file below a folder that is gone", async (root) => ({
        kind: "removed",
        path: "link/gone/new",
        before: await inodeOf(join(root, ".plue-tx-dead/0.old")),
        backup: "0.old",
      })],
      ["a changed file", async (root) => ({
        kind: "placed",
        path: "link/key",
        before: "0:0",
        after: await inodeOf(join(root, "link/key")),
        backup: "0.old",
      })],
      ["a new file", async (root) => ({
        kind: "placed",
        path: "link/key",
        before: null,
        after: await inodeOf(join(root, "link/key")),
        backup: "0.old",
      })],
      ["a folder", () => Promise.resolve({ kind: "folder", path: "link/empty" })],
      ["a path upwards", async (root) => ({
        kind: "removed",
        path: "../outside/new",
        before: await inodeOf(join(root, ".plue-tx-dead/0.old")),
        backup: "0.old",
      })],
    ];
    for (const [what, entry] of rows) {
      await using test = await start(files);
      const root = join(test.folder.path, "ws");
      await symlink("../outside", join(root, "link"));
      await rm(join(test.folder.path, "outside/empty/x"));
      await left(test, root, [], evil);
      const [name = ""] = await readdir(test.folder.journals);
      await writeJournal(join(test.folder.journals, name), await entry(root));
      const before = await test.folder.list();
      await assertRejects(() => recover(test, root), Error, "its folder leads elsewhere", what);
      assertEquals(await test.folder.list(), before, what);
      assertEquals(await test.folder.read("outside/key"), "key", what);
    }
  });

  it("takes no backup from a folder that was swapped for a link, nor one that was swapped", async () => {
    await using test = await start({ "ws/a": "a", "outside/0.old": "evil" });
    const root = join(test.folder.path, "ws");
    const before = await inodeOf(join(test.folder.path, "outside/0.old"));
    const gone = { kind: "removed", path: "b", before, backup: "0.old" } as const;
    const folder = await left(test, root, [gone], { "0.old": "another" });
    await assertRejects(() => recover(test, root), Error, "its backup was changed");
    await rm(folder, { recursive: true });
    await symlink("../outside", folder);
    await assertRejects(() => recover(test, root), Error, "it leads elsewhere");
    assertEquals(await test.folder.list(), [
      "outside/",
      "outside/0.old",
      "ws/",
      "ws/.plue-tx-dead",
      "ws/a",
    ]);
  });

  it("removes journals that were never begun, whoever's they are", async () => {
    await using test = await start({ "a": "a" });
    await mkdir(test.folder.journals, { mode: 0o700 });
    for (
      const [name, text] of [["1.jsonl", ""], ["2.jsonl", '{"pid":1,"ro'], ["3.new", '{"pid":']]
    ) {
      await writeFile(join(test.folder.journals, name ?? ""), text ?? "");
    }
    assertEquals(await recover(test), 0);
    assertEquals(await readdir(test.folder.journals), []);
  });

  it("names a journal that is damaged", async () => {
    await using test = await start({ "a": "a" });
    await left(test, test.folder.path, []);
    const [name = ""] = await readdir(test.folder.journals);
    await writeFile(join(test.folder.journals, name), '{"kind":"pla{}\n', { flag: "a" });
    await assertRejects(() => recover(test), Refusal, `"${name}" is damaged`);
  });

  const { mounts, why } = canMount();
  maybe(mounts, why)("leaves nothing of a transaction that a full disk prevented", async () => {
    await using test = await start({ "a": "old" });
    using disk = await smallDisk(test.folder.journals);
    await disk.fill();
    const tx = test.manager.begin();
    const refused = await assertRejects(
      async () => tx.write(await test.path("a"), bytes("new")),
      Refusal,
      "the disk is full",
    );
    assertEquals(refused.code, "unavailable");
    await test.manager.rollback(tx);
    assertEquals(await readdir(test.folder.journals), ["filler"]);
    assertEquals([await test.folder.list(), await test.folder.read("a")], [["a"], "old"]);
  });

  maybe(mounts, why)("leaves no half of a line in the journal when the disk is full", async () => {
    const deep = `${"d".repeat(200)}/`.repeat(15);
    await using test = await start({ "a": "old", [`${deep}b`]: "b" });
    using disk = await smallDisk(test.folder.journals);
    const tx = test.manager.begin();
    await tx.write(await test.path("a"), bytes("1"));
    // The journal's first page holds one long line, and there is no second one.
    await tx.write(await test.path(`${deep}b`), bytes("1"));
    await disk.fill();
    await assertRejects(
      async () => tx.write(await test.path(`${deep}b`), bytes("2")),
      Refusal,
      "the disk is full",
    );
    await tx.write(await test.path("a"), bytes("2"));
    const names = (await readdir(test.folder.journals)).filter((name) => name !== "filler");
    const text = await readFile(join(test.folder.journals, names[0] ?? ""), "utf8");
    const kinds = text.trim().split("\n").map((line) => JSON.parse(line).kind);
    assertEquals(kinds, [undefined, "placed", "placed", "placed"]);
    await test.manager.rollback(tx);
    assertEquals([await test.folder.read("a"), await test.folder.read(`${deep}b`)], ["old", "b"]);
    assertEquals(await readdir(test.folder.journals), ["filler"]);
  });

  it("uses no folder for journals that others may write to", async () => {
    await using test = await start({ "a": "old" });
    await mkdir(test.folder.journals);
    await chmod(test.folder.journals, 0o770);
    const tx = test.manager.begin();
    const path = await test.path("a");
    const refused = await assertRejects(() => tx.write(path, bytes("new")), Refusal, "mode 0700");
    assertEquals(refused.code, "unavailable");
    await test.manager.rollback(tx);
    assertEquals(await test.folder.read("a"), "old");
    await writeFile(join(test.folder.journals, "a.jsonl"), "{}\n");
    await assertRejects(() => recover(test), Refusal, "mode 0700");
  });

  it("uses no link to a folder for journals", async () => {
    await using test = await start({ "a": "old" });
    await mkdir(`${test.folder.journals}/real`, { recursive: true, mode: 0o700 });
    const link = join(test.folder.journals, "link");
    await symlink("real", link);
    const tx = new FileTransactionManager({ root: test.folder.path }, link).begin();
    const path = await test.path("a");
    await assertRejects(() => tx.write(path, bytes("new")), Refusal, "mode 0700");
  });

  maybe(process.getuid?.() === 0, "only root can give a folder to another user")(
    "uses no folder of another user for journals",
    async () => {
      await using test = await start({ "a": "old" });
      await mkdir(test.folder.journals, { mode: 0o700 });
      await chown(test.folder.journals, 12_345, 12_345);
      const tx = test.manager.begin();
      const path = await test.path("a");
      await assertRejects(() => tx.write(path, bytes("new")), Refusal, "mode 0700");
      await writeFile(join(test.folder.journals, "a.jsonl"), "{}\n");
      await assertRejects(() => recover(test), Refusal, "mode 0700");
    },
  );
});

describe("journalsFolder()", () => {
  it("lies where the user's programs keep their state, or where it is told to", () => {
    for (
      const [environment, folder] of [
        [{ HOME: "/home/a" }, "/home/a/.local/state/plue/.plue-tx-journals"],
        [{ HOME: "/home/a", XDG_STATE_HOME: "/s" }, "/s/plue/.plue-tx-journals"],
        [{ HOME: "/home/a", XDG_STATE_HOME: "s" }, "/home/a/.local/state/plue/.plue-tx-journals"],
        [{ HOME: "/home/a", PLUE_STATE: "/p" }, "/p/.plue-tx-journals"],
      ] as const
    ) {
      assertEquals(journalsFolder(environment), folder);
    }
  });
});
