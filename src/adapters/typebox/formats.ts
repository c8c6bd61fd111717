/**
 * Format checks, by TypeBox. Both engines use them, so that they agree on what a date is.
 *
 * @module
 */

import * as Formats from "typebox/format";

/** Whether `value` has `format`. Unknown formats accept everything. */
export function testFormat(format: string, value: string): boolean {
  return Formats.Test(format, value);
}
