/**
 * How large a schema is, in the units that providers count.
 *
 * @module
 */

import type { JsonSchema } from "../tool/mod.ts";
import { eachChild, isNode, requiredBy } from "./transform/schema_walk.ts";

/** What a provider's limits count in one schema. */
export interface SchemaSize {
  /** Properties, at every level. */
  readonly properties: number;
  /** Properties that are not required, at every level. */
  readonly optional: number;
  /** Subschemas that are a union: `anyOf`, or a list of types. */
  readonly unions: number;
  /** Objects and arrays inside each other. */
  readonly depth: number;
  /** Values in all enums. */
  readonly enumValues: number;
  /** Characters of property names, definition names, enum texts and constants. */
  readonly characters: number;
  /** Characters of the texts of the largest enum that has more than 250 values. */
  readonly largeEnum: number;
  /** Required properties at the root. */
  readonly required: number;
}

/** From how many values on the characters of one enum count. */
const LARGE_ENUM = 250;

/** Measures a schema. */
export function measureSchema(schema: JsonSchema): SchemaSize {
  let properties = 0;
  let optional = 0;
  let unions = 0;
  let deepest = 0;
  let enumValues = 0;
  let characters = 0;
  let largeEnum = 0;

  function step(part: JsonSchema, depth: number): void {
    if (!isNode(part)) return;
    const { type, enum: values, properties: own } = part;
    const nests = type === "object" || type === "array" || own !== undefined ||
      (Array.isArray(type) && (type.includes("object") || type.includes("array")));
    const inner = nests ? depth + 1 : depth;
    deepest = Math.max(deepest, inner);
    if (isNode(own)) {
      const names = Object.keys(own);
      const required = requiredBy(part);
      properties += names.length;
      for (const name of names) {
        characters += name.length;
        if (!required.has(name)) optional++;
      }
    }
    if (Array.isArray(part["anyOf"]) || (Array.isArray(type) && type.length > 1)) unions++;
    if (Array.isArray(values)) {
      enumValues += values.length;
      const texts = values.reduce<number>((sum, value) => sum + textLength(value), 0);
      characters += texts;
      if (values.length > LARGE_ENUM) largeEnum = Math.max(largeEnum, texts);
    }
    if (Object.hasOwn(part, "const")) characters += textLength(part["const"]);
    if (isNode(part["$defs"])) {
      for (const name of Object.keys(part["$defs"])) characters += name.length;
    }
    eachChild(part, (child, keyword) => step(child, keyword === "$defs" ? 0 : inner));
  }

  step(schema, 0);
  const required = isNode(schema) && Array.isArray(schema["required"])
    ? schema["required"].length
    : 0;
  return {
    properties,
    optional,
    unions,
    depth: deepest,
    enumValues,
    characters,
    largeEnum,
    required,
  };
}

function textLength(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}
