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

/** How many letters to insert, remove, change or swap; above `MAX_DISTANCE` it stops counting. */
function editDistance(a: string, b: string): number {
  const far = MAX_DISTANCE + 1;
  if (Math.abs(a.length - b.length) > MAX_DISTANCE) return far;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = Array<number>(b.length + 1).fill(far);
    if (row <= MAX_DISTANCE) current[0] = row;
    let least = current[0] ?? far;
    // Only the band around the diagonal can stay within the distance.
    const end = Math.min(b.length, row + MAX_DISTANCE);
    for (let column = Math.max(1, row - MAX_DISTANCE); column <= end; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column - 1] ?? far) + (same ? 0 : 1),
        (last[column] ?? far) + 1,
        (current[column - 1] ?? far) + 1,
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, (before[column - 2] ?? far) + 1);
      }
      current[column] = cost;
      least = Math.min(least, cost);
    }
    if (least > MAX_DISTANCE) return far;
    before = last;
    last = current;
  }
  return last[b.length] ?? far;
}
