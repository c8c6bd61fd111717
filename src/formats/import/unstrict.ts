/**
 * OpenAI's strict mode read backwards: a required property that accepts `null` as an optional one.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, setOwn } from "../../tool/mod.ts";
import { rewriteOf } from "../argument_rewrite.ts";
import { encodeArguments } from "../rewrite_arguments.ts";
import { acceptsNull } from "../transform/nullable.ts";
import { mark, originOf, traced } from "../transform/origin.ts";
import { type Resolve, resolverOf } from "../transform/references.ts";
import { copyMap, copyNode, isNode, isSchema, mapSchema } from "../transform/schema_walk.ts";
import type { Members } from "./fields.ts";

/** A strict schema, read backwards. */
export interface Unstrict {
  /** The schema in which what could be `null` may be left out instead. */
  readonly schema: JsonSchemaObject;
  /** Arguments of that schema, with the nulls that the strict one wants. */
  putBack(args: Members): Members;
}

/**
 * Reads a strict schema backwards.
 *
 * @returns What came out, or `undefined` if there is nothing to relax.
 */
export function nullableToOptional(strict: JsonSchemaObject): Unstrict | undefined {
  // What is relaxed is marked on the strict schema, and the marks last as long as the trace.
  const { schema, rewrite } = traced(() => {
    const resolve = resolverOf(strict);
    const schema = mapSchema(strict, { leave: (node) => relax(node, resolve) });
    return { schema, rewrite: rewriteOf(strict) };
  }).result;
  if (schema === strict || !isNode(schema)) return undefined;
  // An object stays one: only what is missing in it is added.
  return { schema, putBack: (args) => encodeArguments(args, rewrite) as Members };
}

function relax(node: JsonSchemaObject, resolve: Resolve): JsonSchemaObject {
  const { properties, required } = node;
  if (!isNode(properties) || !Array.isArray(required)) return node;
  const optional = required.filter((name): name is string => {
    const property = typeof name === "string" && Object.hasOwn(properties, name)
      ? properties[name]
      : undefined;
    return isNode(property) && acceptsNull(property, resolve) &&
      withoutNull(property) !== undefined;
  });
  if (optional.length === 0) return node;
  mark(originOf(node, "properties").node, { nulls: new Set(optional) });
  const relaxed = copyMap(properties);
  for (const name of optional) {
    setOwn(relaxed, name, withoutNull(properties[name] as JsonSchemaObject));
  }
  const copy = copyNode(node);
  copy["properties"] = relaxed;
  copy["required"] = required.filter((name) => !optional.includes(name));
  return copy;
}

/** The schema without `null`, or `undefined` if that is not a matter of leaving it out. */
function withoutNull(node: JsonSchemaObject): JsonSchema | undefined {
  const { type, anyOf, enum: values } = node;
  if (Array.isArray(type)) {
    const types = type.filter((one) => one !== "null");
    if (types.length === 0) return undefined;
    const copy = copyNode(node);
    copy["type"] = types.length === 1 ? types[0] : types;
    if (Array.isArray(values)) copy["enum"] = values.filter((value) => value !== null);
    return copy;
  }
  if (!Array.isArray(anyOf)) return undefined;
  const branches = anyOf.filter((branch) => !(isNode(branch) && branch["type"] === "null"));
  if (branches.length === 0 || branches.length === anyOf.length) return undefined;
  const copy = copyNode(node);
  const [only] = branches;
  if (branches.length > 1) {
    copy["anyOf"] = branches;
    return copy;
  }
  delete copy["anyOf"];
  // The union only held the null: what is left takes its place, with the words beside it.
  return Object.keys(copy).length === 0 && isSchema(only)
    ? only
    : isNode(only)
    ? { ...only, ...copy }
    : undefined;
}
