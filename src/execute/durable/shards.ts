/** Stores that spread the principals over several shards. */

/** Returns the shard with the entries of a principal. Every process computes the same number. */
export function shardOf(owner: string, shards: number): number {
  // FNV-1a.
  let hash = 0x811c9dc5;
  for (let at = 0; at < owner.length; at++) {
    hash = Math.imul(hash ^ owner.charCodeAt(at), 0x01000193);
  }
  return (hash >>> 0) % shards;
}

/** Returns the earliest of the entries that are due in all shards. */
export function earliestOf<Entry extends { readonly dueAt: number }>(
  shards: readonly (readonly Entry[])[],
  limit: number,
): readonly Entry[] {
  return shards.flat().sort((a, b) => a.dueAt - b.dueAt).slice(0, limit);
}
