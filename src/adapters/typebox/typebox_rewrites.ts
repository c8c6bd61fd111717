/**
 * Rewrites a schema where TypeBox 1.4 is wrong or slow, into one that means the same:
 *
 * - It applies `unevaluatedProperties` to arrays. Instead: only if the value is no array.
 * - It looks for additional properties with a regular expression, which takes most of the time that
 *   a check takes. Instead: all names of the object are among these.
 * - It hashes all items for `uniqueItems`, in arithmetic of big integers, and hashes may be alike.
 *   Instead: `sameItems`, as for all engines.
 * - Where it interprets, it compiles a pattern for each value. Instead: a compiled pattern; in a
 *   hardened engine one whose steps are counted.
 *
 * @module
 */

import { eachSchemaIn, type Hardening, KEYWORDS, sameItems } from "../../schema/mod.ts";
import type { JsonSchema } from "../../tool/mod.ts";

/** From here on a regular expression is no slower than comparing one name after the other. */
const MANY_NAMES = 32;

/**
 * Rewrites a normalised schema, in place.
 *
 * @param hardening The protections of a hardened engine.
 * @returns Whether there is a name in `patternProperties`, which TypeBox compiles itself, whose
 * steps depend on the text.
 */
export function rewriteForTypebox(schema: JsonSchema, hardening: Hardening | undefined): boolean {
  if (typeof schema === "boolean") return false;
  let hasSlowNames = replacePatterns(schema, hardening);
  eachSchemaIn(schema, KEYWORDS["2020-12"], (part) => {
    hasSlowNames = rewriteForTypebox(part, hardening) || hasSlowNames;
  });
  closeByNames(schema);
  compareItems(schema);
  exemptArrays(schema);
  return hasSlowNames;
}

function replacePatterns(
  schema: Record<string, unknown>,
  hardening: Hardening | undefined,
): boolean {
  const { pattern, patternProperties } = schema;
  const compile = hardening?.compilePattern ?? ((source) => new RegExp(source, "u"));
  if (typeof pattern === "string") schema["pattern"] = compile(pattern);
  return Object.keys(patternProperties ?? {})
    .some((name) => hardening?.compilePattern(name).looks === Infinity);
}

function closeByNames(schema: Record<string, unknown>): void {
  const { patternProperties, additionalProperties, propertyNames } = schema;
  const known = Object.keys(schema["properties"] ?? {});
  const closed = additionalProperties === false && patternProperties === undefined &&
    propertyNames === undefined;
  if (!closed || known.length > MANY_NAMES) return;
  const required = names(schema["required"]);
  // TypeBox only counts the properties if all of them are required.
  if (known.length === required.length && known.every((name) => required.includes(name))) return;
  delete schema["additionalProperties"];
  schema["propertyNames"] = known.length === 0 ? false : { enum: known };
}

function compareItems(schema: Record<string, unknown>): void {
  if (schema["uniqueItems"] !== true) return;
  delete schema["uniqueItems"];
  // TypeBox's keyword for a custom check.
  const check = (value: unknown) => !Array.isArray(value) || sameItems(value) === undefined;
  schema["~refine"] = [{ check, error: () => "It has the same item twice" }];
}

function exemptArrays(schema: Record<string, unknown>): void {
  const { type, unevaluatedProperties } = schema;
  if (unevaluatedProperties === undefined || type === "object") return;
  const moved: Record<string, unknown> = {};
  for (const keyword of Object.keys(schema)) {
    // References lead to "#/$defs/…", so those stay where they are.
    if (keyword === "$schema" || keyword === "$defs") continue;
    moved[keyword] = schema[keyword];
    delete schema[keyword];
  }
  const { unevaluatedProperties: _, ...rest } = moved;
  Object.assign(schema, { if: { type: "array" }, then: rest, else: moved });
}

function names(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
