import { afterAll, describe, it } from "bun:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type SqliteCallStore, sqliteCallStore } from "@plue/tools/sqlite";
import { RUN, startProgram } from "../../support/program.ts";
import { describeCallStore, itSharesItsSpace } from "../../contract/call_store_contract.ts";

const folder = mkdtempSync(join(tmpdir(), "plue-sqlite-"));
const opened: SqliteCallStore[] = [];
let files = 0;
const newPath = (): string => join(folder, `${++files}.db`);

async function open(
  path = newPath(),
  options: Parameters<typeof sqliteCallStore>[1] = {},
): Promise<SqliteCallStore> {
  const store = await sqliteCallStore(path, options);
  opened.push(store);
  return store;
}

afterAll(() => {
  for (const store of opened) store.close();
  rmSync(folder, { recursive: true });
});

describeCallStore("sqliteCallStore()", {
  create: (clock, name) => open(join(folder, name), { clock }),
  open: (_, clock, name) => open(join(folder, name), { clock }),
});

/** Starts `entries.ts` with this runtime, on the store at a path. */
function start(action: "write" | "claim", path: string): ReturnType<typeof startProgram> {
  return startProgram(process.execPath, [
    ...RUN,
    join(import.meta.dirname, "entries.ts"),
    action,
    path,
  ]);
}

