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
import type { BigIntStats } from "node:fs";
import {
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rmdir,
  unlink,
} from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { isWithin, TRANSACTION_PREFIX } from "./paths.ts";
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
  const file = join(folder, `${crypto.randomUUID()}${EXTENSION}`);
  await writeJournal(file, head);
  return file;
}

/** Appends a line and waits until the disk has it. */
export async function writeJournal(
  file: string,
  line: JournalHead | JournalEntry | JournalEnd,
): Promise<void> {
  const handle = await open(file, "a", 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(line)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes the journal of a transaction that is done. */
export async function endJournal(file: string): Promise<void> {
  await unlink(file);
}

/**
 * The journals that were begun for a workspace and have not been ended.
 *
 * @throws {Refusal} If others may write to the folder.
 */
export async function readJournals(
  folder: string,
  root: string,
): Promise<ReadonlyMap<string, Journal>> {
  const found = new Map<string, Journal>();
  const names = await readdir(folder).catch(unlessGone) ?? [];
  if (names.length > 0) await assertPrivate(folder);
  for (const name of names.sort()) {
    if (!name.endsWith(EXTENSION)) continue;
    const file = join(folder, name);
    const text = await readFile(file, "utf8").catch(unlessGone);
    // An incomplete last line belongs to a step that was not begun.
    const [first, ...lines] = (text ?? "").split("\n").slice(0, -1);
    if (first === undefined) continue;
    const head: JournalHead = JSON.parse(first);
    if (head.root !== root) continue;
    const steps: (JournalEntry | JournalEnd)[] = lines.map((line) => JSON.parse(line));
    const entries = steps.filter((step) => step.kind !== "committed");
    found.set(file, { head, entries, isCommitted: entries.length < steps.length });
  }
  return found;
}

async function assertPrivate(folder: string): Promise<void> {
  const stats = await lstat(folder);
  // Windows has no such bits; there, only the user can write to the user's profile.
  const isOpen = process.platform !== "win32" && (stats.mode & 0o077) !== 0;
  if (stats.isDirectory() && !isOpen) return;
  throw unusable("their folder must be a folder of the user's alone (mode 0700)");
}

function unusable(why: string, cause?: unknown): Refusal {
  return new Refusal("unavailable", `Cannot keep journals of transactions: ${why}`, { cause });
}

function unlessGone(error: unknown): undefined {
  if (errorCode(error) !== "ENOENT") throw error;
}

/**
 * Undoes the steps, last first. Steps that were never done are skipped. Files that something else
 * changed in between are left as they are and reported.
 *
 * @param root The workspace's real path.
 * @param folder The transaction's folder, in the root.
 * @returns The steps that could not be undone, as sentences.
 */
export async function undo(
  root: string,
  folder: string,
  entries: readonly JournalEntry[],
): Promise<readonly string[]> {
  if (!await isInPlace(root, join(folder, "backup"))) {
    return [`"${basename(folder)}": it leads elsewhere`];
  }
  const problems: string[] = [];
  for (const entry of entries.toReversed()) {
    try {
      const problem = await undoOne(root, folder, entry);
      if (problem !== undefined) problems.push(`"${entry.path}": ${problem}`);
    } catch (error) {
      problems.push(`"${entry.path}": ${errorCode(error) ?? "an unknown error"}`);
    }
  }
  return problems;
}

async function undoOne(
  root: string,
  folder: string,
  entry: JournalEntry,
): Promise<string | undefined> {
  const path = join(root, entry.path);
  if (!await isInPlace(root, path)) return "its folder leads elsewhere";
  if (entry.kind === "folder") {
    await rmdir(path).catch(unless("ENOENT", "ENOTEMPTY", "EEXIST"));
    return undefined;
  }
  const backup = join(folder, basename(entry.backup));
  const kept = await statOrNothing(backup);
  const now = inode(await statOrNothing(path));
  if (entry.kind === "removed") {
    if (kept === undefined) return undefined;
    if (inode(kept) !== entry.before) return "its backup was changed by something else";
    if (now !== null) return "something else is there now";
    await mkdir(dirname(path), { recursive: true });
    await rename(backup, path);
    return undefined;
  }
  if (now === entry.before) return undefined;
  if (now !== entry.after && now !== null) return "it was changed by something else";
  if (entry.before === null) {
    if (now !== null) await unlink(path);
    return undefined;
  }
  // Only regular files are overwritten, so a backup is a regular file.
  if (kept?.isFile() !== true) return "its backup was changed by something else";
  await rename(backup, path);
  return undefined;
}

/** Whether no symbolic link is on the way from the root to the path. */
async function isInPlace(root: string, path: string): Promise<boolean> {
  for (let folder = dirname(path); isWithin(root, folder); folder = dirname(folder)) {
    const real = await realpath(folder).catch(unless("ENOENT"));
    if (real !== undefined) return real === folder;
    // A dangling link: creating the folder would create the target of the link.
    if (await statOrNothing(folder) !== undefined) return false;
  }
  return false;
}

/** The stats of a path; `undefined` if it does not exist. */
export async function statOrNothing(path: string): Promise<BigIntStats | undefined> {
  return await lstat(path, { bigint: true }).catch(unless("ENOENT", "ENOTDIR"));
}

/** The inode number, as a journal holds it. */
export function inode(stats: BigIntStats): string;
export function inode(stats: BigIntStats | undefined): string | null;
export function inode(stats: BigIntStats | undefined): string | null {
  return stats === undefined ? null : `${stats.dev}:${stats.ino}`;
}

/** A handler that swallows the errors with these codes. */
function unless(...codes: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes(errorCode(error) ?? "")) throw error;
    return undefined;
  };
}
