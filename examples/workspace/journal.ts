/**
 * What a transaction is about to do to the workspace, written down before it is done, so that a
 * transaction whose process died can be rolled back by the next one.
 *
 * Journals lie in a folder of the user's own, outside the workspace: what is in a workspace may
 * come from anyone (a cloned repository), and a journal found there could have files "restored"
 * that were never there, such as a hook in `.git`.
 *
 * @module
 */

import { lstat, mkdir, open, readdir, readFile, unlink } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import process from "node:process";
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
  /** What was at `path`, with the inode number `before`, was moved to the backup. */
  | {
    readonly kind: "removed";
    readonly path: string;
    readonly before: string;
    readonly backup: string;
  }
  /** A folder was made. */
  | { readonly kind: "folder"; readonly path: string };

/** Who wrote a journal, and about what: its first line. */
export interface JournalHead {
  readonly pid: number;
  /** The workspace's real path. */
  readonly root: string;
  /** The name of the transaction's folder, in the root. */
  readonly folder: string;
}

/** The last line of a transaction that stays: only its folder is left to clear away. */
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
 * Where journals lie if nobody says otherwise: in `PLUE_STATE`, or where the system keeps the
 * state of a user's programs. The name makes it a place that the tools do not change, also when
 * the workspace is the user's whole home.
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

/** Ends a journal: nothing is left to do about its transaction. */
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
    // A last line that was cut off stands for a step that was not begun.
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
  // Windows has no such bits; there, what is in a user's profile is the user's.
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
