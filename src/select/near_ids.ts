/**
 * "Did you mean": the ids nearest to one that does not exist.
 *
 * @module
 */

/** The longest id there can be: two parts of 128, and the colon. */
const MAX_ID = 257;
/** How many letters may differ. */
const MAX_DISTANCE = 2;

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
  const near: { readonly id: string; readonly distance: number }[] = [];
  for (const id of ids) {
    const simple = simplify(id);
    // Without its namespace, or with another one: as near as one letter.
    const distance = simple === plain
      ? 0
      : simplify(nameOf(id)) === plainName
      ? 1
      : editDistance(plain, simple);
    // Two letters of four are another word, not a slip.
    if (distance <= Math.min(MAX_DISTANCE, plain.length >> 1)) near.push({ id, distance });
  }
  return near
    .sort((a, b) => a.distance - b.distance || (a.id < b.id ? -1 : 1))
    .slice(0, limit)
    .map(({ id }) => id);
}

function nameOf(id: string): string {
  return id.slice(id.indexOf(":") + 1);
}

function simplify(id: string): string {
  return id.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** How many letters to insert, remove or change; once it is too many, it stops counting. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MAX_DISTANCE) return Infinity;
  const row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let line = 1; line <= a.length; line++) {
    let diagonal = line - 1;
    let left = row[0] = line;
    let least = left;
    for (let column = 1; column <= b.length; column++) {
      const above = row[column] ?? 0;
      const changed = diagonal + (a[line - 1] === b[column - 1] ? 0 : 1);
      row[column] = left = Math.min(changed, above + 1, left + 1);
      diagonal = above;
      least = Math.min(least, left);
    }
    if (least > MAX_DISTANCE) return Infinity;
  }
  return row[b.length] ?? Infinity;
}
