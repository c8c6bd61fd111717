/**
 * The properties of an object schema that is put together with `allOf` and references, as one list.
 *
 * @module
 */

import { jsonEqual } from "../../transform/json_equal.ts";
import { isNode, isSchema } from "../../transform/schema_walk.ts";
import type { JsonSchema } from "../../../tool/mod.ts";
import type { ReadSchema, SchemaReader } from "./schemas.ts";

/** The properties of a schema. */
export interface FlatObject {
  readonly properties: ReadonlyMap<string, unknown>;
  readonly required: ReadonlySet<string>;
  readonly refs: ReadonlySet<string>;
}

/** Keywords that say nothing about which objects are right. */
const WORDS: ReadonlySet<string> = new Set([
  "title",
  "description",
  "default",
  "example",
  "examples",
  "deprecated",
  "discriminator",
  "xml",
  "externalDocs",
  "$comment",
  "$defs",
  "readOnly",
  "writeOnly",
]);

/**
 * The properties of an input schema; `undefined` if the schema says more than a list of properties
 * can say, or is open to any property.
 */
export function flattenObject(read: ReadSchema, reader: SchemaReader): FlatObject | undefined {
  const properties = new Map<string, unknown>();
  const required = new Set<string>();
  const seen = new Set<JsonSchema>();

  /** `alone`: nothing stands beside it, so that it may be closed. */
  function collect(schema: JsonSchema, alone: boolean): boolean {
    if (!isNode(schema)) return schema === true;
    if (seen.has(schema)) return true;
    seen.add(schema);
    const { $ref, allOf } = schema;
    for (const keyword of Object.keys(schema)) {
      const value = schema[keyword];
      switch (keyword) {
        case "type":
          if (value !== "object") return false;
          break;
        case "additionalProperties":
          if (value !== false || !alone || allOf !== undefined || $ref !== undefined) return false;
          break;
        case "properties":
          if (!isNode(value)) return false;
          for (const name of Object.keys(value)) {
            if (properties.has(name) && !jsonEqual(properties.get(name), value[name])) return false;
            properties.set(name, value[name]);
          }
          break;
        case "required":
          if (!Array.isArray(value)) return false;
          for (const name of value) required.add(name);
          break;
        case "allOf":
          if (!Array.isArray(value) || !value.every((branch) => collect(branch, false))) {
            return false;
          }
          break;
        case "$ref": {
          const definition = reader.definition(value, "input");
          if (definition === undefined) return false;
          if (!collect(definition.schema, alone && Object.keys(schema).length === 1)) return false;
          break;
        }
        default:
          if (!WORDS.has(keyword) && !keyword.startsWith("x-")) return false;
      }
    }
    return true;
  }

  if (!collect(read.schema, true) || properties.size === 0) return undefined;
  if (![...required].every((name) => properties.has(name))) return undefined;
  const refs = new Set<string>();
  for (const property of properties.values()) {
    for (const ref of isSchema(property) ? reader.refsOf(property) : []) refs.add(ref);
  }
  return { properties, required, refs };
}
