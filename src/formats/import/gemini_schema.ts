/**
 * Gemini's typed schema as JSON Schema: type names in capitals, `nullable`, lengths as texts,
 * `example`, and Vertex's `ref` and `defs`.
 *
 * @module
 */

import { type JsonSchemaObject, pointerStep, setOwn } from "../../tool/mod.ts";
import { acceptNull } from "../transform/nullable.ts";
import { isMembers, type Members } from "./fields.ts";

const TYPES: ReadonlyMap<unknown, string> = new Map(
  ["string", "number", "integer", "boolean", "array", "object", "null"].map((type) => [
    type.toUpperCase(),
    type,
  ]),
);

/** 64-bit numbers are texts in the JSON of a proto. */
const LENGTHS: ReadonlySet<string> = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);

/** Whether a schema is a typed one: it, or something that it holds, names its type in capitals. */
export function isTypedSchema(schema: unknown): boolean {
  if (!isMembers(schema)) return false;
  const { type, nullable, properties, items } = schema;
  if (TYPES.has(type) || type === "TYPE_UNSPECIFIED" || typeof nullable === "boolean") return true;
  return isMembers(properties) && Object.values(properties).some(isTypedSchema) ||
    isTypedSchema(items);
}

/** Translates a typed schema; `wrong` is told of a length that is no number. */
export function readTypedSchema(
  schema: Members,
  wrong: (path: string, keyword: string) => void,
  path = "",
): JsonSchemaObject {
  const result: Record<string, unknown> = {};
  const read = (value: unknown, at: string): unknown =>
    isMembers(value) ? readTypedSchema(value, wrong, path + at) : value;
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword];
    if (LENGTHS.has(keyword)) {
      const length = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
      if (typeof length === "number") result[keyword] = length;
      else wrong(`${path}/${keyword}`, keyword);
      continue;
    }
    switch (keyword) {
      case "type":
        if (value !== "TYPE_UNSPECIFIED") result["type"] = TYPES.get(value) ?? value;
        break;
      case "nullable":
        break;
      case "example":
        if (!Object.hasOwn(schema, "examples")) result["examples"] = [value];
        break;
      case "ref":
        result["$ref"] = typeof value === "string"
          ? value.replace(/^#\/defs\//, "#/$defs/")
          : value;
        break;
      case "items":
        result["items"] = read(value, "/items");
        break;
      case "anyOf":
        result["anyOf"] = Array.isArray(value)
          ? value.map((branch, index) => read(branch, `/anyOf/${index}`))
          : value;
        break;
      case "properties":
      case "defs":
      case "additionalProperties":
        result[keyword === "defs" ? "$defs" : keyword] = keyword === "additionalProperties"
          ? read(value, `/${keyword}`)
          : readMap(value, (item, name) => read(item, `/${keyword}${pointerStep(name)}`));
        break;
      default:
        setOwn(result, keyword, value);
    }
  }
  return schema["nullable"] === true ? acceptNull(result) : result;
}

function readMap(value: unknown, read: (item: unknown, name: string) => unknown): unknown {
  if (!isMembers(value)) return value;
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(value)) setOwn(result, name, read(value[name], name));
  return result;
}
