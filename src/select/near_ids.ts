/**
 * "Did you mean": the ids nearest to one that does not exist.
 *
 * @module
 */

import { isWithin } from "../tool/mod.ts";

/** The longest id there can be: two parts of 128, and the colon. */
const MAX_ID = 257;
/** How many typing errors there may be. */
const MAX_ERRORS = 2;

/**
 * The ids that somebody who wrote `wanted` may have meant, nearest first: the same but for case,
 * separators or namespace, or up to two letters different. Give it only ids that the reader may
 * know of.
 *
 * @param wanted What was written. Longer than an id can be: nothing is near it.
 * @param ids Where to look.
 * @param limit How many to answer at most.
 * @returns The nearest ids, at most `limit`; often none.
 */
export function nearIds(wanted: string, ids: Iterable<string>, limit = 3): readonly string[] {
  if (wanted.length > MAX_ID) return [];
  const plain = simplify(wanted);
  const plainName = simplify(nameOf(wanted));
  if (plain === "") return [];
  // Two letters of four are another word, not a slip.
  const most = Math.min(MAX_ERRORS, plain.length >> 1);
  const near: { readonly id: string; readonly errors: number }[] = [];
  for (const id of ids) {
    const simple = simplify(id);
    for (let errors = 0; errors <= most; errors++) {
      // Without its namespace, or with another one: as near as one letter.
      const sameName = errors > 0 && simplify(nameOf(id)) === plainName;
      if (!sameName && !isWithin(plain, simple, errors)) continue;
      near.push({ id, errors });
      break;
    }
  }
  return near
    .sort((a, b) => a.errors - b.errors || (a.id < b.id ? -1 : 1))
    .slice(0, limit)
    .map(({ id }) => id);
}

function nameOf(id: string): string {
  return id.slice(id.indexOf(":") + 1);
}

function simplify(id: string): string {
  return id.toLowerCase().replace(/[^a-z0-9]/g, "");
}
