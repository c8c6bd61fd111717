/**
 * Walks a folder of the workspace in a fixed order, with bounds, without following links.
 *
 * @module
 */

import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { isGitName, TRANSACTION_PREFIX } from "./paths.ts";
import { errorCode } from "./refusal.ts";

/** Something in a folder. */
export interface WalkEntry {
  /** From the workspace's root, with `/`. */
  readonly path: string;
  /** From the folder that the walk began in. */
  readonly below: string;
  readonly absolute: string;
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
  readonly signal: AbortSignal;
}

/** How a walk ended. */
export interface WalkEnd {
  /** There was more than `maxVisited` to visit. */
  readonly isCut: boolean;
}

/**
 * Yields what is in a folder, sorted by name in code-unit order, a folder before its contents.
 * `.git` is named but not entered; open transactions are passed over; a folder below that cannot be
 * read, or goes away, counts as empty.
 */
export async function* walk(options: WalkOptions): AsyncGenerator<WalkEntry, WalkEnd, void> {
  let left = options.maxVisited;
  let isCut = false;

  async function* enter(
    absolute: string,
    below: string,
    depth: number,
  ): AsyncGenerator<WalkEntry, void, void> {
    options.signal.throwIfAborted();
    const entries: Dirent[] = [];
    try {
      for await (const entry of await opendir(absolute)) {
        if (entry.name.startsWith(TRANSACTION_PREFIX)) continue;
        if (left === 0) {
          isCut = true;
          break;
        }
        left--;
        entries.push(entry);
      }
    } catch (error) {
      if (depth === 1 || !isGone(error)) throw error;
    }
    entries.sort((a, b) => a.name < b.name ? -1 : 1);
    for (const entry of entries) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      const child = join(absolute, entry.name);
      const type = typeOf(entry);
      yield {
        path: options.relative === "." ? path : `${options.relative}/${path}`,
        below: path,
        absolute: child,
        type,
      };
      if (type === "folder" && depth < options.maxDepth && !isGitName(entry.name)) {
        yield* enter(child, path, depth + 1);
      }
    }
  }

  yield* enter(options.absolute, "", 1);
  return { isCut };
}

function typeOf(entry: Dirent): EntryType {
  if (entry.isSymbolicLink()) return "link";
  if (entry.isDirectory()) return "folder";
  return entry.isFile() ? "file" : "other";
}

/** A folder may go, or become something else, between being named and being entered. */
function isGone(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP"].includes(errorCode(error) ?? "");
}
