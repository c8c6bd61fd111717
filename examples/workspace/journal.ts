/**
 * The journal of a transaction. Each change of the workspace is written to it before it is made, so
 * that the next process can roll back a transaction whose process died.
 *
 * Journals lie in a folder of the user's own, outside the workspace. The files of a workspace may
 * come from others (a cloned repository), and a forged journal could "restore" files that were
 * never there, such as a hook in `.git`.
 *
 * @module
 */

import process from "node:process";
import { lstat, mkdir, open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { TRANSACTION_PREFIX } from "./paths.ts";
import { errorCode, Refusal } from "./refusal.ts";

/** One step. Paths are relative to the workspace, backups to the transaction's folder. */
export type JournalEntry =
  /** A file was put at `path`; `before` and `after` are inode numbers. */
  | {
    readonly kind: "placed";
    readonly path: string;
    readonly before: string | null;
    readonly after: string;
    readonly backup: string;
  }
  /** The file at `path`, with the inode number `before`, was moved to the backup. */
  | {
    readonly kind: "removed";
    readonly path: string;
    readonly before: string;
    readonly backup: string;
  }
  /** A folder was made. */
  | { readonly kind: "folder"; readonly path: string };

/** The first line of a journal: the process that wrote it, and the folders it is about. */
export interface JournalHead {
  readonly pid: number;
  /** When the process was started; 0 if the system does not say. */
  readonly started: number;
  /** The workspace's real path. */
  readonly root: string;
  /** The name of the transaction's folder, in the root. */
  readonly folder: string;
}

/** The last line of a committed transaction: only its folder remains to be removed. */
export interface JournalEnd {
  readonly kind: "committed";
}

/** A journal that was read. */
export interface Journal {
  readonly head: JournalHead;
  readonly isCommitted: boolean;
  readonly entries: readonly JournalEntry[];
}

const EXTENSION = ".jsonl";
/** Of a journal whose head is being written. Nothing was begun under it. */
const UNFINISHED = ".new";

/**
 * The default folder of journals: `PLUE_STATE`, or the system's folder for the state of a user's
 * programs. Its name keeps the file tools out, also when the workspace is the user's home.
 */
export function journalsFolder(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const { PLUE_STATE, XDG_STATE_HOME, LOCALAPPDATA, HOME } = environment;
  const state = PLUE_STATE
    ? resolve(PLUE_STATE)
    : XDG_STATE_HOME && isAbsolute(XDG_STATE_HOME)
    ? join(XDG_STATE_HOME, "plue")
    : process.platform === "win32" && LOCALAPPDATA
    ? join(LOCALAPPDATA, "plue")
    : join(HOME || homedir(), ".local", "state", "plue");
  return join(state, `${TRANSACTION_PREFIX}journals`);
}

/**
 * Begins a journal.
 *
 * @param folder Where journals lie; made if it is missing.
 * @returns The journal's file.
 * @throws {Refusal} If the folder cannot be made, or others may write to it.
 */
export async function beginJournal(folder: string, head: JournalHead): Promise<string> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const why = errorCode(cause) ?? "an unknown error";
    throw unusable(`their folder cannot be made (${why}); PLUE_STATE can name another`, cause);
  }
  await assertPrivate(folder);
  const name = join(folder, crypto.randomUUID());
  try {
    await writeJournal(name + UNFINISHED, head);
    await rename(name + UNFINISHED, name + EXTENSION);
  } catch (error) {
    await unlink(name + UNFINISHED).catch(() => undefined);
    throw error;
  }
  return name + EXTENSION;
}

/** Appends a line and waits until the disk has it. */
export async function writeJournal(
  file: string,
  line: JournalHead | JournalEntry | JournalEnd,
): Promise<void> {
  const handle = await open(file, "a", 0o600);
  try {
    const { size } = await handle.stat();
    try {
      await handle.writeFile(`${JSON.stringify(line)}\n`);
      await handle.sync();
    } catch (error) {
      // On a full disk half of the line may be there, and the next line would be added to it.
      await handle.truncate(size);
      throw error;
    }
  } finally {
    await handle.close();
  }
}

/** Removes the journal of a transaction that is done. */
export async function endJournal(file: string): Promise<void> {
  await unlink(file);
}

/**
 * The journals that were begun for a workspace and have not been ended. Those without a head, of
 * transactions that were never begun, are removed.
 *
 * @throws {Refusal} If others may write to the folder, or a journal is damaged.
 */
export async function readJournals(
  folder: string,
  root: string,
): Promise<ReadonlyMap<string, Journal>> {
  const found = new Map<string, Journal>();
  const names = await readdir(folder).catch(unlessGone) ?? [];
  if (names.length > 0) await assertPrivate(folder);
  for (const name of names.sort()) {
    if (!name.endsWith(EXTENSION) && !name.endsWith(UNFINISHED)) continue;
    const file = join(folder, name);
    const text = await readFile(file, "utf8").catch(unlessGone);
    // An incomplete last line belongs to a step that was not begun.
    const lines = (text ?? "").split("\n").slice(0, -1);
    if (name.endsWith(UNFINISHED) || lines.length === 0) {
      await unlink(file).catch(unlessGone);
      continue;
    }
    const journal = parseJournal(lines, name);
    if (journal.head.root === root) found.set(file, journal);
  }
  return found;
}

function parseJournal(lines: readonly string[], name: string): Journal {
  try {
    const [head, ...steps] = lines.map((line) => JSON.parse(line)) as [
      JournalHead,
      ...(JournalEntry | JournalEnd)[],
    ];
    const entries = steps.filter((step) => step.kind !== "committed");
    return { head, entries, isCommitted: entries.length < steps.length };
  } catch (cause) {
    throw unusable(`"${name}" is damaged; look at its transaction's folder, then remove it`, cause);
  }
}

async function assertPrivate(folder: string): Promise<void> {
  const stats = await lstat(folder);
  // Windows has no such bits; there, only the user can write to the user's profile.
  const isOpen = process.platform !== "win32" &&
    ((stats.mode & 0o077) !== 0 || stats.uid !== process.getuid?.());
  if (stats.isDirectory() && !isOpen) return;
  throw unusable("their folder must be a folder of the user's alone (mode 0700)");
}

function unusable(why: string, cause?: unknown): Refusal {
  return new Refusal("unavailable", `Cannot keep journals of transactions: ${why}`, { cause });
}

function unlessGone(error: unknown): undefined {
  if (errorCode(error) !== "ENOENT") throw error;
}
