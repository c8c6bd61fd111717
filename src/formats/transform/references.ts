/**
 * References inside one schema. Nothing outside of it is ever fetched.
 *
 * @module
 */

import { type JsonSchema, type JsonSchemaObject, pointerStep, setOwn } from "../../tool/mod.ts";
import {
  copyMap,
  copyNode,
  eachNode,
  isNode,
  isSchema,
  mapSchema,
  without,
} from "./schema_walk.ts";

/** The steps of a JSON Pointer that is written as a fragment, or `undefined` if it is none. */
export function fragmentSteps(ref: string): string[] | undefined {
  if (ref === "#") return [];
  if (!ref.startsWith("#/")) return undefined;
  let pointer: string;
  try {
    pointer = decodeURIComponent(ref.slice(2));
  } catch {
    return undefined;
  }
  return pointer.split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** A JSON Pointer as a fragment. */
export function fragment(steps: readonly string[]): string {
  return `#${
    steps.map((step) => encodeURI(pointerStep(step)).replaceAll("#", "%23").replaceAll("?", "%3F"))
      .join("")
  }`;
}

/**
 * The schema that a `$ref` in `root` means: a JSON Pointer, an `$anchor`, or an `$id`.
 *
 * @returns The schema, or `undefined` if there is none in `root`.
 */
export function resolveReference(root: JsonSchema, ref: unknown): JsonSchema | undefined {
  if (typeof ref !== "string") return undefined;
  const steps = fragmentSteps(ref);
  if (steps !== undefined) {
    let at: unknown = root;
    for (const step of steps) {
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, step)) return undefined;
      at = (at as Record<string, unknown>)[step];
    }
    return isSchema(at) ? at : undefined;
  }
  let found: JsonSchemaObject | undefined;
  eachNode(root, (node) => {
    const matches = ref.startsWith("#")
      ? node["$anchor"] === ref.slice(1) || node["$dynamicAnchor"] === ref.slice(1)
      : node["$id"] === ref;
    if (matches) found ??= node;
  });
  return found;
}

/** Where the references of a schema lead, by their text. */
export interface References {
  /** Those that lead to a schema that contains them, or leads back to itself. */
  readonly recursive: ReadonlySet<string>;
  /** Those that lead nowhere in this schema. */
  readonly external: ReadonlySet<string>;
}

const NO_REFERENCES: References = { recursive: new Set(), external: new Set() };

/** Finds the references of `root` that are recursive, and those that lead outside. */
export function findReferences(root: JsonSchema): References {
  const targets = new Map<string, JsonSchemaObject>();
  const external = new Set<string>();
  eachNode(root, (node) => {
    const ref = node["$ref"];
    if (typeof ref !== "string" || targets.has(ref) || external.has(ref)) return;
    const target = resolveReference(root, ref);
    if (target === undefined) external.add(ref);
    else if (isNode(target)) targets.set(ref, target);
  });
  if (targets.size === 0 && external.size === 0) return NO_REFERENCES;
  // What each reference's target refers to, so that a loop shows as a reference in its own reach.
  const direct = new Map<string, ReadonlySet<string>>();
  for (const [ref, target] of targets) {
    const refs = new Set<string>();
    eachNode(target, (node) => {
      if (typeof node["$ref"] === "string") refs.add(node["$ref"]);
    });
    direct.set(ref, refs);
  }
  const recursive = new Set<string>();
  for (const start of targets.keys()) {
    const seen = new Set<string>();
    const open = [start];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      for (const next of direct.get(at) ?? []) {
        // Two texts may mean one schema.
        if (targets.get(next) === targets.get(start)) recursive.add(start);
        if (!seen.has(next)) {
          seen.add(next);
          open.push(next);
        }
      }
    }
  }
  return { recursive, external };
}

