/**
 * `multipleOf`, as both engines understand it.
 *
 * @module
 */

/** How far from a multiple a number may be, because binary fractions cannot say 0.3. */
const TOLERANCE = 1e-10;

/** Whether `value` is a multiple of `step`. */
export function isMultipleOf(value: number, step: number): boolean {
  // A whole number is a multiple of 1/2, 1/4…, also where the remainder would be inexact.
  if (Number.isInteger(value) && Number.isInteger(1 / step)) return true;
  const rest = value % step;
  return Math.min(Math.abs(rest), Math.abs(rest - step), Math.abs(rest + step)) < TOLERANCE;
}
