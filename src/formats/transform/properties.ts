/** Passes for properties: optional and nullable properties, open objects, and illegal keys. */

import { isSchema } from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { isLegalName, mapNames } from "../../select/mod.ts";
import type { Resolve } from "./references.ts";
import * as rewriting from "./rewrite.ts";
import { changed } from "./rewrite.ts";
import type { Context } from "./report.ts";

/** The keywords that stay outside when a schema is wrapped in a union. */
const WORDS = new Set("title description default examples deprecated".split(" "));

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
      // Until the result is known, a reference from the target to itself does not accept `null`.
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

/** Returns a schema that also accepts `null`. */
export function acceptNull(
  trace: rewriting.Trace | undefined,
  node: JsonSchemaObject,
  resolve: Resolve = NOWHERE,
): JsonSchemaObject {
  if (acceptsNull(node, resolve)) return node;
  const { type, enum: values } = node;
  const simple = (typeof type === "string" || Array.isArray(type)) &&
    !["$ref", "const", "anyOf", "oneOf", "allOf", "not", "if"].some((keyword) =>
      Object.hasOwn(node, keyword)
    );
  if (simple) {
    const types: readonly unknown[] = Array.isArray(type) ? type : [type];
    return changed(trace, node, {
      ...(!types.includes("null") && { type: [...types, "null"] }),
      ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
    });
  }
  const only = Object.keys(node).every((key) => key === "anyOf" || WORDS.has(key));
  if (only && Array.isArray(node["anyOf"])) {
    return changed(trace, node, { anyOf: [...node["anyOf"], { type: "null" }] });
  }
  return wrap(trace, node, (inner) => [inner, { type: "null" }]);
}

/** Moves a schema into a union. Its description stays outside of the union. */
function wrap(
  trace: rewriting.Trace | undefined,
  node: JsonSchemaObject,
  branches: (inner: JsonSchemaObject) => readonly JsonSchema[],
): JsonSchemaObject {
  const outer: Record<string, unknown> = {};
  const inner = rewriting.copyNode(trace, node);
  for (const word of WORDS) {
    if (!Object.hasOwn(node, word)) continue;
    outer[word] = node[word];
    delete inner[word];
  }
  outer["anyOf"] = branches(inner);
  trace?.cameFrom(outer, node);
  return outer;
}

/** Makes every property required. An optional property accepts `null` instead of being absent. */
export function optionalToNullable(
  node: JsonSchemaObject,
  { trace, report, resolve }: Context,
  spot: rewriting.Spot,
): JsonSchema {
  // The subschemas are converted already, which does not change whether they accept `null`.
  const properties = node["properties"];
  if (!isObject(properties)) return node;
  const names = Object.keys(properties);
  const required = rewriting.requiredBy(node);
  const optional = names.filter((name) => !required.has(name));
  if (optional.length === 0 && Array.isArray(node["required"])) return node;
  const made = { ...properties };
  const nulls = new Set<string>();
  for (const name of optional) {
    const property = properties[name] as JsonSchema;
    if (!isObject(property) || acceptsNull(property, resolve)) {
      const message = `"${name}" may be absent or null; here it must be null`;
      const note = { step: name, grade: "ambiguous", narrows: true } as const;
      report.add(node, spot, "properties", message, note);
    } else {
      setOwn(made, name, acceptNull(trace, property, resolve));
      nulls.add(name);
    }
  }
  const others = [...required].map(String).filter((name) => !Object.hasOwn(properties, name));
  const copy = changed(trace, node, { properties: made, required: [...names, ...others] });
  if (nulls.size > 0) trace.mark(copy, { nulls });
  return copy;
}

