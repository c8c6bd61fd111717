/**
 * Keywords that are replaced by others: boolean schemas by objects, `const` by `enum`, an `enum` of
 * numbers by one of texts, exclusive bounds by inclusive ones, tuples by lists.
 *
 * @module
 */

import { isSchema } from "../../schema/mod.ts";
import {
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  type JsonValue,
  setOwn,
} from "../../tool/mod.ts";
import { leaveOut } from "./describe_constraints.ts";
import { distinct, includesValue } from "./json_equal.ts";
import { cameFrom, mark, type Place, stoodAt } from "./origin.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { changed, copyNode, HOLDS, mapSchema, requiredBy, type Spot, without } from "./rewrite.ts";

/** Every target takes a boolean as the value of these. */
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
  return transformed(schema, booleansToObjectsIn);
}

/** {@linkcode booleansToObjects} inside a chain of transforms. */
export function booleansToObjectsIn(root: JsonSchema): JsonSchema {
  const result = mapSchema(root, { enter: writeBooleans });
  return typeof result === "boolean" ? plain(result) : result;
}

/** A boolean schema as an object, which remembers where the boolean stood. */
function plain(schema: JsonSchema, place?: Place): JsonSchema {
  if (typeof schema !== "boolean") return schema;
  const made: JsonSchemaObject = schema ? {} : { not: {} };
  if (place !== undefined) stoodAt(made, place);
  return made;
}

function writeBooleans(node: JsonSchemaObject): JsonSchemaObject {
  let result = node;
  const set = (keyword: string, value: unknown): void => {
    result = changed(result, { [keyword]: value });
  };
  for (const keyword of Object.keys(node)) {
    const value = node[keyword];
    const shape = HOLDS.get(keyword)?.shape;
    if (Array.isArray(value) && shape === "schemas") {
      if (!value.some((item) => typeof item === "boolean")) continue;
      const skips = keyword === "anyOf" || keyword === "oneOf";
      const list = value.flatMap((item: JsonSchema, step) =>
        skips && item === false ? [] : [plain(item, { node, keyword, step })]
      );
      set(keyword, list.length === 0 ? [plain(false, { node, keyword })] : list);
    } else if (shape === "map") {
      if (!isObject(value) || !Object.values(value).some((item) => typeof item === "boolean")) {
        continue;
      }
      const closed = keyword === "properties" && node["additionalProperties"] === false &&
        !isObject(node["patternProperties"]);
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
        result = changed(result, { maxItems: 0 }, { maxItems: keyword });
      }
    } else if (typeof value === "boolean" && shape === "schema" && !USUAL.has(keyword)) {
      set(keyword, plain(value, { node, keyword }));
    }
  }
  return result;
}

/**
 * Rewrites `const` as an `enum` of one value. Both accept the same.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { constToEnum } from "@plue/tools/formats";
 *
 * assert.deepEqual(constToEnum({ const: "c" }).schema, { enum: ["c"] });
 * ```
 */
export function constToEnum(schema: JsonSchema): TransformResult {
  return transformed(schema, constToEnumIn);
}

/** {@linkcode constToEnum} inside a chain of transforms. */
export function constToEnumIn(root: JsonSchema): JsonSchema {
  return mapSchema(root, {
    leave: (node) => {
      if (!Object.hasOwn(node, "const")) return node;
      const values = node["enum"];
      // Beside an `enum` that lacks it, nothing fits.
      if (Array.isArray(values) && !includesValue(values, node["const"])) {
        return false;
      }
      const renamed = Object.hasOwn(node, "enum") ? undefined : { enum: "const" };
      return changed(node, { const: undefined, enum: [node["const"]] }, renamed);
    },
  });
}

/**
 * Rewrites an `enum` of numbers or booleans as one of texts, and remembers what each text stands
 * for. An `enum` that cannot be written so (lists, objects, `1` beside `"1"`, the empty text) is
 * said in the description, which is reported.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { enumToText } from "@plue/tools/formats";
 *
 * const { schema } = enumToText({ type: "integer", enum: [1, 2] });
 * assert.deepEqual(schema, { type: "string", enum: ["1", "2"] });
 * ```
 */
export function enumToText(schema: JsonSchema): TransformResult {
  return transformed(schema, (root, report) => enumToTextIn(root, report, true));
}

/** {@linkcode enumToText} inside a chain of transforms. */
export function enumToTextIn(root: JsonSchema, report: Report, describe: boolean): JsonSchema {
  return mapSchema(root, {
    leave: (node, spot) => {
      const values = node["enum"];
      if (!Array.isArray(values)) return node;
      const texts = values.map((value) => typeof value === "object" ? null : String(value));
      const possible = texts.every((text) => text !== null && text !== "") &&
        new Set(texts).size === texts.length;
      if (!possible) {
        const message = '"enum" may only hold texts that are not empty';
        return leaveOut(node, "enum", spot, report, describe, message);
      }
      if (
        values.every((value) => typeof value === "string") && node["type"] === "string"
      ) return node;
      // Bounds of the number say nothing about its text.
      const bare = without(node, "minimum", "maximum", "multipleOf", "format");
      const copy = changed(bare, { type: "string", enum: texts });
      const stands = new Map<string, JsonValue>();
      values.forEach((value: JsonValue, index) => {
        if (typeof value !== "string") stands.set(texts[index] as string, value);
      });
      if (stands.size > 0) mark(copy, { values: stands });
      return copy;
    },
  });
}

