/**
 * Calls what an owner handed in.
 *
 * @module
 */

/** Whether `value` is a promise, of whatever library. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null &&
    typeof (value as { readonly then?: unknown }).then === "function";
}

/** A promise in the place of one of another library's; any other value as it is. */
export function inPromise(value: unknown): unknown {
  return isThenable(value) ? Promise.resolve(value) : value;
}
