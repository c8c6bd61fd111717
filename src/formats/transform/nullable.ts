/**
 * Optional properties as required ones that may be `null`, for targets that know no optional
 * properties, and `null` as the flag `nullable`, for targets that know no type `null`.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { cameFrom, mark } from "./origin.ts";
import { type Resolve, resolverOf } from "./references.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import {
  copyMap,
  copyNode,
  isNode,
  isSchema,
  mapSchema,
  type Spot,
  without,
} from "./schema_walk.ts";

/** What describes a schema and stays outside when the schema is wrapped. */
const WORDS = ["title", "description", "default", "examples", "deprecated"] as const;

/**
 * Whether a schema accepts `null`. Keywords about texts, lists and objects say nothing of it.
 *
 * @param resolve What references in the schema mean. One that means nothing here accepts nothing.
 * @param known What is known of the schemas that references led to: each is looked at once.
 */
export function acceptsNull(
  schema: JsonSchema,
  resolve: Resolve,
  known?: Map<JsonSchema, boolean>,
): boolean {
  if (!isNode(schema)) return schema;
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
    const copy = copyNode(node);
    const types: readonly unknown[] = Array.isArray(type) ? type : [type];
    if (!types.includes("null")) copy["type"] = [...types, "null"];
    if (Array.isArray(values) && !values.includes(null)) copy["enum"] = [...values, null];
    return copy;
  }
  if (
    Array.isArray(node["anyOf"]) && Object.keys(node).every((key) => key === "anyOf" || isWord(key))
  ) {
    const copy = copyNode(node);
    copy["anyOf"] = [...node["anyOf"], { type: "null" }];
    return copy;
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

function isWord(keyword: string): boolean {
  return (WORDS as readonly string[]).includes(keyword);
}

/**
 * Makes every property required; one that was optional accepts `null` in place of being left out.
 * Where a property accepted `null` already, `null` stays `null` and leaving it out cannot be said
 * any more.
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
  return transformed(schema, requireAll);
}

/** {@linkcode optionalToNullable} inside a chain of transforms. */
export function requireAll(root: JsonSchema, report: Report): JsonSchema {
  // What becomes required inside a schema does not change whether it accepts null.
  const resolve = resolverOf(root);
  return mapSchema(root, { leave: (node, spot) => requireAllOf(node, spot, report, resolve) });
}

function requireAllOf(
  node: JsonSchemaObject,
  spot: Spot,
  report: Report,
  resolve: Resolve,
): JsonSchemaObject {
  const properties = node["properties"];
  if (!isNode(properties)) return node;
  const names = Object.keys(properties);
  const required = new Set(Array.isArray(node["required"]) ? node["required"] : []);
  const optional = names.filter((name) => !required.has(name));
  if (optional.length === 0 && Array.isArray(node["required"])) return node;
  const changed = copyMap(properties);
  const nulls = new Set<string>();
  for (const name of optional) {
    const property = properties[name] as JsonSchema;
    if (!isNode(property) || acceptsNull(property, resolve)) {
      report.add(node, spot, {
        keyword: "properties",
        step: name,
        action: "replaced",
        grade: "ambiguous",
        narrows: true,
        message: `"${name}" may be left out or null; here it must be null`,
      });
    } else {
      setOwn(changed, name, acceptNull(property, resolve));
      nulls.add(name);
    }
  }
  const copy = copyNode(node);
  copy["properties"] = changed;
  copy["required"] = [
    ...names,
    ...[...required].filter((name) => !Object.hasOwn(properties, name)),
  ];
  if (nulls.size > 0) mark(copy, { nulls });
  return copy;
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
  return transformed(schema, flagNulls);
}

/** {@linkcode nullToFlag} inside a chain of transforms. */
export function flagNulls(root: JsonSchema, report: Report): JsonSchema {
  // On the way down: a branch that is only null belongs to its union.
  return mapSchema(root, { enter: (node, spot) => flagNull(node, spot, report) });
}

function flagNull(node: JsonSchemaObject, spot: Spot, report: Report): JsonSchemaObject {
  let result = node;
  if (Array.isArray(result["enum"]) && result["enum"].includes(null)) {
    const copy = copyNode(result);
    const values = result["enum"].filter((value) => value !== null);
    if (values.length > 0) copy["enum"] = values;
    else {
      delete copy["enum"];
      copy["type"] = "null";
    }
    // Without a type, the enum alone allowed the null.
    if (copy["type"] === undefined) copy["nullable"] = true;
    result = copy;
  }
  const branches = result["anyOf"];
  if (Array.isArray(branches) && branches.some(isOnlyNull)) {
    const others: unknown[] = branches.filter((branch) => !isOnlyNull(branch));
    const copy = copyNode(result);
    delete copy["anyOf"];
    copy["nullable"] = true;
    const only = others[0];
    if (others.length === 1 && isNode(only) && noneShared(copy, only)) {
      const merged = { ...only, ...copy };
      cameFrom(merged, only);
      return flagNull(merged, spot, report);
    }
    if (others.length > 0) copy["anyOf"] = others;
    else copy["type"] = "null";
    result = copy;
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
    const copy = copyNode(without(result, "const", "enum"));
    copy["type"] = "string";
    copy["nullable"] = true;
    return copy;
  }
  return result;
}

function isOnlyNull(schema: unknown): boolean {
  return isNode(schema) &&
    (schema["type"] === "null" || schema["const"] === null ||
      (Array.isArray(schema["enum"]) && schema["enum"].length === 1 && schema["enum"][0] === null));
}

function noneShared(a: JsonSchemaObject, b: JsonSchemaObject): boolean {
  return Object.keys(a).every((key) => !Object.hasOwn(b, key) || key === "description");
}
