/**
 * What to say when a number, or a count of something, is out of its limits.
 *
 * @module
 */

import type { Issue, JsonSchemaObject } from "../tool/mod.ts";
import { counted, issue } from "./issues.ts";
import { isMultipleOf } from "./multiple_of.ts";

/** Adds what is wrong with a number. */
export function numberIssues(
  schema: JsonSchemaObject,
  value: number,
  path: string,
  found: Issue[],
): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (typeof minimum === "number" && value < minimum) {
    found.push(issue(path, "minimum", `at least ${minimum}`));
  }
  if (typeof maximum === "number" && value > maximum) {
    found.push(issue(path, "maximum", `at most ${maximum}`));
  }
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) {
    found.push(issue(path, "exclusiveMinimum", `more than ${exclusiveMinimum}`));
  }
  if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) {
    found.push(issue(path, "exclusiveMaximum", `less than ${exclusiveMaximum}`));
  }
  if (typeof multipleOf === "number" && !isMultipleOf(value, multipleOf)) {
    found.push(issue(path, "multipleOf", `a multiple of ${multipleOf}`));
  }
}

/** Adds what is wrong with a count: of characters, items or properties. */
export function limitIssues(
  found: Issue[],
  path: string,
  noun: "character" | "item" | "property",
  count: number,
  [lower, least]: readonly [keyword: string, limit: unknown],
  [upper, most]: readonly [keyword: string, limit: unknown],
): void {
  const has = `, and has ${count}`;
  if (typeof least === "number" && count < least) {
    found.push(issue(path, lower, `at least ${counted(least, noun)}`, "have", has));
  }
  if (typeof most === "number" && count > most) {
    found.push(issue(path, upper, `at most ${counted(most, noun)}`, "have", has));
  }
}
