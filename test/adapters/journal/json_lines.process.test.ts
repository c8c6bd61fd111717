import {
  assert,
  assertEquals,
  assertGreater,
  assertGreaterOrEqual,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import {
  journal,
  type JournalVerdict,
  jsonLines,
  readJournal,
  verifyJournal,
} from "@plue/tools/journal";
import { maybe } from "../../support/skip.ts";
import { recorded } from "./support.ts";

const withFull = maybe(fs.existsSync("/dev/full"), "this system has no /dev/full");

/** The arguments of this runtime before the name of a program. */
const RUN = "Deno" in globalThis
  ? ["run", "--allow-all", "--no-config", "--import-map=deno.json", "--node-modules-dir=manual"]
  : [];

let folder: string;
let count = 0;
const newFile = (): string => join(folder, `j${++count}.jsonl`);
const linesIn = (file: string): string[] => fs.readFileSync(file, "utf8").split("\n").slice(0, -1);
const verified = (file: string): Promise<JournalVerdict> =>
  verifyJournal(jsonLines(file).pages("oldest first"));
const opened = (file: string): ReturnType<typeof journal> =>
  journal({ sink: jsonLines(file), onFailure: "refuse-calls" });

function start(file: string) {
  const program = join(import.meta.dirname, "journal_process.ts");
  const child = spawn(process.execPath, [...RUN, program, file], {
    cwd: join(import.meta.dirname, "../../.."),
    env: { ...process.env, NODE_OPTIONS: "", NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  return { child, output: child.stdout.setEncoding("utf8") };
}

describe("jsonLines()", () => {
  beforeAll(() => {
    folder = fs.mkdtempSync(join(tmpdir(), "plue-journal-"));
  });
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  it("appends lines that can be verified, in a file of its user, and continues them later", async () => {
    const file = newFile();
    for (let times = 0; times < 3; times++) {
      const { call, journal: kept } = recorded([{ name: "ping" }], { sink: jsonLines(file) });
      await call("ping");
      await kept.close();
    }
    const { ok, records, interrupted } = await verified(file);
    assertEquals([ok, records, interrupted], [true, 9, []]);
    for (const path of [file, `${file}.lock`]) assertEquals(fs.statSync(path).mode & 0o777, 0o600);
  });

  it("continues a journal whose last line is longer than the first block that is read", async () => {
    const file = newFile();
    const long = { sink: jsonLines(file), arguments: "full" } as const;
    const { call, journal: kept } = recorded([{ name: "ping" }], long);
    await call("ping", { text: "x".repeat(3_000_000) });
    await kept.flush();
    // A killed process leaves a file without the final record, and with an incomplete line.
    const bytes = fs.readFileSync(file, "utf8");
    await kept.close();
    fs.writeFileSync(file, `${bytes}{"previous":"abc`);
    await opened(file).close();
    const { ok, records, interrupted } = await verified(file);
    assertEquals([ok, records, interrupted], [true, 4, [2]]);
  });

  it("begins the next file when one is full, and on the next day, and reads all of them", async () => {
    const file = newFile();
    const options = { sink: jsonLines(file, { maxBytes: 2_000 }), arguments: "full" } as const;
    const { dispatcher, journal: kept } = recorded([{ name: "ping" }], options);
    for (let at = 0; at < 9; at++) {
      await dispatcher.dispatch({ name: "ping", callId: `c${at}`, arguments: { at } });
      await kept.flush();
    }
    await kept.close();
    const { length } = fs.readdirSync(folder).filter((name) =>
      name.startsWith(`${basename(file)}.`)
    );
    assertGreater(length, 2);
    const ids = await Array.fromAsync(readJournal(jsonLines(file)), ({ callId }) => callId);
    assertEquals(ids.filter((id) => id !== undefined).join(" "), "c8 c7 c6 c5 c4 c3 c2 c1 c0");
    const [one] = await Array.fromAsync(readJournal(jsonLines(file), { callId: "c1" }));
    assertEquals(one?.arguments, { at: 1 });
    assertEquals((await verified(file)).records, 11);

    const daily = newFile();
    for (const isDaily of [false, true]) {
      await opened(daily).close();
      fs.utimesSync(daily, 1, 1);
      const next = journal({
        sink: jsonLines(daily, { daily: isDaily }),
        onFailure: "refuse-calls",
      });
      await next.close();
      assertEquals(fs.existsSync(`${daily}.1`), isDaily);
    }
    // The lock is not a part of the journal.
    assertEquals((await verified(daily)).records, 8);
  });

  it("rejects a second journal in the same process and in another process", async () => {
    const file = newFile();
    const first = opened(file);
    await first.flush();
    const second = opened(file);
    await assertRejects(() => second.flush(), TypeError, `another journal writes ${file}`);
    const { child, output } = start(file);
    const [text] = await once(output, "data");
    assertMatch(String(text), /^refused: Cannot keep a journal in a file: another journal writes/);
    await once(child, "close");
    await first.close();
    await second.close();
    const { ok, records, interrupted } = await verified(file);
    assertEquals([ok, records, interrupted], [true, 4, []]);
  }, 60_000);

  it("loses no synced record when its process is killed, and names the cut line", async () => {
    const file = newFile();
    const { child, output } = start(file);
    let synced = 0;
    output.on("data", (text: string) => {
      synced = Number(text.trim().split("\n").at(-1));
      if (synced > 2_000) child.kill("SIGKILL");
    });
    await once(child, "close");
    const verdict = await verified(file);
    const whole = linesIn(file).length;
    assertGreater(synced, 2_000);
    assertGreaterOrEqual(whole, synced);
    if (verdict.ok) assertEquals(verdict.interrupted, [whole]);
    else assertEquals(verdict.problem?.why, "it is incomplete: its writer was interrupted");
    // The system has released the lock of the killed process.
    await opened(file).close();
    const after = await verified(file);
    assertEquals([after.ok, after.interrupted], [true, [whole]]);
  }, 60_000);

  it("reads no line that is longer than 64 MiB", async () => {
    const file = newFile();
    // A file without blocks on the disk.
    fs.writeFileSync(file, "");
    fs.truncateSync(file, 2 ** 26 + 2 ** 21);
    const reading = Array.fromAsync(readJournal(jsonLines(file)));
    await assertRejects(() => reading, TypeError, `a line of ${file} is too long`);
    assertEquals((await verified(file)).problem?.why, "it is too long");
  }, 60_000);

  it("writes a record without its values if its line would be longer", async () => {
    const file = newFile();
    const options = { sink: jsonLines(file), arguments: "full" } as const;
    const { call, journal: kept } = recorded([{ name: "ping" }], options);
    await call("ping", { text: "\0".repeat(4_000_000) });
    await kept.close();
    const [, record] = await Array.fromAsync(readJournal(jsonLines(file)));
    assertEquals([record?.tool, record?.arguments], ["ping", undefined]);
  }, 60_000);

  it("stops writing a file that another program has changed", async () => {
    const file = newFile();
    const { call, journal: kept } = recorded([{ name: "ping" }], { sink: jsonLines(file) });
    await call("ping");
    await kept.flush();
    for (
      const change of [() => fs.appendFileSync(file, "a line\n"), () => fs.truncateSync(file, 100)]
    ) {
      change();
      await call("ping");
      await assertRejects(() => kept.flush(), TypeError, "another program changed");
    }
    await assertRejects(() => kept.close(), TypeError, "another program changed");
  });

  it("changes no byte of a file that is not a journal", async () => {
    for (const text of ["a note without an end", "a note\n", "a note\nand another", '{"a":1}\n']) {
      const file = newFile();
      fs.writeFileSync(file, text);
      const kept = opened(file);
      await assertRejects(() => kept.flush(), TypeError, "Cannot");
      await assertRejects(() => kept.flush(), TypeError, "Cannot");
      await kept.close().catch(() => {});
      assertEquals(fs.readFileSync(file, "utf8"), text);
    }
  });

  for (const onFailure of ["refuse-calls", "drop-and-count"] as const) {
    withFull(`reports a full disk, and then follows the option ${onFailure}`, async () => {
      const file = newFile();
      fs.symlinkSync("/dev/full", file);
      const { call, journal: kept } = recorded([{ name: "ping", execute: () => "pong" }], {
        ...{ sink: jsonLines(file), onFailure },
      });
      await assertRejects(() => kept.flush());
      assertMatch(kept.stats().failure ?? "", /ENOSPC|No space/);
      const result = await call("ping");
      assertEquals(result.ok, onFailure === "drop-and-count");
      if (!result.ok) assertEquals(result.error.code, "unavailable");
      await kept.close().catch(() => {});
    });
  }

  it("rejects a path and options that are invalid, and a folder that does not exist", async () => {
    assertThrows(() => jsonLines(""), TypeError, "the path");
    // @ts-expect-error There is no such option.
    assertThrows(() => jsonLines("a.jsonl", { rotate: true }), TypeError, "rotate");
    const kept = opened(join(folder, "none", "a.jsonl"));
    const error = await assertRejects(() => kept.flush());
    assert(error instanceof Error && error.message.includes("ENOENT"));
  });
});
