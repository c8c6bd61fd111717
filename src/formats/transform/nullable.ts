/**
 * Optional properties as required ones that may be `null`, for targets that know no optional
 * properties, and `null` as the flag `nullable`, for targets that know no type `null`.
 *
 * @module
 */

import { isSchema } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { cameFrom, mark } from "./origin.ts";
import { type Resolve, resolverOf } from "./definitions.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { changed, copyNode, mapSchema, requiredBy, type Spot, without } from "./rewrite.ts";

/** The descriptions that stay outside when a schema is wrapped in a union. */
const WORDS: ReadonlySet<string> = new Set([
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
]);

/**
 * Whether a schema accepts `null`. Keywords about texts, lists and objects say nothing of it.
 *
 * @param resolve What references in the schema mean. A reference that leads outside accepts nothing.
 * @param known The answers for schemas that references led to: each is looked at once.
 */
export function acceptsNull(
  schema: JsonSchema,
  resolve: Resolve,
  known?: Map<JsonSchema, boolean>,
): boolean {
  if (!isObject(schema)) return schema;
  const { type, enum: values, anyOf, oneOf, allOf, not } = schema;
  if (type !== undefined && type !== "null" && !(Array.isArray(type) && type.includes("null"))) {
    return false;
  }
  if (Array.isArray(values) && !values.includes(null)) return false;
  if (Object.hasOwn(schema, "const") && schema["const"] !== null) return false;
  if (Object.hasOwn(schema, "$ref")) {
    const target = resolve(schema["$ref"]) ?? false;
    known ??= new Map();
    let accepted = known.get(target);
    if (accepted === undefined) {
      // A reference that leads back to its own place accepts nothing by itself.
      known.set(target, false);
      known.set(target, accepted = acceptsNull(target, resolve, known));
    }
    if (!accepted) return false;
  }
  const accepts = (part: unknown): boolean => !isSchema(part) || acceptsNull(part, resolve, known);
  if (Array.isArray(anyOf) && !anyOf.some(accepts)) return false;
  if (Array.isArray(oneOf) && oneOf.filter(accepts).length !== 1) return false;
  if (Array.isArray(allOf) && !allOf.every(accepts)) return false;
  if (isSchema(not) && accepts(not)) return false;
  const condition = schema["if"];
  return !isSchema(condition) || accepts(schema[accepts(condition) ? "then" : "else"]);
}

const NOWHERE: Resolve = () => undefined;

/** The schema with `null` accepted too. */
export function acceptNull(node: JsonSchemaObject, resolve: Resolve = NOWHERE): JsonSchemaObject {
  if (acceptsNull(node, resolve)) return node;
  const { type, enum: values } = node;
  const simple = (typeof type === "string" || Array.isArray(type)) &&
    !["$ref", "const", "anyOf", "oneOf", "allOf", "not", "if"].some((keyword) =>
      Object.hasOwn(node, keyword)
    );
  if (simple) {
    const types: readonly unknown[] = Array.isArray(type) ? type : [type];
    return changed(node, {
      ...(!types.includes("null") && { type: [...types, "null"] }),
      ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
    });
  }
  const only = Object.keys(node).every((key) => key === "anyOf" || WORDS.has(key));
  if (only && Array.isArray(node["anyOf"])) {
    return changed(node, { anyOf: [...node["anyOf"], { type: "null" }] });
  }
  return wrap(node, (inner) => [inner, { type: "null" }]);
}

/** Puts a schema into a union and keeps the words about it outside. */
export function wrap(
  node: JsonSchemaObject,
  branches: (inner: JsonSchemaObject) => readonly JsonSchema[],
): JsonSchemaObject {
  const outer: Record<string, unknown> = {};
  const inner = copyNode(node);
  for (const word of WORDS) {
    if (!Object.hasOwn(node, word)) continue;
    outer[word] = node[word];
    delete inner[word];
  }
  outer["anyOf"] = branches(inner);
  cameFrom(outer, node);
  return outer;
}

/**
 * Makes every property required; one that was optional accepts `null` in place of being left out.
 * Where a property accepted `null` already, `null` stays `null` and leaving it out cannot be
 * expressed.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { optionalToNullable } from "@plue/tools/formats";
 *
 * const { schema } = optionalToNullable({ type: "object", properties: { unit: { type: "string" } } });
 * assert.deepEqual(schema, {
 *   type: "object",
 *   properties: { unit: { type: ["string", "null"] } },
 *   required: ["unit"],
 * });
 * ```
 */
export function optionalToNullable(schema: JsonSchema): TransformResult {
  return transformed(schema, optionalToNullableIn);
}