/**
 * Rewrites `exclusiveMinimum` and `exclusiveMaximum` as `minimum` and `maximum`. For integers
 * both say the same; for other numbers the bound itself is accepted, which is reported.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { exclusiveToInclusive } from "@plue/tools/formats";
 *
 * const { schema } = exclusiveToInclusive({ type: "integer", exclusiveMinimum: 0 });
 * assert.deepEqual(schema, { type: "integer", minimum: 1 });
 * ```
 */
export function exclusiveToInclusive(schema: JsonSchema): TransformResult {
  return transformed(schema, exclusiveToInclusiveIn);
}

/** {@linkcode exclusiveToInclusive} inside a chain of transforms. */
export function exclusiveToInclusiveIn(root: JsonSchema, report: Report): JsonSchema {
  return mapSchema(root, {
    leave: (node, spot) => {
      const low = include(node, spot, report, "exclusiveMinimum", "minimum", 1);
      return include(low, spot, report, "exclusiveMaximum", "maximum", -1);
    },
  });
}

function include(
  node: JsonSchemaObject,
  spot: Spot,
  report: Report,
  exclusive: "exclusiveMinimum" | "exclusiveMaximum",
  inclusive: "minimum" | "maximum",
  step: 1 | -1,
): JsonSchemaObject {
  const bound = node[exclusive];
  if (typeof bound !== "number") return node;
  const whole = isWhole(node["type"]);
  // The next integer beyond the bound; above 2^53 there may be none that a number can hold.
  const next = step === 1 ? Math.floor(bound) + 1 : Math.ceil(bound) - 1;
  const exact = whole && Number.isSafeInteger(next);
  const value = exact ? next : bound;
  const other = node[inclusive];
  const otherWins = typeof other === "number" && (step === 1 ? other > bound : other < bound);
  if (!exact && !otherWins) {
    report.add(node, spot, {
      keyword: exclusive,
      action: "replaced",
      grade: "weakened",
      widens: true,
      message: `"${exclusive}" is sent as "${inclusive}": the bound itself is let in`,
    });
  }
  if (typeof other !== "number") {
    const changes = { [exclusive]: undefined, [inclusive]: value };
    return changed(node, changes, { [inclusive]: exclusive });
  }
  const tighter = step === 1 ? Math.max(other, value) : Math.min(other, value);
  return changed(node, { [exclusive]: undefined, [inclusive]: tighter });
}

function isWhole(type: unknown): boolean {
  if (type === "integer") return true;
  return Array.isArray(type) && type.includes("integer") && !type.includes("number");
}

/**
 * Rewrites `prefixItems` as `items` that accept what any of them accepts. Where `items: false`
 * bounded the tuple, `maxItems` does.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { tuplesToLists } from "@plue/tools/formats";
 *
 * const { schema } = tuplesToLists({
 *   type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false,
 * });
 * assert.deepEqual(schema, {
 *   type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] }, maxItems: 2,
 * });
 * ```
 */
export function tuplesToLists(schema: JsonSchema): TransformResult {
  return transformed(schema, tuplesToListsIn);
}

/** {@linkcode tuplesToLists} inside a chain of transforms. */
export function tuplesToListsIn(root: JsonSchema, report: Report): JsonSchema {
  return mapSchema(root, {
    leave: (node, spot) => {
      const tuple = node["prefixItems"];
      if (!Array.isArray(tuple)) return node;
      const rest = isSchema(node["items"]) ? node["items"] : true;
      const closed = rest === false;
      // If nothing is said about the other items, `items` would accept anything and hide the tuple.
      const told = rest !== true && !closed;
      const branches = distinct<unknown>(told ? [...tuple, rest] : tuple);
      report.add(node, spot, {
        keyword: "prefixItems",
        action: "replaced",
        grade: "weakened",
        widens: branches.length > 1 || !closed,
        narrows: rest === true,
        message: "a tuple is sent as a list: which item stands where is not said",
      });
      const union = { anyOf: branches };
      cameFrom(union, node);
      const items = branches.length === 1 ? branches[0] : union;
      const max = node["maxItems"];
      const maxItems = Math.min(typeof max === "number" ? max : Infinity, tuple.length);
      return changed(node, { prefixItems: undefined, items, ...(closed && { maxItems }) });
    },
  });
}

/** Adds `items: {}` to arrays that do not say what they hold; both mean the same. */
export function addItems(root: JsonSchema): JsonSchema {
  return mapSchema(root, {
    leave: (node) => lacksItems(node) ? changed(node, { items: {} }) : node,
  });
}

/** Whether a schema describes arrays and does not say what they hold. */
export function lacksItems(node: JsonSchemaObject): boolean {
  const { type } = node;
  return (type === "array" || (Array.isArray(type) && type.includes("array"))) &&
    !Object.hasOwn(node, "items");
}

/** The keys that hold 64-bit integers, which JSON has as texts. */
export const LENGTHS: ReadonlySet<string> = new Set(
  "minItems maxItems minLength maxLength minProperties maxProperties".split(" "),
);

/** Writes type names in capitals, lengths as texts, and the first of the examples as `example`. */
export function asTypedSchema(root: JsonSchema): JsonSchema {
  return mapSchema(root, {
    leave: (node) => {
      const copy = copyNode(node);
      if (typeof copy["type"] === "string") copy["type"] = copy["type"].toUpperCase();
      for (const keyword of LENGTHS) {
        if (typeof copy[keyword] === "number") copy[keyword] = String(copy[keyword]);
      }
      const examples = copy["examples"];
      delete copy["examples"];
      if (Array.isArray(examples) && examples.length > 0 && !Object.hasOwn(copy, "example")) {
        copy["example"] = examples[0];
      }
      return copy;
    },
  });
}
