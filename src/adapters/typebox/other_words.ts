/**
 * Puts in other words what TypeBox 1.4 gets wrong, or is slow at:
 *
 * - It asks `"toString" in value`, and so takes every object to have the properties that all objects
 *   inherit. In other words: not all names of the object are different from that name.
 * - It applies `unevaluatedProperties` to arrays. In other words: if it is no array.
 * - It looks for additional properties with a regular expression, which takes most of the time that
 *   a check takes. In other words: all names of the object are among these.
 *
 * @module
 */

import { KEYWORDS, type KeywordShape } from "../../schema/keywords.ts";
import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";

/** From here on a regular expression is no slower than comparing one name after the other. */
const MANY_NAMES = 32;

/** Whether TypeBox would find the property in every object. Those two it knows about. */
function isInherited(name: string): boolean {
  return name in Object.prototype && name !== "__proto__" && name !== "constructor";
}

/** Whether `schema` has, somewhere, something that must be put in other words. */
export function needsOtherWords(schema: JsonSchema): boolean {
  if (typeof schema === "boolean") return false;
  const { required, dependentRequired, dependentSchemas } = schema;
  return judgesArrays(schema) || closesByPattern(schema) ||
    names(required).some(isInherited) ||
    Object.entries(dependentRequired ?? {}).flat(2).some(isInherited) ||
    Object.keys(dependentSchemas ?? {}).some(isInherited) ||
    inside(schema).some(needsOtherWords);
}

/** Rewrites a normalised schema, in place. */
export function putInOtherWords(schema: JsonSchema): void {
  if (typeof schema === "boolean") return;
  inside(schema).forEach(putInOtherWords);
  askForOwn(schema);
  if (closesByPattern(schema)) closeByNames(schema);
  if (judgesArrays(schema)) spareArrays(schema);
}

function askForOwn(schema: Record<string, unknown>): void {
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

/** Whether it rules out additional properties, and has no more names than can be compared at once. */
function closesByPattern(schema: JsonSchemaObject): boolean {
  const { properties, patternProperties, additionalProperties, propertyNames } = schema;
  return additionalProperties === false && patternProperties === undefined &&
    propertyNames === undefined && Object.keys(properties ?? {}).length <= MANY_NAMES;
}

function closeByNames(schema: Record<string, unknown>): void {
  const known = Object.keys(schema["properties"] ?? {});
  const required = names(schema["required"]);
  // TypeBox has a way of its own for this case: it counts them.
  if (known.length === required.length && known.every((name) => required.includes(name))) return;
  delete schema["additionalProperties"];
  schema["propertyNames"] = known.length === 0 ? false : { enum: known };
}

function judgesArrays({ type, unevaluatedProperties }: JsonSchemaObject): boolean {
  return unevaluatedProperties !== undefined && type !== "object";
}

function spareArrays(schema: Record<string, unknown>): void {
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

/** What an object with all of these properties fits, and what is no object. */
function having(wanted: readonly string[]): JsonSchemaObject {
  return {
    required: wanted.filter((name) => !isInherited(name)),
    allOf: wanted.filter(isInherited).map((name) => ({
      not: { type: "object", propertyNames: { not: { const: name } } },
    })),
  };
}

const HOLDS_SCHEMAS: ReadonlySet<KeywordShape> = new Set(["schema", "schemas", "map"]);

/** The schemas directly inside a 2020-12 schema. */
function inside(schema: JsonSchemaObject): readonly JsonSchema[] {
  return Object.keys(schema).flatMap((keyword) => {
    const shape = KEYWORDS["2020-12"].get(keyword);
    if (shape === undefined || !HOLDS_SCHEMAS.has(shape)) return [];
    const value = schema[keyword];
    return (shape === "schema" ? [value] : Object.values(value as object)) as JsonSchema[];
  });
}

function names(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
