/** Tests that cannot run everywhere: they are skipped, and their names contain the reason. */

import { test } from "bun:test";

/**
 * `test`, if `condition` holds; otherwise a skipped test whose name carries `reason`.
 *
 * @example Usage
 * ```ts ignore
 * const withData = maybe(existsSync(suite), "the official test suite is not here");
 * withData("passes the official suite", () => { ... });
 * ```
 */
export function maybe(
  condition: boolean,
  reason: string,
): (name: string, run: () => void | Promise<void>) => void {
  if (condition) return (name, run) => test(name, run);
  return (name, run) => test.skip(`${name} [skipped: ${reason}]`, run);
}
