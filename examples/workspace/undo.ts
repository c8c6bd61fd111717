/**
 * Takes back the steps of a transaction, and removes what it kept.
 *
 * @module
 */

import type { BigIntStats } from "node:fs";
import { lstat, readdir, rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Folder } from "./held.ts";
import { endJournal, type JournalEntry } from "./journal.ts";
import { isWithin } from "./paths.ts";
import { errorCode } from "./refusal.ts";

/** A step, and the folder that it changed, if this process still holds it open. */
export interface Step {
  readonly entry: JournalEntry;
  readonly folder?: Folder;
}

/**
 * Undoes the steps, last first. Steps that were never done are skipped. Files that something else
 * changed in between are left as they are and reported, and so are earlier changes of theirs: those
 * can be undone after the later ones only.
 *
 * @param root The workspace's real path.
 * @param backups The transaction's folder.
 * @returns The steps that could not be undone, as sentences.
 */
export async function undo(
  root: string,
  backups: Folder,
  steps: readonly Step[],
): Promise<readonly string[]> {
  const problems = new Map<string, string>();
  for (const { entry, folder } of steps.toReversed()) {
    const { path } = entry;
    const isBlocked = problems.keys().some((one) => isWithin(one, path) || isWithin(path, one));
    const problem = isBlocked
      ? "a later change of it could not be undone"
      : await (folder === undefined
        ? undoByPath(root, backups, entry)
        : undoOne(folder, backups, entry))
        .catch((error: unknown) => errorCode(error) ?? "an unknown error");
    if (problem !== undefined && !problems.has(path)) problems.set(path, problem);
  }
  return [...problems].map(([path, problem]) => `"${path}": ${problem}`);
}

/** Undoes a step of another process. A link on the way to its folder is not followed. */
async function undoByPath(
  root: string,
  backups: Folder,
  entry: JournalEntry,
): Promise<string | undefined> {
  const absolute = dirname(join(root, entry.path));
  if (!isWithin(root, absolute)) return "its folder leads elsewhere";
  let folder: Folder;
  try {
    folder = await Folder.open(absolute);
  } catch (error) {
    const code = errorCode(error) ?? "";
    if (!["ENOENT", "ENOTDIR", "ELOOP", "EMOVED"].includes(code)) throw error;
    // What was made there is gone with the folder.
    const isDone = code === "ENOENT" && (entry.kind === "folder" || entry.before === null);
    return isDone ? undefined : "its folder leads elsewhere or is gone";
  }
  await using _ = folder;
  return await undoOne(folder, backups, entry);
}

async function undoOne(
  folder: Folder,
  backups: Folder,
  entry: JournalEntry,
): Promise<string | undefined> {
  const path = folder.at(basename(entry.path));
  if (entry.kind === "folder") {
    await rmdir(path).catch(unless("ENOENT", "ENOTEMPTY", "EEXIST"));
    return undefined;
  }
  const backup = backups.at(basename(entry.backup));
  const kept = await statOrNothing(backup);
  const now = inode(await statOrNothing(path));
  if (entry.kind === "removed") {
    if (kept === undefined) return undefined;
    if (inode(kept) !== entry.before) return "its backup was changed by something else";
    if (now !== null) return "something else is there now";
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

/** Removes a transaction's folder, then the journal that would find it. */
export async function clearAway(root: string, name: string, journal: string): Promise<void> {
  await using folder = await Folder.open(root);
  await removeTree(folder, join(root, name));
  await endJournal(journal);
}

/** Removes a file, or a folder with everything in it. Each folder is held while it is emptied. */
async function removeTree(parent: Folder, absolute: string): Promise<void> {
  const path = parent.at(basename(absolute));
  const stats = await statOrNothing(path);
  if (stats === undefined) return;
  if (!stats.isDirectory()) return await unlink(path);
  {
    await using folder = await Folder.open(absolute);
    for (const name of await readdir(folder.path)) await removeTree(folder, join(absolute, name));
  }
  await rmdir(path);
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
