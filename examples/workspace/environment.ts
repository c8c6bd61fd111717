/**
 * The environment that commands are given: enough to find programs and the user's settings, and
 * nothing else of the server's, whose variables may hold secrets.
 *
 * @module
 */

import process from "node:process";

/** The variables that are handed on. */
const PASSED: readonly string[] = ["PATH", "HOME", "LANG"];

/** The minimal environment, with `more` on top. */
export function minimalEnvironment(
  more: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const result = new Map<string, string>();
  for (const name of PASSED) {
    const value = process.env[name];
    if (value !== undefined) result.set(name, value);
  }
  for (const [name, value] of Object.entries(more)) result.set(name, value);
  return Object.fromEntries(result);
}
