/**
 * Rewrites a schema where TypeBox 1.4 is wrong or slow, into one that means the same:
 *
 * - It asks `"toString" in value`, and so finds in every object the properties that all objects
 *   inherit. Instead: not all names of the object are different from that name.
 * - It applies `unevaluatedProperties` to arrays. Instead: only if the value is no array.
 * - It looks for additional properties with a regular expression, which takes most of the time that
 *   a check takes. Instead: all names of the object are among these.
 * - It hashes all items for `uniqueItems`, in arithmetic of big integers, and hashes may be alike.
 *   Instead: `sameItems`, as for all engines.
 * - Where it interprets, it compiles a pattern for each value. Instead: a compiled pattern; in a
 *   hardened engine one that takes linear time, with its steps counted.
 *
 * @module
 */

import { eachSchemaIn, type Hardening, KEYWORDS, sameItems } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../tool/mod.ts";

/** From here on a regular expression is no slower than comparing one name after the other. */
const MANY_NAMES = 32;

/** The patterns of a schema that a hardened engine compiles. */
export interface FoundPatterns {
  /** Whether there is one whose steps are counted. */
  areCounted: boolean;
  /** Whether there is a name in `patternProperties`, which TypeBox compiles itself, for an automaton. */
  areSlowNames: boolean;
}

/**
 * Rewrites a normalised schema, in place.
 *
 * @param found Gets what patterns there are, if the engine is hardened.
 * @param hardening The protections of a hardened engine.
 */
export function rewriteForTypebox(
  schema: JsonSchema,
  found: FoundPatterns,
  hardening: Hardening | undefined,
): void {
  if (typeof schema === "boolean") return;
  eachSchemaIn(schema, KEYWORDS["2020-12"], (part) => rewriteForTypebox(part, found, hardening));
  replacePatterns(schema, found, hardening);
  requireOwn(schema);
  closeByNames(schema);
  compareItems(schema);
  exemptArrays(schema);
}

/** Whether TypeBox would find the property in every object. It handles the two names itself. */
function isInherited(name: string): boolean {
  return name in Object.prototype && name !== "__proto__" && name !== "constructor";
}

function replacePatterns(
  schema: Record<string, unknown>,
  found: FoundPatterns,
  hardening: Hardening | undefined,
): void {
  const { pattern, patternProperties } = schema;
  if (typeof pattern === "string") {
    schema["pattern"] = hardening?.compilePattern(pattern) ?? new RegExp(pattern, "u");
    found.areCounted = hardening !== undefined;
  }
  if (isObject(patternProperties) && hardening !== undefined) {
    const names = Object.keys(patternProperties);
    found.areSlowNames ||= names.some((name) => hardening.compilePattern(name).looks === Infinity);
  }
}

function requireOwn(schema: Record<string, unknown>): void {
  const { required, dependentRequired, dependentSchemas, allOf } = schema;
  const added: JsonSchemaObject[] = [];
  if (names(required).some(isInherited)) {
    delete schema["required"];
    added.push(having(names(required)));
  }
  if (dependentRequired !== undefined || dependentSchemas !== undefined) {
    delete schema["dependentRequired"];
    delete schema["dependentSchemas"];
    for (const [name, needed] of Object.entries(dependentRequired ?? {})) {
      added.push({ if: { type: "object", ...having([name]) }, then: having(names(needed)) });
    }
    for (const [name, dependent] of Object.entries(dependentSchemas ?? {})) {
      added.push({ if: { type: "object", ...having([name]) }, then: dependent });
    }
  }
  if (added.length > 0) schema["allOf"] = [...Array.isArray(allOf) ? allOf : [], ...added];
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

/** The schema of objects that have all of these properties, and of all other values. */
function having(wanted: readonly string[]): JsonSchemaObject {
  return {
    required: wanted.filter((name) => !isInherited(name)),
    allOf: wanted.filter(isInherited).map((name) => ({
      not: { type: "object", propertyNames: { not: { const: name } } },
    })),
  };
}

function names(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
