/**
 * Walks a folder of the workspace in a fixed order, with bounds, without following links.
 *
 * @module
 */

import type { Dirent, Stats } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { Folder } from "./held.ts";
import { isGitName, TRANSACTION_PREFIX } from "./paths.ts";
import { pause } from "./pause.ts";
import { errorCode } from "./refusal.ts";

/** An entry of a folder. */
export interface WalkEntry {
  /** From the workspace's root, with `/`. */
  readonly path: string;
  /** From the folder that the walk began in. */
  readonly below: string;
  readonly absolute: string;
  /** The path of the entry in its folder, which is open while the entry is visited. */
  readonly held: string;
  readonly type: EntryType;
}

/** What an entry is. */
export type EntryType = "file" | "folder" | "link" | "other";

/** Options for {@linkcode walk}. */
export interface WalkOptions {
  /** The folder's real path. */
  readonly absolute: string;
  /** The folder from the workspace's root, with `/`; the root is `.`. */
  readonly relative: string;
  /** How many levels to go down; 1 is the folder's own entries. */
  readonly maxDepth: number;
  /** How many entries to visit in all. */
  readonly maxVisited: number;
  /**
   * How many entries of one folder to visit. Sorting more would keep other calls waiting.
   *
   * @default {10_000}
   */
  readonly maxInFolder?: number;
  readonly signal: AbortSignal;
}

/** The entries, and, once they have been read, whether some were left out because of the bounds. */
export interface Walk extends AsyncIterable<WalkEntry> {
  readonly isCut: boolean;
}

/**
 * Walks what is in a folder, sorted by name in code-unit order, a folder before its contents.
 * `.git` is named but not entered, and open transactions are skipped. A subfolder that cannot be
 * read, or is removed, counts as empty.
 */
export function walk(options: WalkOptions): Walk {
  const { absolute, relative, maxDepth, maxVisited, maxInFolder = 10_000, signal } = options;
  let left = maxVisited;
  let isCut = false;

  async function* enter(
    folder: string,
    below: string,
    depth: number,
  ): AsyncGenerator<WalkEntry, void, void> {
    signal.throwIfAborted();
    let held: Folder | undefined;
    try {
      held = await Folder.open(folder);
      for (const entry of await read(held)) {
        await pause(signal);
        held ??= await Folder.open(folder);
        const path = below === "" ? entry.name : `${below}/${entry.name}`;
        const absolute = join(folder, entry.name);
        const type = typeOf(entry);
        yield {
          path: relative === "." ? path : `${relative}/${path}`,
          below: path,
          absolute,
          held: held.at(entry.name),
          type,
        };
        if (type === "folder" && depth < maxDepth && !isGitName(entry.name)) {
          // One folder is open at a time, however deep the walk goes.
          await held.close();
          held = undefined;
          yield* enter(absolute, path, depth + 1);
        }
      }
    } catch (error) {
      if (depth === 1 || !isGone(error)) throw error;
    } finally {
      await held?.close();
    }
  }

  async function read(folder: Folder): Promise<readonly Dirent[]> {
    const entries: Dirent[] = [];
    for await (const entry of await opendir(folder.path)) {
      if (entry.name.startsWith(TRANSACTION_PREFIX)) continue;
      if (left === 0 || entries.length === maxInFolder) {
        isCut = true;
        break;
      }
      left--;
      entries.push(entry);
    }
    return entries.sort((a, b) => a.name < b.name ? -1 : 1);
  }

  return {
    [Symbol.asyncIterator]: () => enter(absolute, "", 1),
    get isCut() {
      return isCut;
    },
  };
}

/** What an entry of a folder is. */
export function typeOf(entry: Dirent | Stats): EntryType {
  if (entry.isSymbolicLink()) return "link";
  if (entry.isDirectory()) return "folder";
  return entry.isFile() ? "file" : "other";
}

/** Whether a folder was removed or replaced before it was read, or may not be read. */
function isGone(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP", "EMOVED"].includes(
    errorCode(error) ?? "",
  );
}