describe("sqliteCallStore()", () => {
  const value = new Uint8Array(1_000);

  it("does not block timers while it reads many large due entries", async () => {
    const store = await open();
    for (let at = 0; at < 20; at++) {
      await store.create(`task.ann.${at}`, new Uint8Array(70_000), { dueAt: at });
    }
    let ticks = 0;
    const timer = setInterval(() => ticks++, 0);
    const due = await store.due("task", 100, 50);
    clearInterval(timer);
    assertEquals(due.length, 20);
    assert(ticks > 5, `${ticks}`);
  });

  it("has all confirmed writes after its process is killed", async () => {
    const path = newPath();
    const { child, output, ended, printed } = start("write", path);
    await printed(/^50$/m);
    child.kill("SIGKILL");
    assertEquals((await ended).signal, "SIGKILL");
    const confirmed = Number(output.stdout.trim().split("\n").at(-1));
    const store = await open(path);
    for (let index = 0; index <= confirmed; index++) {
      assertEquals((await store.get(`e.a.${index}`))?.value.byteLength, 100, `${index}`);
    }
  }, 60_000);

  it("creates a key for only one of two processes", async () => {
    const path = newPath();
    const store = await open(path);
    const programs = [start("claim", path), start("claim", path)];
    await Promise.all(programs.map(({ printed }) => printed(/ready/)));
    await store.create("go", value);
    const won = await Promise.all(programs.map(({ printed }) => printed(/^\d+$/m)));
    assertEquals(won.reduce((sum, [own]) => sum + Number(own), 0), 200);
    await Promise.all(programs.map(({ ended }) => ended));
  }, 60_000);

  it("is readable by its user only", async () => {
    if (process.platform === "win32") return;
    const path = newPath();
    const store = await open(path);
    await store.create("a", value);
    for (const file of [path, `${path}-wal`]) {
      assertEquals((statSync(file).mode & 0o077).toString(8), "0", file);
    }
  });

  it("continues with an old file", async () => {
    const path = newPath();
    const store = await open(path);
    const revision = await store.create("a", value) ?? 0;
    store.close();
    const again = await open(path);
    assertEquals((await again.get("a"))?.revision, revision);
    assertEquals(await again.delete("a", revision), true);
    again.close();
    assertEquals((await (await open(path)).create("a", value) ?? 0) > revision, true);
  });

  it("rejects calls after close() with the reason", async () => {
    const store = await open();
    store.close();
    store.close();
    await assertRejects(() => store.get("a"), Error, "Cannot use the store of calls: it is closed");
  });

  it("rejects a file that is not a store, or damaged", async () => {
    const text = newPath();
    writeFileSync(text, "This is a text, and no database at all. ".repeat(100));
    await assertRejects(() => open(text), Error, "the file is damaged, or is not a store");
    const path = newPath();
    const store = await open(path);
    for (let index = 0; index < 100; index++) await store.create(`a.b.${index}`, value);
    store.close();
    truncateSync(path, 20_000);
    const error = await assertRejects(async () => {
      const damaged = await open(path);
      for (let index = 0; index < 100; index++) await damaged.get(`a.b.${index}`);
    }, Error);
    assertStringIncludes(error.message, "the file is damaged, or is not a store");
    await assertRejects(
      () => open(join(folder, "no", "folder.db")),
      Error,
      "Cannot open the store",
    );
  });

  it("uses the file even if its name is special to SQLite", async () => {
    const before = process.cwd();
    process.chdir(folder);
    try {
      for (const path of [":memory:", "file:memory.db?mode=memory", "file::memory:"]) {
        (await (await open(path)).create("a.b", value), opened.at(-1))?.close();
        assert(statSync(join(folder, path)).size > 0);
        assert(await (await open(path)).get("a.b") !== undefined, path);
      }
    } finally {
      process.chdir(before);
    }
    for (const path of [undefined, "", 7]) {
      await assertRejects(() => sqliteCallStore(path as string), TypeError, "its path must be");
    }
  });

  it("names the reason if another version has created its file", async () => {
    const path = newPath();
    (await open(path)).close();
    const { DatabaseSync } = await import("node:sqlite");
    const db = new DatabaseSync(path);
    db.exec("pragma user_version = 7");
    db.close();
    const { message } = await assertRejects(() => open(path), Error);
    assertEquals(message, `Cannot open the store "${path}": another version of plue created it`);
  });

  it("rejects when it is full, and accepts writes again after a deletion", async () => {
    const store = await open(newPath(), { maxBytes: 131_072, maxOwnerBytes: 131_072 });
    const fill = async (): Promise<void> => {
      for (let index = 0;; index++) await store.create(`a.b.${index}`, value);
    };
    await assertRejects(fill, Error, "the disk or the store is full");
    const first = await store.get("a.b.0");
    assertEquals(first?.value.byteLength, 1_000);
    for (let index = 0; index < 20; index++) {
      await store.delete(`a.b.${index}`, (await store.get(`a.b.${index}`))?.revision ?? 0);
    }
    assertEquals(typeof await store.create("a.b.0", value), "number");
  });

  itSharesItsSpace((options) => open(newPath(), options));

  it("waits while another process writes, and rejects when that takes too long", async () => {
    const path = newPath();
    const store = await open(path);
    const { DatabaseSync } = await import("node:sqlite");
    const other = new DatabaseSync(path);
    other.exec("begin immediate");
    const rejected = store.create("a", value);
    const { now } = performance;
    performance.now = () => now.call(performance) + 5_000;
    await assertRejects(() => rejected, Error, "another process has locked the file");
    performance.now = now;
    assertEquals(await store.get("a"), undefined);
    const patient = await open(path);
    const written = patient.create("a", value);
    other.exec("commit");
    assertEquals(typeof await written, "number");
    other.close();
  });

  it("deletes a bounded number of expired entries per write", async () => {
    const path = newPath();
    let now = 1_000;
    const store = await open(path, { clock: { timestamp: () => now } });
    const { DatabaseSync } = await import("node:sqlite");
    using other = new DatabaseSync(path);
    const row = "insert into entries(key, owner, value, expires) values";
    const rows = Array.from({ length: 3_000 }, (_, index) => `('a.b.${index}', 'b', x'00', 2000)`);
    other.exec(`${row} ${rows.join(", ")}`);
    now = 3_000;
    for (let write = 0; write < 256; write++) await store.create(`c.d.${write}`, value);
    const left = other.prepare("select count(*) as count from entries where expires = 2000").get();
    assertEquals(left?.["count"], 3_000 - 1_024);
  });

  it("does not block the event loop while many calls wait for another process", async () => {
    const path = newPath();
    const store = await open(path);
    const { DatabaseSync } = await import("node:sqlite");
    const other = new DatabaseSync(path);
    other.exec("begin immediate");
    const written = Array.from({ length: 100 }, (_, index) => store.create(`a.${index}`, value));
    // If a waiting write blocked the event loop, the writes would time out before these turns end.
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 5));
    other.exec("commit");
    const revisions = await Promise.all(written);
    assert(revisions.every((revision) => typeof revision === "number"));
    other.close();
  });
});
