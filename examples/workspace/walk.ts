/** Walks the files of the workspace within bounds, without following links. */

import type { Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { Folder } from "./held.ts";
import { isGitName, type WorkspacePath } from "./paths.ts";
import { fileRefusal } from "./refusal.ts";

const MAX_DEPTH = 64;
/** The maximum number of entries that one walk visits, and of entries in one folder. */
const MAX_VISITED = 50_000;
const MAX_IN_FOLDER = 10_000;
/** The time that calls compute before the event loop gets its turn, in milliseconds. */
const MAX_TURN_MS = 10;

let turnBegan = performance.now();
let lastTurn = Promise.resolve();

/**
 * Waits for the event loop if calls have computed for a while, so that timers and requests are
 * served. Call it between steps of a few milliseconds. Waiting calls continue one after another.
 *
 * @throws The signal's reason if the call was aborted.
 */
export async function pause(signal: AbortSignal): Promise<void> {
  if (performance.now() - turnBegan < MAX_TURN_MS) return;
  await (lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve))));
  turnBegan = performance.now();
  signal.throwIfAborted();
}

/** A walk in progress. */
export interface Walk extends AsyncIterable<WorkspacePath> {
  /** True if entries were omitted because of the bounds. */
  readonly isCut: boolean;
}

/**
 * Yields the files below a folder, in code-unit order of their names. `.git` is not entered. A
 * subfolder that cannot be read, or is removed meanwhile, counts as empty.
 */
export function walk(start: WorkspacePath, signal: AbortSignal): Walk {
  let left = MAX_VISITED;
  let isCut = false;

  async function* enter(path: WorkspacePath, depth: number): AsyncGenerator<WorkspacePath> {
    for (const entry of await read(path, depth)) {
      await pause(signal);
      const relative = path.relative === "." ? entry.name : `${path.relative}/${entry.name}`;
      const found = { relative, absolute: join(path.absolute, entry.name), shown: relative };
      if (entry.isFile()) yield found;
      else if (entry.isDirectory() && !isGitName(entry.name)) {
        if (depth < MAX_DEPTH) yield* enter(found, depth + 1);
        else isCut = true;
      }
    }
  }

  async function read({ absolute, shown }: WorkspacePath, depth: number): Promise<Dirent[]> {
    signal.throwIfAborted();
    const entries: Dirent[] = [];
    try {
      await using folder = await Folder.open(absolute);
      for await (const entry of await opendir(folder.path)) {
        if (left === 0 || entries.length === MAX_IN_FOLDER) {
          isCut = true;
          break;
        }
        left--;
        entries.push(entry);
      }
    } catch (error) {
      if (depth === 1) throw fileRefusal(error, "search", shown);
    }
    return entries.sort((a, b) => a.name < b.name ? -1 : 1);
  }

  return {
    [Symbol.asyncIterator]: () => enter(start, 1),
    get isCut() {
      return isCut;
    },
  };
}
