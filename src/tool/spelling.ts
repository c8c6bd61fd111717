/**
 * Whether two words may be the same, but for errors of whoever typed one of them.
 *
 * @module
 */

/** Whether `a` is at most so many errors from `b`: letters wrong, missing, too many, or swapped. */
export function isWithin(a: string, b: string, errors: number): boolean {
  if (Math.abs(a.length - b.length) > errors) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const restOfA = a.slice(start);
  const restOfB = b.slice(start);
  if (restOfA === restOfB) return true;
  if (errors === 0) return false;
  const skip = (inA: number, inB: number): boolean =>
    isWithin(restOfA.slice(inA), restOfB.slice(inB), errors - 1);
  return skip(1, 1) || skip(1, 0) || skip(0, 1) ||
    restOfA[0] === restOfB[1] && restOfA[1] === restOfB[0] && skip(2, 2);
}
