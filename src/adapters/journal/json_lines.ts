/** A journal in files of JSON lines, on Node, Bun and Deno. */

import type { FileHandle } from "node:fs/promises";
import * as check from "../../tool/mod.ts";
import { attemptOr, fail, systemClock } from "../../tool/mod.ts";
import { type JournalSink, MAX_LINE } from "./sink.ts";

/** Options for {@linkcode jsonLines}. */
export interface JsonLinesOptions {
  /** False if the system decides when records are written to the disk. @default {true} */
  readonly fsync?: boolean | undefined;
  /** The size from which a new file begins, in bytes. @default {268_435_456} */
  readonly maxBytes?: number | undefined;
  /** False to continue a file after the end of its day, in UTC. @default {true} */
  readonly daily?: boolean | undefined;
}

const ACTION = "keep a journal in a file";
const CHECKS = { fsync: check.checkFlag, maxBytes: check.numberFrom(1), daily: check.checkFlag };
const DEFAULTS = { fsync: true, maxBytes: 2 ** 28, daily: true };
const PAGE_BYTES = 1_048_576;
const DAY_MS = 86_400_000;

/**
 * Stores a journal in a file, to which lines are only appended. When it is full, and each day, the
 * next file begins: `calls.jsonl.1`, `calls.jsonl.2`. Other users cannot read new files. One
 * process writes a journal: it holds a lock on `calls.jsonl.lock`, which the system releases when
 * the process ends.
 *
 * @param path The path of the first file. Its folder must exist.
 * @throws {TypeError | RangeError} If the path or an option is invalid.
 */
export function jsonLines(path: string, options: JsonLinesOptions = {}): JournalSink {
  check.checkWord(ACTION, path, "the path");
  return new JournalFiles(path, { ...DEFAULTS, ...check.readFields(ACTION, options, CHECKS) });
}

class JournalFiles implements JournalSink {
  /** Each character has at most three bytes. */
  readonly maxLineLength: number = MAX_LINE / 3;
  readonly #path: string;
  readonly #options: typeof DEFAULTS;
  #unlock: (() => void) | undefined;
  #file: FileHandle | undefined;
  #size = 0;
  /** True if an incomplete line may follow them, after a full disk or a killed process. */
  #mayBeTorn = false;

  constructor(path: string, options: typeof DEFAULTS) {
    this.#path = path;
    this.#options = options;
  }

  async open(): Promise<void> {
    await this.close();
    this.#unlock = await lock(this.#path);
    const path = (await filesOf(this.#path)).at(-1) ?? this.#path;
    this.#file = await node("node:fs/promises").open(path, "a+", 0o600);
    const { value: page = Buffer.of() } = await pagesOf(path).next();
    const rest = page.subarray(page.lastIndexOf(10) + 1);
    this.#mayBeTorn = rest.length > 0;
    if (this.#mayBeTorn && rest[0] !== 123) fail(ACTION, `${path} is not a journal`);
    this.#size = (await this.#file.stat()).size - rest.length;
  }

  async append(lines: readonly string[]): Promise<void> {
    const { fsync, maxBytes, daily } = this.#options;
    let file = this.#file ?? fail(ACTION, `${this.#path} is closed`);
    const { size, mtimeMs, nlink } = await file.stat();
    if (this.#mayBeTorn) await file.truncate(this.#size);
    else if (size !== this.#size || nlink === 0) {
      fail(ACTION, `another program changed ${this.#path}`);
    }
    const isOld = daily && dayOf(mtimeMs) !== dayOf(systemClock.timestamp());
    if (this.#size > 0 && (isOld || this.#size >= maxBytes)) file = await this.#rotate(file);
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    this.#mayBeTorn = true;
    await file.appendFile(bytes);
    if (fsync) await file.datasync();
    this.#mayBeTorn = false;
    this.#size += bytes.length;
  }

  async #rotate(full: FileHandle): Promise<FileHandle> {
    const last = (await filesOf(this.#path)).at(-1)?.slice(this.#path.length + 1);
    const path = `${this.#path}.${Number(last) + 1}`;
    this.#file = await node("node:fs/promises").open(path, "ax+", 0o600);
    this.#size = 0;
    await full.close();
    return this.#file;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#unlock?.();
    this.#file = this.#unlock = undefined;
  }

  async *pages(order: "newest first" | "oldest first"): AsyncGenerator<Buffer> {
    const paths = await filesOf(this.#path);
    if (paths.length === 0) fail("read a journal", `there is no file ${this.#path}`);
    const isReversed = order === "newest first";
    for (const path of isReversed ? paths.reverse() : paths) {
      const options = { highWaterMark: PAGE_BYTES };
      yield* isReversed ? pagesOf(path) : node("node:fs").createReadStream(path, options);
    }
  }
}

/** Loads a module of Node when it is used: a bundle for Workers must not import one. */
const node: typeof process.getBuiltinModule = (name: string) =>
  globalThis.process.getBuiltinModule(name);

/** Locks a SQLite file, because Node cannot lock files. Returns the function that unlocks it. */
async function lock(path: string): Promise<() => void> {
  const { DatabaseSync } = node("node:sqlite") ??
    fail(ACTION, "this runtime has no node:sqlite; Node has it from version 22.13 on");
  const file = node("node:path").resolve(`${path}.lock`);
  // An existing file must not be opened: closing it would release a lock of this process.
  await node("node:fs/promises").writeFile(file, "", { flag: "wx", mode: 0o600 }).catch((error) => {
    if (error.code !== "EEXIST") throw error;
  });
  const db = new DatabaseSync(file);
  try {
    db.exec("pragma busy_timeout = 0; begin exclusive");
  } catch (cause) {
    attemptOr(undefined, () => db.close());
    fail(ACTION, `another journal writes ${path}, or its lock cannot be opened`, cause);
  }
  return () => db.close();
}

async function filesOf(path: string): Promise<string[]> {
  const { basename, dirname } = node("node:path");
  const name = basename(path);
  const pathOf = (base: string, number: number): string =>
    number === 0 ? base : `${base}.${number}`;
  return (await node("node:fs/promises").readdir(dirname(path)))
    .map((file) => [file, Number(file.slice(name.length + 1))] as const)
    .filter(([file, number]) => file === pathOf(name, number))
    .sort(([, a], [, b]) => a - b)
    .map(([, number]) => pathOf(path, number));
}

/** Reads a file from its end. Each page begins with a line. */
async function* pagesOf(path: string): AsyncGenerator<Buffer> {
  const { open, stat } = node("node:fs/promises");
  let { size: end } = await stat(path);
  for (let length = PAGE_BYTES; end > 0;) {
    const start = Math.max(0, end - length);
    // Opened for one page only, because a generator may never be read to its end.
    const file = await open(path, "r");
    const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start)
      .finally(() => file.close());
    const page = buffer.subarray(0, bytesRead);
    const first = start === 0 ? 0 : page.indexOf(10) + 1;
    // A line may be longer than a page.
    length = start > 0 && first % page.length === 0 ? length * 4 : PAGE_BYTES;
    if (length > MAX_LINE) fail("read a journal", `a line of ${path} is too long`);
    if (length > PAGE_BYTES) continue;
    yield page.subarray(first);
    end = start + first;
  }
}

function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}
