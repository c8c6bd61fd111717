/**
 * Gemini's typed schema as JSON Schema: type names in capitals, `nullable`, lengths as texts,
 * `example`, and Vertex's `ref` and `defs`.
 *
 * @module
 */

import { type JsonSchemaObject, pointerStep, setOwn } from "../../tool/mod.ts";
import { acceptNull } from "../transform/nullable.ts";
import { LENGTHS } from "../transform/typed_schema.ts";
import { isMembers, type Members } from "./fields.ts";

const TYPES: ReadonlyMap<unknown, string> = new Map(
  ["string", "number", "integer", "boolean", "array", "object", "null"].map((type) => [
    type.toUpperCase(),
    type,
  ]),
);

/** How many schemas are looked at. A typed one names its type at the root, or soon after. */
const MAX_LOOKED_AT = 10_000;

/** Whether a schema is a typed one: it, or something that it holds, names its type in capitals. */
export function isTypedSchema(schema: unknown): boolean {
  const schemas: unknown[] = [schema];
  const add = (found: unknown): void => {
    if (schemas.length < MAX_LOOKED_AT) schemas.push(found);
  };
  // What is added while the list is walked is walked too.
  for (const at of schemas) {
    if (!isMembers(at)) continue;
    const { type, nullable, properties, items } = at;
    if (TYPES.has(type) || type === "TYPE_UNSPECIFIED" || typeof nullable === "boolean") {
      return true;
    }
    add(items);
    if (isMembers(properties)) { for (const key of Object.keys(properties)) add(properties[key]); }
  }
  return false;
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
