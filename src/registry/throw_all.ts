/**
 * Errors of many tools, thrown together.
 *
 * @module
 */

/** Throws `errors` as one, if there are any. `action` begins the message: `Cannot …`. */
export function throwAll(errors: readonly unknown[], action: string): void {
  if (errors.length === 0) return;
  const [first] = errors;
  throw new AggregateError(
    errors,
    `${action}: ${first instanceof Error ? first.message : String(first)}` +
      (errors.length > 1 ? `, and ${errors.length - 1} more` : ""),
  );
}
