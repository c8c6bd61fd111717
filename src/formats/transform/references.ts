/** Resolves the references in one schema, and finds, moves and removes their targets. */

import * as schemas from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, once, setOwn } from "../../tool/mod.ts";
import { changed, eachNode, mapOf, mapSchema, type Trace, without } from "./rewrite.ts";

/** Returns the target of a `$ref`, or `undefined` if the target is not in the schema. */
export type Resolve = (ref: unknown) => JsonSchema | undefined;

/** Resolves references from the root, or from the first embedded document with the target. */
export function resolverOf(root: JsonSchema): Resolve {
  const found = new Map<string, JsonSchema | undefined>();
  let index: schemas.ReferenceIndex | undefined;
  let named = false;
  return (ref) => {
    if (typeof ref !== "string") return undefined;
    if (found.has(ref)) return found.get(ref);
    // Names are indexed once, and only for references that are not a path from the root.
    index ??= new schemas.ReferenceIndex(root, "2020-12");
    let target = index.resolve(ref, schemas.ROOT_URI);
    if (target === undefined) {
      if (!named) schemas.indexSchemas(index, root);
      named = true;
      target = schemas.resolveAnywhere(index, ref);
    }
    const schema = schemas.isSchema(target?.schema) ? target.schema : undefined;
    found.set(ref, schema);
    return schema;
  };
}

/** Creates the function that returns the rewritten target of a reference. */
export function referenceTargets(
  trace: Trace,
  root: JsonSchema,
  rewrite: (target: JsonSchema, depth: number) => JsonSchema,
): (ref: unknown, depth: number) => JsonSchema | undefined {
  const resolve = resolverOf(root);
  const rewritten = new Map<JsonSchema, JsonSchema>();
  let recursive: ReadonlySet<string> | undefined;
  return (ref, depth) => {
    const target = resolve(ref);
    if (target === undefined) return undefined;
    recursive ??= findReferences(trace, root).recursive;
    if (recursive.has(String(ref))) return undefined;
    return once(rewritten, target, () => rewrite(target, depth + 1));
  };
}

/** Returns a schema without its names and definitions, so that the schema can be moved. */
export function withoutNames(trace: Trace, schema: JsonSchema): JsonSchema {
  return isObject(schema)
    ? without(trace, schema, "$defs", "definitions", "$id", "$anchor", "$dynamicAnchor")
    : schema;
}

export interface References {
  /** References to schemas that refer to themselves, directly or through other schemas. */
  readonly recursive: ReadonlySet<string>;
  /** References without a target in this schema. */
  readonly external: ReadonlySet<string>;
}

export function findReferences(trace: Trace | undefined, root: JsonSchema): References {
  const resolve = resolverOf(root);
  const targets = new Map<string, JsonSchemaObject>();
  const external = new Set<string>();
  eachNode(trace, root, (node) => {
    const ref = node["$ref"];
    if (typeof ref !== "string" || targets.has(ref) || external.has(ref)) return;
    const target = resolve(ref);
    if (target === undefined) external.add(ref);
    else if (isObject(target)) targets.set(ref, target);
  });
  const leads = new Map<JsonSchemaObject, Set<JsonSchemaObject>>();
  for (const target of targets.values()) {
    if (leads.has(target)) continue; // Two references may have the same target.
    const next = new Set<JsonSchemaObject>();
    leads.set(target, next);
    eachNode(trace, target, (node) => {
      const to = typeof node["$ref"] === "string" ? targets.get(node["$ref"]) : undefined;
      if (to !== undefined) next.add(to);
    });
  }
  const looping = nodesOnCycles(leads);
  const recursive = new Set<string>();
  for (const [ref, target] of targets) if (looping.has(target)) recursive.add(ref);
  return { recursive, external };
}

