/**
 * `true` and `false` as schemas, in objects that mean the same.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { cameFrom, type Place, stoodAt } from "./origin.ts";
import { transformed, type TransformResult } from "./report.ts";
import { copyNode, isNode, mapSchema, requiredBy } from "./schema_walk.ts";

/** Keywords where every target takes a boolean. */
const USUAL: ReadonlySet<string> = new Set(["additionalProperties", "unevaluatedProperties"]);

/**
 * Rewrites boolean schemas: `true` as `{}`, `false` as nothing where nothing means the same (a
 * property of a closed object, a branch of `anyOf`, the rest of a list), else as `{ not: {} }`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { booleansToObjects } from "@plue/tools/formats";
 *
 * const { schema } = booleansToObjects({ properties: { any: true } });
 * assert.deepEqual(schema, { properties: { any: {} } });
 * ```
 */
export function booleansToObjects(schema: JsonSchema): TransformResult {
  return transformed(schema, writeBooleans);
}

/** {@linkcode booleansToObjects} inside a chain of transforms. */
export function writeBooleans(root: JsonSchema): JsonSchema {
  const result = mapSchema(root, { enter: (node) => writeIn(node) });
  return typeof result === "boolean" ? plain(result) : result;
}

/** A boolean schema as an object, which remembers where the boolean stood. */
function plain(schema: JsonSchema, place?: Place): JsonSchema {
  if (typeof schema !== "boolean") return schema;
  const made: JsonSchemaObject = schema ? {} : { not: {} };
  if (place !== undefined) stoodAt(made, place);
  return made;
}

function writeIn(node: JsonSchemaObject): JsonSchemaObject {
  let result = node;
  const set = (keyword: string, value: unknown): void => {
    const copy = copyNode(result);
    if (value === undefined) delete copy[keyword];
    else copy[keyword] = value;
    result = copy;
  };
  for (const keyword of Object.keys(node)) {
    const value = node[keyword];
    if (Array.isArray(value) && ["anyOf", "oneOf", "allOf", "prefixItems"].includes(keyword)) {
      if (!value.some((item) => typeof item === "boolean")) continue;
      const skips = keyword === "anyOf" || keyword === "oneOf";
      const list = value.flatMap((item: JsonSchema, step) =>
        skips && item === false ? [] : [plain(item, { node, keyword, step })]
      );
      set(keyword, list.length === 0 ? [plain(false, { node, keyword })] : list);
    } else if (["properties", "patternProperties", "$defs", "dependentSchemas"].includes(keyword)) {
      if (!isNode(value) || !Object.values(value).some((item) => typeof item === "boolean")) {
        continue;
      }
      const closed = keyword === "properties" && node["additionalProperties"] === false &&
        !isNode(node["patternProperties"]);
      const required = requiredBy(node);
      const map: Record<string, unknown> = {};
      for (const name of Object.keys(value)) {
        if (value[name] === false && closed && !required.has(name)) continue;
        setOwn(map, name, plain(value[name] as JsonSchema, { node, keyword, step: name }));
      }
      set(keyword, map);
    } else if (keyword === "items" && typeof value === "boolean") {
      const tuple = Object.hasOwn(node, "prefixItems");
      if (value) set("items", tuple ? undefined : plain(true, { node, keyword }));
      else if (!tuple) {
        set("items", plain(true, { node, keyword }));
        set("maxItems", 0);
        cameFrom(result, node, new Map([["maxItems", { node, keyword }]]));
      }
    } else if (
      typeof value === "boolean" && !USUAL.has(keyword) &&
      ["contains", "propertyNames", "not", "if", "then", "else", "unevaluatedItems"].includes(
        keyword,
      )
    ) set(keyword, plain(value, { node, keyword }));
  }
  return result;
}