/** {@linkcode optionalToNullable} inside a chain of transforms. */
export function optionalToNullableIn(root: JsonSchema, report: Report): JsonSchema {
  // What becomes required inside a schema does not change whether it accepts null.
  const resolve = resolverOf(root);
  return mapSchema(root, {
    leave: (node, spot) => {
      const properties = node["properties"];
      if (!isObject(properties)) return node;
      const names = Object.keys(properties);
      const required = requiredBy(node);
      const optional = names.filter((name) => !required.has(name));
      if (optional.length === 0 && Array.isArray(node["required"])) return node;
      const made = { ...properties };
      const nulls = new Set<string>();
      for (const name of optional) {
        const property = properties[name] as JsonSchema;
        if (!isObject(property) || acceptsNull(property, resolve)) {
          report.add(node, spot, {
            keyword: "properties",
            step: name,
            action: "replaced",
            grade: "ambiguous",
            narrows: true,
            message: `"${name}" may be left out or null; here it must be null`,
          });
        } else {
          setOwn(made, name, acceptNull(property, resolve));
          nulls.add(name);
        }
      }
      const others = [...required].map(String).filter((name) => !Object.hasOwn(properties, name));
      const copy = changed(node, { properties: made, required: [...names, ...others] });
      if (nulls.size > 0) mark(copy, { nulls });
      return copy;
    },
  });
}

/**
 * Writes the type `null` as the flag `nullable`, and a list of types as a union: the form of
 * OpenAPI 3.0 and of Gemini's typed schema.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { nullToFlag } from "@plue/tools/formats";
 *
 * const { schema } = nullToFlag({ type: ["string", "null"] });
 * assert.deepEqual(schema, { type: "string", nullable: true });
 * ```
 */
export function nullToFlag(schema: JsonSchema): TransformResult {
  return transformed(schema, nullToFlagIn);
}

/** {@linkcode nullToFlag} inside a chain of transforms. */
export function nullToFlagIn(root: JsonSchema, report: Report): JsonSchema {
  // On the way down, so that a union is rewritten before its branch that is only null.
  return mapSchema(root, { enter: (node, spot) => flagNull(node, spot, report) });
}

function flagNull(node: JsonSchemaObject, spot: Spot, report: Report): JsonSchemaObject {
  let result = node;
  if (Array.isArray(result["enum"]) && result["enum"].includes(null)) {
    const values = result["enum"].filter((value) => value !== null);
    result = changed(
      result,
      values.length > 0 ? { enum: values } : { enum: undefined, type: "null" },
    );
    // Without a type, the enum alone allowed the null.
    if (result["type"] === undefined) result = changed(result, { nullable: true });
  }
  const branches = result["anyOf"];
  if (Array.isArray(branches) && branches.some(isOnlyNull)) {
    const others: unknown[] = branches.filter((branch) => !isOnlyNull(branch));
    const copy = changed(result, { anyOf: undefined, nullable: true });
    const only = others[0];
    if (others.length === 1 && isObject(only) && noneShared(copy, only)) {
      const merged = { ...only, ...copy };
      cameFrom(merged, only);
      return flagNull(merged, spot, report);
    }
    result = changed(copy, others.length > 0 ? { anyOf: others } : { type: "null" });
  }
  const type = result["type"];
  if (Array.isArray(type)) {
    const types = type.filter((one) => one !== "null");
    const copy = copyNode(result);
    if (types.length < type.length && types.length > 0) copy["nullable"] = true;
    if (types.length <= 1) copy["type"] = types[0] ?? "null";
    else if (Array.isArray(copy["anyOf"])) delete copy["type"];
    else {
      const { nullable, ...inner } = copy;
      const union = wrap(inner, (bare) =>
        types.map((one) => {
          const branch: Record<string, unknown> = { ...bare, type: one };
          cameFrom(branch, node);
          return branch;
        }));
      const made: Record<string, unknown> = nullable === true ? { ...union, nullable } : union;
      cameFrom(made, node);
      return made;
    }
    result = copy;
  }
  if (result["type"] === "null") {
    report.add(node, spot, {
      keyword: Object.hasOwn(node, "type") ? "type" : "enum",
      action: "replaced",
      grade: "weakened",
      widens: true,
      message: "a value that is always null is sent as a string that may be null",
    });
    return changed(without(result, "const", "enum"), { type: "string", nullable: true });
  }
  return result;
}

function isOnlyNull(schema: unknown): boolean {
  return isObject(schema) &&
    (schema["type"] === "null" || schema["const"] === null ||
      (Array.isArray(schema["enum"]) && schema["enum"].length === 1 && schema["enum"][0] === null));
}

function noneShared(a: JsonSchemaObject, b: JsonSchemaObject): boolean {
  return Object.keys(a).every((key) => !Object.hasOwn(b, key) || key === "description");
}
