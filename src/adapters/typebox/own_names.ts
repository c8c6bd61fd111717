/**
 * TypeBox asks `"toString" in value`, and so takes every object to have the properties that all
 * objects inherit. Here schemas that need such a property are put in other words: not all names of
 * the object are different from that name.
 *
 * @module
 */

import { KEYWORDS, type KeywordShape } from "../../schema/keywords.ts";
import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";

/** Whether TypeBox would find the property in every object. Those two it knows about. */
export function isInherited(name: string): boolean {
  return name in Object.prototype && name !== "__proto__" && name !== "constructor";
}

/** Whether `schema` asks somewhere for a property that every object inherits. */
export function asksForInherited(schema: JsonSchema): boolean {
  if (typeof schema === "boolean") return false;
  const { required, dependentRequired, dependentSchemas } = schema;
  return names(required).some(isInherited) ||
    Object.entries(dependentRequired ?? {}).flat(2).some(isInherited) ||
    Object.keys(dependentSchemas ?? {}).some(isInherited) ||
    inside(schema).some(asksForInherited);
}

/** Rewrites a normalised schema, in place. */
export function askForOwn(schema: JsonSchema): void {
  if (typeof schema === "boolean") return;
  inside(schema).forEach(askForOwn);
  const target = schema as Record<string, unknown>;
  const { required, dependentRequired, dependentSchemas, allOf } = schema;
  const added: JsonSchemaObject[] = [];
  if (names(required).some(isInherited)) {
    delete target["required"];
    added.push(having(names(required)));
  }
  if (dependentRequired !== undefined || dependentSchemas !== undefined) {
    delete target["dependentRequired"];
    delete target["dependentSchemas"];
    for (const [name, needed] of Object.entries(dependentRequired ?? {})) {
      added.push({ if: { type: "object", ...having([name]) }, then: having(names(needed)) });
    }
    for (const [name, dependent] of Object.entries(dependentSchemas ?? {})) {
      added.push({ if: { type: "object", ...having([name]) }, then: dependent });
    }
  }
  if (added.length > 0) target["allOf"] = [...Array.isArray(allOf) ? allOf : [], ...added];
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
