/**
 * What a transaction has done to the workspace, written down before it is done, and how each step
 * is taken back. The journal is a file, so that a transaction whose process died can be rolled
 * back by the next one.
 *
 * @module
 */

import type { BigIntStats } from "node:fs";
import { lstat, mkdir, open, readFile, rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isWithin } from "./paths.ts";
import { errorCode } from "./refusal.ts";

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
  /** What was at `path` was moved to the backup. */
  | { readonly kind: "removed"; readonly path: string; readonly backup: string }
  /** A folder was made. */
  | { readonly kind: "folder"; readonly path: string };

/** The journal's file, in the transaction's folder. Its first line is a {@linkcode JournalHead}. */
export const JOURNAL_FILE = "journal.jsonl";

/** Who wrote a journal. */
export interface JournalHead {
  readonly pid: number;
}

/** Appends a line and waits until the disk has it. */
export async function writeJournal(
  folder: string,
  line: JournalHead | JournalEntry,
): Promise<void> {
  const handle = await open(join(folder, JOURNAL_FILE), "a", 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(line)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Reads a journal. A last line that was cut off stands for a step that was not begun. */
export async function readJournal(
  folder: string,
): Promise<{ readonly head: JournalHead | undefined; readonly entries: readonly JournalEntry[] }> {
  const text = await readFile(join(folder, JOURNAL_FILE), "utf8").catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return "";
    throw error;
  });
  const lines = text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  return { head: lines[0], entries: lines.slice(1) };
}

/**
 * Takes the steps back, last first. A step that was never done is passed over. What somebody else
 * changed in the meantime is left as it is and reported.
 *
 * @returns What could not be taken back, as sentences.
 */
export async function undo(
  root: string,
  folder: string,
  entries: readonly JournalEntry[],
): Promise<readonly string[]> {
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
  // A journal is a file in a folder that others may write to: it must not lead outside.
  if (!isWithin(root, path)) return "it leads outside the workspace";
  if (entry.kind === "folder") {
    await rmdir(path).catch(unless("ENOENT", "ENOTEMPTY", "EEXIST"));
    return undefined;
  }
  const backup = join(folder, basename(entry.backup));
  const now = inode(await statOrNothing(path));
  if (entry.kind === "removed") {
    if (await statOrNothing(backup) === undefined) return undefined;
    if (now !== null) return "something else is there now";
    await mkdir(dirname(path), { recursive: true });
    await rename(backup, path);
    return undefined;
  }
  if (now === entry.after) {
    if (entry.before === null) await unlink(path);
    else await rename(backup, path);
    return undefined;
  }
  if (now === entry.before) return undefined;
  if (now === null) {
    await rename(backup, path);
    return undefined;
  }
  return "it was changed by something else";
}

/** A stat that answers nothing where nothing is. */
export async function statOrNothing(path: string): Promise<BigIntStats | undefined> {
  return await lstat(path, { bigint: true }).catch(unless("ENOENT", "ENOTDIR"));
}

/** The inode number, as a journal holds it. */
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
