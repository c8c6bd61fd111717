/**
 * Takes back what a journal says was done.
 *
 * Between the change and its undoing, which may be days after a crash, anyone may have changed the
 * workspace: nothing is put anywhere but where it was, and nothing but what was there.
 *
 * @module
 */

import type { BigIntStats } from "node:fs";
import { lstat, mkdir, realpath, rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { JournalEntry } from "./journal.ts";
import { isWithin } from "./paths.ts";
import { errorCode } from "./refusal.ts";

/**
 * Takes the steps back, last first. A step that was never done is passed over. What somebody else
 * changed in the meantime is left as it is and reported.
 *
 * @param root The workspace's real path.
 * @param folder The transaction's folder, in the root.
 * @returns What could not be taken back, as sentences.
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
  // Only regular files are overwritten, so nothing else can have been kept.
  if (kept?.isFile() !== true) return "its backup was changed by something else";
  await rename(backup, path);
  return undefined;
}

/** Whether the path lies in the workspace as it is written: no link on the way to it. */
async function isInPlace(root: string, path: string): Promise<boolean> {
  for (let folder = dirname(path); isWithin(root, folder); folder = dirname(folder)) {
    const real = await realpath(folder).catch(unless("ENOENT"));
    if (real !== undefined) return real === folder;
    // A link to nothing: whoever makes the folder would make it where the link leads.
    if (await statOrNothing(folder) !== undefined) return false;
  }
  return false;
}

/** A stat that answers nothing where nothing is. */
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
