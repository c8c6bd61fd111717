/**
 * `oneOf` as `anyOf`, and whether that says the same.
 *
 * @module
 */

import type { JsonSchema, JsonSchemaObject } from "../../tool/mod.ts";
import { valueKey, valueKeys } from "./json_equal.ts";
import { cameFrom, spend } from "./origin.ts";
import { type Resolve, resolverOf } from "./references.ts";
import { type Report, transformed, type TransformResult } from "./report.ts";
import { copyNode, isNode, mapSchema } from "./schema_walk.ts";

/** How many branches are compared with each other. */
const MAX_COMPARED = 64;

/**
 * Rewrites `oneOf` as `anyOf`. Where two branches could hold at once, that accepts more, which is
 * reported; branches of different types, or told apart by a constant, never hold at once.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { oneOfToAnyOf } from "@plue/tools/formats";
 *
 * const { schema, losses } = oneOfToAnyOf({ oneOf: [{ type: "string" }, { type: "number" }] });
 * assert.deepEqual(schema, { anyOf: [{ type: "string" }, { type: "number" }] });
 * assert.deepEqual(losses, []);
 * ```
 */
export function oneOfToAnyOf(schema: JsonSchema): TransformResult {
  return transformed(schema, loosenOneOf);
}

/** {@linkcode oneOfToAnyOf} inside a chain of transforms. */
export function loosenOneOf(root: JsonSchema, report: Report): JsonSchema {
  const resolve = resolverOf(root);
  return mapSchema(root, {
    enter: (node, spot) => {
      const branches = node["oneOf"];
      if (!Array.isArray(branches)) return node;
      if (!areDisjoint(branches, resolve)) {
        report.add(node, spot, {
          keyword: "oneOf",
          action: "replaced",
          grade: "weakened",
          widens: true,
          message: '"oneOf" is sent as "anyOf": more than one branch may hold',
        });
      }
      const copy = copyNode(node);
      delete copy["oneOf"];
      if (!Object.hasOwn(copy, "anyOf")) {
        copy["anyOf"] = branches;
        cameFrom(copy, node, new Map([["anyOf", { node, keyword: "oneOf" }]]));
      } else {
        const second: Record<string, unknown> = { anyOf: branches };
        cameFrom(second, node, new Map([["anyOf", { node, keyword: "oneOf" }]]));
        copy["allOf"] = [...(Array.isArray(copy["allOf"]) ? copy["allOf"] : []), second];
      }
      return copy;
    },
  });
}

/** Whether no value can satisfy two of the branches. `false` if it cannot tell. */
export function areDisjoint(branches: readonly unknown[], resolve: Resolve): boolean {
  if (branches.length > MAX_COMPARED) return false;
  const known = branches.map((branch) =>
    outlineOf(isNode(branch) && Object.hasOwn(branch, "$ref") ? resolve(branch["$ref"]) : branch)
  );
  return known.every((one, index) =>
    known.slice(index + 1).every((two) => cannotBothHold(one, two))
  );
}

/** What tells a branch from others. What is absent is not known. */
interface Outline {
  /** Nothing fits it. */
  readonly never: boolean;
  readonly types: ReadonlySet<unknown> | undefined;
  readonly values: ReadonlySet<string> | undefined;
  /** The required properties of an object that have constants, with those. */
  readonly tags: ReadonlyMap<string, ReadonlySet<string>>;
}

const NO_TAGS: Outline["tags"] = new Map();

function outlineOf(branch: unknown): Outline {
  if (!isNode(branch)) {
    return { never: branch === false, types: undefined, values: undefined, tags: NO_TAGS };
  }
  const types = typesOf(branch);
  const onlyObjects = types?.size === 1 && types.has("object");
  return {
    never: false,
    types,
    values: valuesOf(branch),
    tags: onlyObjects ? tagsOf(branch) : NO_TAGS,
  };
}

/** The types a schema names, with `integer` as the `number` it is. */
function typesOf({ type }: JsonSchemaObject): ReadonlySet<unknown> | undefined {
  if (type === undefined) return undefined;
  const list: readonly unknown[] = Array.isArray(type) ? type : [type];
  return new Set(list.map((one) => one === "integer" ? "number" : one));
}

function valuesOf(node: JsonSchemaObject): ReadonlySet<string> | undefined {
  if (Object.hasOwn(node, "const")) return new Set([valueKey(node["const"])]);
  return Array.isArray(node["enum"]) ? valueKeys(node["enum"]) : undefined;
}

function tagsOf({ properties, required }: JsonSchemaObject): Outline["tags"] {
  if (!isNode(properties) || !Array.isArray(required)) return NO_TAGS;
  const tags = new Map<string, ReadonlySet<string>>();
  for (const name of required) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const values = isNode(property) ? valuesOf(property) : undefined;
    if (values !== undefined) tags.set(name, values);
  }
  return tags;
}

function cannotBothHold(a: Outline, b: Outline): boolean {
  if (a.never || b.never) return true;
  if (a.types !== undefined && b.types !== undefined && !shareAny(a.types, b.types)) return true;
  if (a.values !== undefined && b.values !== undefined) return !shareAny(a.values, b.values);
  // A property that both need, with different constants, tells objects apart.
  for (const [name, values] of a.tags) {
    const others = b.tags.get(name);
    if (others !== undefined && !shareAny(values, others)) return true;
  }
  return false;
}

function shareAny<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): boolean {
  const [few, many] = a.size < b.size ? [a, b] : [b, a];
  spend(few.size);
  for (const value of few) if (many.has(value)) return true;
  return false;
}
