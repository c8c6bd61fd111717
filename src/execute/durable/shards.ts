/** Stores that spread the principals over several shards. */

import type { DueEntry } from "./call_store.ts";

/** Returns the shard with the entries of a principal. Every process computes the same number. */
export function shardOf(owner: string, shards: number): number {
  // FNV-1a.
  let hash = 0x811c9dc5;
  for (let at = 0; at < owner.length; at++) {
    hash = Math.imul(hash ^ owner.charCodeAt(at), 0x01000193);
  }
  return (hash >>> 0) % shards;
}

/** Compares entries by the order in which they are due. */
export function compareDue(
  a: Pick<DueEntry, "dueAt" | "key">,
  b: Pick<DueEntry, "dueAt" | "key">,
): number {
  return a.dueAt - b.dueAt || (a.key < b.key ? -1 : Number(a.key > b.key));
}

/** The due entries of a shard. */
export interface DueShard {
  readonly entries: readonly DueEntry[];
  /** True if further ones may be due before the limit is reached. */
  readonly isCut?: boolean;
}

/** Returns the first entries that are due in all shards. */
export function earliestOf(shards: readonly DueShard[], limit: number): readonly DueEntry[] {
  const all = shards.flatMap(({ entries }) => entries).sort(compareDue).slice(0, limit);
  const ends = shards.flatMap(({ entries, isCut }) => isCut ? entries.slice(-1) : []);
  // A shard that was cut may have entries before the later ones of others.
  return all.filter((entry) => ends.every((end) => compareDue(entry, end) <= 0));
}
