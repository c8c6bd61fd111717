/**
 * "Did you mean": the ids nearest to one that does not exist.
 *
 * @module
 */

import { isWithinEdits } from "../tool/mod.ts";

/** The longest id there can be: two parts of 128, and the colon. */
const MAX_ID = 257;

/** One turn may ask for 128 names that do not exist, so that each must cost little. */
const MAX_LOOKS = 1_000;

/**
 * The ids that may have been meant by `wanted`, nearest first: the same but for case, separators or
 * namespace, or with up to two letters different, and at most one in three. Give it only ids that the
 * reader may know of.
 *
 * @param wanted What was written. Longer than an id can be: nothing is near it.
 * @param ids Where to look: at the first 1,000.
 * @param limit How many to answer at most.
 * @returns The nearest ids, at most `limit`; often none.
 */
export function nearIds(wanted: string, ids: Iterable<string>, limit = 3): readonly string[] {
  if (wanted.length > MAX_ID) return [];
  const plain = simplify(wanted);
  const plainName = simplify(nameOf(wanted));
  if (plain === "") return [];
  const near: { readonly id: string; readonly errors: number }[] = [];
  let looks = 0;
  for (const id of ids) {
    if (++looks > MAX_LOOKS) break;
    const errors = [0, 1, 2].find((errors) =>
      // More than one wrong letter in three is too many for a typing error.
      errors * 3 <= plain.length && isWithinEdits(plain, simplify(id), errors) ||
      // A match of the name alone counts as one typing error.
      errors === 1 && simplify(nameOf(id)) === plainName
    );
    if (errors !== undefined) near.push({ id, errors });
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