/** Writes `null` as the flag `nullable`, and a list of types as a union. */
export function nullToFlag(
  node: JsonSchemaObject,
  context: Context,
  spot: rewriting.Spot,
): JsonSchemaObject {
  const { trace, report } = context;
  let result = node;
  if (Array.isArray(result["enum"]) && result["enum"].includes(null)) {
    const values = result["enum"].filter((value) => value !== null);
    const changes = values.length > 0 ? { enum: values } : { enum: undefined, type: "null" };
    result = changed(trace, result, changes);
    // Without a type, only the enum allowed `null`, so the flag is set.
    if (result["type"] === undefined) result = changed(trace, result, { nullable: true });
  }
  const branches = result["anyOf"];
  if (Array.isArray(branches) && branches.some(isOnlyNull)) {
    const others: unknown[] = branches.filter((branch) => !isOnlyNull(branch));
    const copy = changed(trace, result, { anyOf: undefined, nullable: true });
    const only = others[0];
    if (others.length === 1 && isObject(only) && noneShared(copy, only)) {
      const merged = { ...only, ...copy };
      trace.cameFrom(merged, only);
      return nullToFlag(merged, context, spot);
    }
    result = changed(trace, copy, others.length > 0 ? { anyOf: others } : { type: "null" });
  }
  const type = result["type"];
  if (Array.isArray(type)) {
    const types = type.filter((one) => one !== "null");
    const copy = rewriting.copyNode(trace, result);
    if (types.length < type.length && types.length > 0) copy["nullable"] = true;
    if (types.length <= 1) copy["type"] = types[0] ?? "null";
    else if (Array.isArray(copy["anyOf"])) delete copy["type"];
    else {
      const { nullable, ...inner } = copy;
      const union = wrap(trace, inner, (bare) =>
        types.map((one) => {
          const branch: Record<string, unknown> = { ...bare, type: one };
          trace.cameFrom(branch, node);
          return branch;
        }));
      const made: Record<string, unknown> = nullable === true ? { ...union, nullable } : union;
      trace.cameFrom(made, node);
      return made;
    }
    result = copy;
  }
  if (result["type"] === "null") {
    const keyword = Object.hasOwn(node, "type") ? "type" : "enum";
    const message = "a value that is always null is sent as a string that may be null";
    report.add(node, spot, keyword, message);
    return changed(trace, rewriting.without(trace, result, "const", "enum"), {
      type: "string",
      nullable: true,
    });
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

/** Returns true if a schema describes objects, and perhaps other values. */
export function describesObjects(node: JsonSchemaObject): boolean {
  const { type } = node;
  return type === "object" || (Array.isArray(type) && type.includes("object")) ||
    (type === undefined && isObject(node["properties"]));
}

/** Closes every object: properties that the schema does not name cannot be sent. */
export function closeObjects(
  node: JsonSchemaObject,
  { trace, report }: Context,
  spot: rewriting.Spot,
): JsonSchema {
  if (!describesObjects(node)) return node;
  // The transforms of the providers' SDKs always write `properties`, even if it is empty.
  const named = isObject(node["properties"]) ? node : changed(trace, node, { properties: {} });
  if (node["additionalProperties"] === false) return named;
  const isOpen = Object.hasOwn(node, "additionalProperties");
  const message = isOpen
    ? "the schema allows additional properties, but the provider does not"
    : "the schema does not exclude additional properties, but the provider does";
  const grade = isOpen ? "lost" : "weakened";
  report.add(node, spot, "additionalProperties", message, { grade, narrows: true });
  return changed(trace, named, { additionalProperties: false });
}

/** Renames illegal property keys. A key has one new name everywhere, and new names are unique. */
export function renameKeys(root: JsonSchema, { trace, report, keys: rule }: Context): JsonSchema {
  if (rule === undefined) return root;
  const keys = new Set<string>();
  rewriting.eachNode(trace, root, (node) => {
    for (const key of keysIn(node)) keys.add(key);
  });
  const all = [...keys];
  if (all.every((key) => isLegalName(key, rule))) return root;
  const names = mapNames(all, rule);
  const nameOf = (key: string): string => names.get(key) ?? key;
  return rewriting.mapSchema(trace, root, {
    leave: (node, spot) => {
      const properties = rewriting.mapOf(node["properties"]);
      const renamed = keysIn(node).filter((key) => nameOf(key) !== key);
      if (renamed.length === 0) return node;
      const rename = (key: unknown): string => nameOf(String(key));
      const changes: Record<string, unknown> = {};
      for (const keyword of MAPS) {
        const map = node[keyword];
        if (!isObject(map)) continue;
        const change = (value: unknown): unknown =>
          keyword === "dependentRequired" && Array.isArray(value) ? value.map(rename) : value;
        changes[keyword] = renameMap(map, nameOf, change);
      }
      for (const keyword of ["required", "propertyOrdering"]) {
        const list = node[keyword];
        if (Array.isArray(list)) changes[keyword] = list.map(rename);
      }
      const copy = changed(trace, node, changes);
      trace.mark(copy, { keys: new Map(renamed.map((key) => [nameOf(key), key])) });
      const open = node["additionalProperties"] !== false ||
        Object.hasOwn(node, "patternProperties") || Object.hasOwn(node, "propertyNames");
      if (!open) return copy;
      for (const key of new Set(renamed)) {
        const keyword = Object.hasOwn(properties, key) ? "properties" : "required";
        const sent = nameOf(key);
        const message = `"${key}" is sent as "${sent}"; the model may write both names`;
        const note = { step: key, grade: "ambiguous", widens: true, narrows: true } as const;
        report.add(node, spot, keyword, message, note);
      }
      return copy;
    },
  });
}

/** The keywords that hold a map from property keys. */
const MAPS = ["properties", "dependentRequired", "dependentSchemas"] as const;

function keysIn(node: JsonSchemaObject): readonly string[] {
  const keys: string[] = [];
  for (const keyword of MAPS) {
    const map = node[keyword];
    if (isObject(map)) keys.push(...Object.keys(map));
  }
  const lists: unknown[] = [node["required"]];
  if (isObject(node["dependentRequired"])) lists.push(...Object.values(node["dependentRequired"]));
  for (const list of lists) if (Array.isArray(list)) keys.push(...list.map(String));
  return keys;
}

function renameMap(
  map: { readonly [key: string]: unknown },
  nameOf: (key: string) => string,
  change: (value: unknown) => unknown,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(map)) setOwn(result, nameOf(key), change(map[key]));
  return result;
}