/** Returns the nodes on and between cycles. Removes nodes without edges in or out, repeatedly. */
function nodesOnCycles<Node>(leads: ReadonlyMap<Node, ReadonlySet<Node>>): ReadonlySet<Node> {
  const back = new Map<Node, Set<Node>>();
  for (const node of leads.keys()) back.set(node, new Set());
  for (const [node, next] of leads) for (const to of next) back.get(to)?.add(node);
  const left = new Set(leads.keys());
  for (const [from, to] of [[leads, back], [back, leads]] as const) {
    const count = new Map([...left].map((node) => {
      return [node, [...from.get(node) ?? []].filter((other) => left.has(other)).length];
    }));
    const ends = [...left].filter((node) => count.get(node) === 0);
    // The loop also visits nodes that are added to the list.
    for (const node of ends) {
      left.delete(node);
      for (const other of to.get(node) ?? []) {
        if (!left.has(other)) continue;
        count.set(other, (count.get(other) ?? 0) - 1);
        if (count.get(other) === 0) ends.push(other);
      }
    }
  }
  return left;
}

/** Returns the name of a reference's target in `$defs`, or `undefined` for other targets. */
export function definitionName(ref: unknown): string | undefined {
  const steps = typeof ref === "string" ? schemas.fragmentSteps(ref) : undefined;
  return steps?.length === 2 && steps[0] === "$defs" ? steps[1] : undefined;
}

/** Moves the targets of references to the root's `$defs`, so that passes may move other parts. */
export function hoistReferences(trace: Trace, root: JsonSchema): JsonSchema {
  if (!isObject(root)) return root;
  const names = new Map<JsonSchema, string>();
  const existing = mapOf(root["$defs"]);
  for (const name of Object.keys(existing)) names.set(existing[name] as JsonSchema, name);
  const extra = new Map<string, JsonSchemaObject>();
  const nameOf = (target: JsonSchemaObject): string => {
    let name = names.get(target);
    if (name === undefined) {
      let number = names.size + 1;
      do name = `schema${number++}`; while (Object.hasOwn(existing, name) || extra.has(name));
      names.set(target, name);
      extra.set(name, target);
    }
    return name;
  };
  const resolve = resolverOf(root);
  const rewrite = (part: JsonSchema): JsonSchema =>
    mapSchema(trace, part, {
      enter: (node, spot) => {
        const target = Object.hasOwn(node, "$ref") ? resolve(node["$ref"]) : undefined;
        const inner = spot.root && part === root
          ? node
          : without(trace, node, "$defs", "definitions");
        if (!isObject(target) || target === root) return inner;
        const ref = schemas.fragment(["$defs", nameOf(target)]);
        return ref === inner["$ref"] ? inner : changed(trace, inner, { $ref: ref });
      },
    });
  const result = rewrite(root);
  if (extra.size === 0 || !isObject(result)) return result;
  const definitions = { ...mapOf(result["$defs"]) };
  // The rewrite of a target may add targets, which the map's iterator also visits.
  for (const [name, target] of extra) setOwn(definitions, name, rewrite(target));
  return changed(trace, result, { $defs: definitions });
}

export function pruneDefinitions(trace: Trace, root: JsonSchema): JsonSchema {
  if (!isObject(root) || !isObject(root["$defs"])) return root;
  const definitions = root["$defs"];
  const used = new Set<string>();
  let whole = false;
  const collect = (part: JsonSchema): void =>
    eachNode(trace, part, (node) => {
      const ref = node["$ref"];
      if (typeof ref !== "string" || ref === "#") return;
      const name = definitionName(ref);
      if (name === undefined) whole = true;
      else used.add(name);
    });
  collect(without(trace, root, "$defs"));
  // A set's iterator also visits items that are added during the loop.
  for (const name of used) {
    const target = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
    if (isObject(target)) collect(target);
  }
  const names = Object.keys(definitions);
  if (whole || names.every((name) => used.has(name))) return root;
  const kept: Record<string, unknown> = {};
  for (const name of names) if (used.has(name)) setOwn(kept, name, definitions[name]);
  return changed(trace, root, { $defs: Object.keys(kept).length > 0 ? kept : undefined });
}

/** Rewrites the local references of a schema without an `$id` for a position in a document. */
export function rebaseReferences(schema: JsonSchema, steps: readonly string[]): JsonSchema {
  if (isObject(schema) && Object.hasOwn(schema, "$id")) return schema;
  return mapSchema(undefined, schema, {
    leave: (node) => {
      const inner = typeof node["$ref"] === "string"
        ? schemas.fragmentSteps(node["$ref"])
        : undefined;
      return inner === undefined ? node : { ...node, $ref: schemas.fragment([...steps, ...inner]) };
    },
  });
}