/** The name in `$defs` that a reference means, or `undefined` if it means something else. */
export function definitionName(ref: unknown): string | undefined {
  const steps = typeof ref === "string" ? fragmentSteps(ref) : undefined;
  return steps?.length === 2 && steps[0] === "$defs" ? steps[1] : undefined;
}

/**
 * Gives everything that is referred to a place in the root's `$defs`, so that other transforms may
 * move and change what stands elsewhere. References to the root itself stay.
 */
export function hoistReferences(root: JsonSchema): JsonSchema {
  if (!isNode(root)) return root;
  const names = new Map<JsonSchema, string>();
  const given = isNode(root["$defs"]) ? root["$defs"] : {};
  for (const name of Object.keys(given)) names.set(given[name] as JsonSchema, name);
  const extra = new Map<string, JsonSchemaObject>();
  const nameOf = (target: JsonSchemaObject): string => {
    let name = names.get(target);
    if (name === undefined) {
      let number = names.size + 1;
      do name = `schema${number++}`; while (Object.hasOwn(given, name) || extra.has(name));
      names.set(target, name);
      extra.set(name, target);
    }
    return name;
  };
  const rewrite = (part: JsonSchema): JsonSchema =>
    mapSchema(part, {
      enter: (node, spot) => {
        const target = Object.hasOwn(node, "$ref")
          ? resolveReference(root, node["$ref"])
          : undefined;
        const inner = spot.root && part === root ? node : without(node, "$defs", "definitions");
        if (!isNode(target) || target === root) return inner;
        const ref = fragment(["$defs", nameOf(target)]);
        if (ref === inner["$ref"]) return inner;
        const copy = copyNode(inner);
        copy["$ref"] = ref;
        return copy;
      },
    });
  const result = rewrite(root);
  if (extra.size === 0 || !isNode(result)) return result;
  const copy = copyNode(result);
  const definitions = isNode(result["$defs"]) ? copyMap(result["$defs"]) : {};
  // Rewriting one may find more: a map's iterator goes on to what is added.
  for (const [name, target] of extra) setOwn(definitions, name, rewrite(target));
  copy["$defs"] = definitions;
  return copy;
}

/** Leaves out the definitions of the root that nothing refers to any more. */
export function pruneDefinitions(root: JsonSchema): JsonSchema {
  if (!isNode(root) || !isNode(root["$defs"])) return root;
  const definitions = root["$defs"];
  const used = new Set<string>();
  let whole = false;
  const collect = (part: JsonSchema): void =>
    eachNode(part, (node) => {
      const ref = node["$ref"];
      if (typeof ref !== "string" || ref === "#") return;
      const name = definitionName(ref);
      if (name === undefined) whole = true;
      else used.add(name);
    });
  collect(without(root, "$defs"));
  // What is added while the set is walked is walked too.
  for (const name of used) {
    const target = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
    if (isNode(target)) collect(target);
  }
  const names = Object.keys(definitions);
  if (whole || names.every((name) => used.has(name))) return root;
  const copy = copyNode(root);
  const kept: Record<string, unknown> = {};
  for (const name of names) if (used.has(name)) setOwn(kept, name, definitions[name]);
  if (Object.keys(kept).length > 0) copy["$defs"] = kept;
  else delete copy["$defs"];
  return copy;
}

/**
 * Rewrites the local references of a schema that will stand inside another document, at the JSON
 * Pointer `steps`. A schema with an `$id` of its own is left alone: its references follow it.
 */
export function rebaseReferences(schema: JsonSchema, steps: readonly string[]): JsonSchema {
  if (isNode(schema) && Object.hasOwn(schema, "$id")) return schema;
  return mapSchema(schema, {
    leave: (node) => {
      const inner = typeof node["$ref"] === "string" ? fragmentSteps(node["$ref"]) : undefined;
      if (inner === undefined) return node;
      const copy = copyNode(node);
      copy["$ref"] = fragment([...steps, ...inner]);
      return copy;
    },
  });
}
