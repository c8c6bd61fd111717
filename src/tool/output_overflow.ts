/**
 * What is done with a result that is larger than the limit.
 *
 * @module
 */

import { type Check, must } from "./check.ts";

/** What is done with a result that is larger than the limit: refuse it, or cut it. */
export type OutputOverflow = "fail" | "truncate";

export const checkOverflow: Check<OutputOverflow> = must(
  '"fail" or "truncate"',
  (value): value is OutputOverflow => value === "fail" || value === "truncate",
);
