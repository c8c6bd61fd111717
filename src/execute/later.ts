/**
 * Steps answer at once where they can: a promise costs turns of the queue, and most need none.
 *
 * @module
 */

/** Goes on with a value, at once or when it is there. */
export function whenThere<T, Next>(
  value: T | Promise<T>,
  goOn: (value: T) => Next,
): Next | Promise<Next> {
  return value instanceof Promise ? value.then(goOn) : goOn(value);
}
