/** Converts arguments between an exported schema's form and the form of the tool's own schema. */

import { isOfType } from "../schema/mod.ts";
import {
  isObject,
  jsonEqual,
  type JsonSchema,
  type JsonSchemaObject,
  once,
  setOwn,
} from "../tool/mod.ts";
import { resolverOf } from "./transform/references.ts";
import { eachChild, eachNode, type Mark, type Trace } from "./transform/rewrite.ts";

/** The changes to undo in values of an exported schema. */
export interface ArgumentRewrite {
  /** The exported schema. */
  readonly schema: JsonSchemaObject;
  /** The changes by part of the schema, including parts that contain or reference changed ones. */
  readonly marks: ReadonlyMap<unknown, Mark>;
  /** The targets of the references in the schema. */
  readonly targets: ReadonlyMap<unknown, JsonSchema | undefined>;
}

/** The number of levels of a value that are compared with the branches of a union. */
const MAX_LOOK = 4;

/** The maximum number of parts of a value that are compared with a branch. Further parts match. */
const MAX_LOOKS = 10_000;

export function rewriteOf(schema: JsonSchema, trace: Trace): ArgumentRewrite | undefined {
  if (!isObject(schema)) return undefined;
  const resolve = resolverOf(schema);
  const marks = new Map<JsonSchemaObject, Mark>();
  const targets = new Map<unknown, JsonSchema | undefined>();
  const leadHere = new Map<JsonSchemaObject, JsonSchemaObject[]>();
  const lead = (to: JsonSchema | undefined, from: JsonSchemaObject): void => {
    if (isObject(to)) once(leadHere, to, () => []).push(from);
  };
  eachNode(trace, schema, (node) => {
    const mark = trace.markOf(node);
    if (mark !== undefined) marks.set(node, mark);
    eachChild(node, (child) => lead(child, node));
    if (!Object.hasOwn(node, "$ref")) return;
    targets.set(node["$ref"], resolve(node["$ref"]));
    lead(targets.get(node["$ref"]), node);
  });
  // A map's iterator also visits entries that are added meanwhile.
  for (const [node] of marks) {
    for (const from of leadHere.get(node) ?? []) if (!marks.has(from)) marks.set(from, {});
  }
  return marks.size === 0 ? undefined : { schema, marks, targets };
}

interface Look extends Pick<ArgumentRewrite, "targets"> {
  left: number;
}

/** True if a value looks like one branch of a union, by its type, keys and constants. */
function resembles(schema: unknown, value: unknown, depth: number, look: Look): boolean {
  if (!isObject(schema)) return schema !== false;
  if (depth < 0 || --look.left < 0) return true;
  const inner = (part: unknown, item: unknown): boolean => resembles(part, item, depth - 1, look);
  if (Object.hasOwn(schema, "$ref")) return inner(look.targets.get(schema["$ref"]) ?? true, value);
  const { type, enum: values, properties, required, anyOf, items } = schema;
  const types = type === undefined || Array.isArray(type) ? type : [type];
  if (types !== undefined && !types.some((one) => isOfType(one, value))) {
    return schema["nullable"] === true && value === null;
  }
  if (Object.hasOwn(schema, "const") && !jsonEqual(schema["const"], value)) return false;
  if (Array.isArray(values) && !values.some((one) => jsonEqual(one, value))) return false;
  if (Array.isArray(anyOf) && !anyOf.some((one) => inner(one, value))) return false;
  if (Array.isArray(value) && isObject(items)) {
    return value.slice(0, 16).every((item) => inner(items, item));
  }
  if (!isObject(value)) return true;
  if (Array.isArray(required) && !required.every((key) => Object.hasOwn(value, String(key)))) {
    return false;
  }
  if (!isObject(properties)) return true;
  return Object.keys(value).every((key) =>
    Object.hasOwn(properties, key)
      ? inner(properties[key], value[key])
      : schema["additionalProperties"] !== false
  );
}

/** The maximum depth. Deeper parts stay unchanged, and validation rejects them. */
const MAX_DEPTH = 256;

/** Adds the parts that also apply to a value: of each union, the first matching branch. */
function applying(
  { marks, targets }: ArgumentRewrite,
  parts: readonly JsonSchemaObject[],
  fits: (branch: unknown) => boolean,
): readonly JsonSchemaObject[] {
  const found = new Set(parts);
  const add = (part: unknown): void =>
    void (marks.has(part) && found.add(part as JsonSchemaObject));
  // A set's iterator also visits items that are added meanwhile.
  for (const { $ref, allOf, anyOf, oneOf } of found) {
    add(targets.get($ref));
    if (Array.isArray(allOf)) allOf.forEach(add);
    for (const branches of [anyOf, oneOf]) {
      if (Array.isArray(branches) && branches.some((one) => marks.has(one))) {
        add(branches.find(fits));
      }
    }
  }
  return [...found];
}

/**
 * Converts the arguments of a call, as the model wrote them, into the form of the tool's own schema.
 * Nulls of absent properties are removed; renamed keys and values that were sent as text are
 * restored. Parts that do not fit the schema stay unchanged, for validation to report. The value is
 * not modified.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { decodeArguments, exportTools } from "@plue/tools/formats";
 *
 * const parameters = { type: "object", properties: { unit: { type: "string" } } } as const;
 * const tool = defineTool({ name: "weather", description: "Tells the weather.", parameters });
 * const { names } = exportTools([tool], "openai.strict");
 * assert.deepEqual(decodeArguments({ unit: null }, names.encodingOf("weather")?.input), {});
 * ```
 *
 * @param rewrite The changes of the export: `names.encodingOf(id)?.input`.
 */
