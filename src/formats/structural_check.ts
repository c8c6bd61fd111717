/**
 * Whether a value has the structure that a schema asks for. It needs no engine, and
 * judges what engines agree on: types, keys, constants, lengths and ranges. What it leaves to them
 * (`pattern`, `format`, `not`, conditions) it takes for granted, so that a "no" is always right.
 *
 * @module
 */

import { detectDialect } from "../schema/mod.ts";
import type { JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import { jsonEqual } from "./transform/json_equal.ts";
import { resolveReference } from "./transform/references.ts";
import { isNode, isSchema } from "./transform/schema_walk.ts";
import { fitsType } from "./value_type.ts";

/** How much is compared: schemas, constants, characters. What takes more is taken for a misfit. */
const MAX_STEPS = 100_000;

/** How deep a value and the references on the way to it are followed. */
const MAX_DEPTH = 128;

/** Whether `value` has the structure of `schema`. `false` is certain, except beyond the bounds. */
export function fitsStructure(schema: JsonSchema, value: unknown): boolean {
  return new Check(schema).fits(schema, value, 0);
}

class Check {
  readonly #root: JsonSchema;
  /** In draft-07 nothing counts beside a `$ref`. */
  readonly #refsAlone: boolean;
  readonly #targets = new Map<unknown, JsonSchema | undefined>();
  #steps = 0;

  constructor(root: JsonSchema) {
    this.#root = root;
    this.#refsAlone = detectDialect(root) === "draft-07";
  }

  fits(schema: JsonSchema, value: unknown, depth: number): boolean {
    if (typeof schema === "boolean") return schema;
    if (++this.#steps > MAX_STEPS || depth > MAX_DEPTH) return false;
    if (this.#refsAlone && Object.hasOwn(schema, "$ref")) {
      return this.#fitsPart(this.#target(schema["$ref"]), value, depth);
    }
    return fitsType(schema["type"], value) && this.#fitsConstants(schema, value) &&
      this.#fitsOthers(schema, value, depth) &&
      (typeof value === "string"
        ? this.#fitsLength(schema, value)
        : typeof value === "number"
        ? fitsRange(schema, value)
        : Array.isArray(value)
        ? this.#fitsItems(schema, value, depth)
        : !isNode(value) || this.#fitsProperties(schema, value, depth));
  }

  /** A member that is a schema; what is none says nothing. */
  #fitsPart(schema: unknown, value: unknown, depth: number): boolean {
    return !isSchema(schema) || this.fits(schema, value, depth + 1);
  }

  #fitsConstants(schema: JsonSchemaObject, value: unknown): boolean {
    if (Object.hasOwn(schema, "const") && !jsonEqual(schema["const"], value)) return false;
    const values = schema["enum"];
    if (!Array.isArray(values)) return true;
    this.#steps += values.length;
    return values.some((one) => jsonEqual(one, value));
  }

  #fitsLength({ minLength, maxLength }: JsonSchemaObject, text: string): boolean {
    if (minLength === undefined && maxLength === undefined) return true;
    this.#steps += text.length;
    if (this.#steps > MAX_STEPS) return false;
    let points = 0;
    for (const _point of text) points++;
    return isBetween(points, minLength, maxLength);
  }

  #fitsOthers(schema: JsonSchemaObject, value: unknown, depth: number): boolean {
    const { $ref, allOf } = schema;
    if ($ref !== undefined && !this.#fitsPart(this.#target($ref), value, depth)) return false;
    if (Array.isArray(allOf) && !allOf.every((part) => this.#fitsPart(part, value, depth))) {
      return false;
    }
    // Of `oneOf` more branches may look right than are: one is enough here.
    return [schema["anyOf"], schema["oneOf"]].every((branches) =>
      !Array.isArray(branches) || branches.some((part) => this.#fitsPart(part, value, depth))
    );
  }

  #target(ref: unknown): JsonSchema | undefined {
    if (!this.#targets.has(ref)) this.#targets.set(ref, resolveReference(this.#root, ref));
    return this.#targets.get(ref);
  }

  #fitsItems(schema: JsonSchemaObject, list: readonly unknown[], depth: number): boolean {
    if (!isBetween(list.length, schema["minItems"], schema["maxItems"])) return false;
    const { prefixItems, items } = schema;
    const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : [];
    return list.every((item, index) =>
      this.#fitsPart(index < first.length ? first[index] : items, item, depth)
    );
  }

  #fitsProperties(schema: JsonSchemaObject, value: JsonSchemaObject, depth: number): boolean {
    const { required, patternProperties, additionalProperties } = schema;
    const keys = Object.keys(value);
    if (!isBetween(keys.length, schema["minProperties"], schema["maxProperties"])) return false;
    if (Array.isArray(required) && !required.every((key) => Object.hasOwn(value, String(key)))) {
      return false;
    }
    const declared = isNode(schema["properties"]) ? schema["properties"] : {};
    // Whether a pattern matches a key is for an engine to say.
    const rest = patternProperties === undefined ? additionalProperties : true;
    return keys.every((key) =>
      this.#fitsPart(Object.hasOwn(declared, key) ? declared[key] : rest, value[key], depth)
    );
  }
}

function fitsRange(schema: JsonSchemaObject, value: number): boolean {
  const { exclusiveMinimum, exclusiveMaximum } = schema;
  return isBetween(value, schema["minimum"], schema["maximum"]) &&
    !(typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) &&
    !(typeof exclusiveMaximum === "number" && value >= exclusiveMaximum);
}

function isBetween(count: number, least: unknown, most: unknown): boolean {
  return !(typeof least === "number" && count < least) &&
    !(typeof most === "number" && count > most);
}