export function decodeArguments(value: unknown, rewrite: ArgumentRewrite | undefined): unknown {
  return rewrite === undefined ? value : decode(value, [rewrite.schema], rewrite, 0);
}

function decode(
  value: unknown,
  schemas: readonly JsonSchemaObject[],
  rewrite: ArgumentRewrite,
  depth: number,
): unknown {
  if (schemas.length === 0 || depth > MAX_DEPTH) return value;
  const { marks, targets } = rewrite;
  const parts = applying(
    rewrite,
    schemas,
    (branch) => resembles(branch, value, MAX_LOOK, { targets, left: MAX_LOOKS }),
  );
  if (typeof value === "string") {
    const stands = parts.map((part) => marks.get(part)?.values?.get(value));
    return stands.find((one) => one !== undefined) ?? value;
  }
  if (Array.isArray(value)) {
    return eachItem(value, parts, marks, (item, own) => decode(item, own, rewrite, depth + 1));
  }
  if (!isObject(value)) return value;
  const changes = parts.map((part) => marks.get(part) ?? {});
  const result: Record<string, unknown> = {};
  let changed = false;
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === null && changes.some(({ nulls }) => nulls?.has(key) === true)) {
      changed = true;
      continue;
    }
    const inner = decode(item, schemasOf(parts, key, marks), rewrite, depth + 1);
    const name = changes.find(({ keys }) => keys?.has(key))?.keys?.get(key) ?? key;
    if (inner !== item || name !== key) changed = true;
    setOwn(result, name, inner);
  }
  return changed ? result : value;
}

function eachItem(
  value: readonly unknown[],
  parts: readonly JsonSchemaObject[],
  marks: ArgumentRewrite["marks"],
  step: (item: unknown, schemas: readonly JsonSchemaObject[]) => unknown,
): readonly unknown[] {
  const list = value.map((item, index) => {
    const schemas = parts.map(({ prefixItems, items }) =>
      Array.isArray(prefixItems) && index < prefixItems.length ? prefixItems[index] : items
    );
    return step(item, schemas.filter((part): part is JsonSchemaObject => marks.has(part)));
  });
  return list.some((item, index) => item !== value[index]) ? list : value;
}

function schemasOf(
  parts: readonly JsonSchemaObject[],
  key: string,
  marks: ArgumentRewrite["marks"],
): readonly JsonSchemaObject[] {
  const schemas = parts.map(({ properties, additionalProperties }) =>
    isObject(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties
  );
  return schemas.filter((part): part is JsonSchemaObject => marks.has(part));
}

/** The inverse of {@linkcode decodeArguments}, for examples and for calls of your own. */
export function encodeArguments(value: unknown, rewrite: ArgumentRewrite | undefined): unknown {
  if (rewrite === undefined) return value;
  const work = { left: MAX_WRITES };
  return encode(value, [rewrite.schema], { rewrite, depth: 0, levels: Infinity, work });
}

/** The maximum number of parts of a value that are encoded, in all attempts together. */
const MAX_WRITES = 100_000;

interface Reach {
  readonly rewrite: ArgumentRewrite;
  /** The depth of the part in the value. */
  readonly depth: number;
  /** The number of levels to write: the levels that a branch compares, or all. */
  readonly levels: number;
  /** The number of parts that may still be written. */
  readonly work: { left: number };
}

function encode(value: unknown, schemas: readonly JsonSchemaObject[], reach: Reach): unknown {
  const { rewrite, depth, levels, work } = reach;
  if (schemas.length === 0 || levels < 0 || depth > MAX_DEPTH || --work.left < 0) return value;
  const { marks, targets } = rewrite;
  // Branches describe encoded values. So the first levels of the value are encoded for each branch
  // before they are compared.
  const look = { ...reach, depth: depth + 1, levels: Math.min(levels, MAX_LOOK) };
  const parts = applying(rewrite, schemas, (branch) => {
    const written = marks.has(branch) ? encode(value, [branch as JsonSchemaObject], look) : value;
    return resembles(branch, written, look.levels, { targets, left: MAX_LOOKS });
  });
  const below = { ...reach, depth: depth + 1, levels: levels - 1 };
  if (Array.isArray(value)) {
    return eachItem(value, parts, marks, (item, own) => encode(item, own, below));
  }
  const changes = parts.map((part) => marks.get(part) ?? {});
  if (!isObject(value)) {
    const texts = changes.flatMap(({ values = [] }) => [...values]);
    return texts.find(([, stands]) => jsonEqual(stands, value))?.[0] ?? value;
  }
  const names = new Map(
    changes.flatMap(({ keys = [] }) => [...keys]).map(([sent, own]) => [own, sent]),
  );
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const name = names.get(key) ?? key;
    setOwn(result, name, encode(value[key], schemasOf(parts, name, marks), below));
  }
  for (const name of changes.flatMap(({ nulls = [] }) => [...nulls])) {
    if (!Object.hasOwn(result, name)) setOwn(result, name, null);
  }
  return result;
}
