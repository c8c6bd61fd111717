/**
 * The references of one schema: their targets, recursion, and the required definitions. Nothing
 * outside of the schema is ever fetched.
 *
 * @module
 */

import {
  type Dialect,
  fragment,
  fragmentSteps,
  indexSchemas,
  isSchema,
  ReferenceIndex,
  resolveAnywhere,
  ROOT_URI,
} from "../../schema/mod.ts";
import { isObject, type JsonSchema, type JsonSchemaObject, once, setOwn } from "../../tool/mod.ts";
import { changed, eachNode, mapOf, mapSchema, without } from "./rewrite.ts";

/** Returns the schema of a `$ref`, or `undefined` if it is outside. */
export type Resolve = (ref: unknown) => JsonSchema | undefined;

/**
 * Creates a function that resolves references in `root`: in the root, or else in the first embedded
 * document that defines them.
 */
export function resolverOf(root: JsonSchema, dialect: Dialect = "2020-12"): Resolve {
  const found = new Map<string, JsonSchema | undefined>();
  let index: ReferenceIndex | undefined;
  let named = false;
  return (ref) => {
    if (typeof ref !== "string") return undefined;
    if (found.has(ref)) return found.get(ref);
    // Names are collected once, and only if a reference is more than a path from the root.
    index ??= new ReferenceIndex(root, dialect);
    let target = index.resolve(ref, ROOT_URI);
    if (target === undefined) {
      if (!named) indexSchemas(index, root);
      named = true;
      target = resolveAnywhere(index, ref);
    }
    const schema = isSchema(target?.schema) ? target.schema : undefined;
    found.set(ref, schema);
    return schema;
  };
}

/**
 * Creates a function that returns the rewritten target of a reference, once for each target.
 *
 * @param rewrite Rewrites a target at the depth `depth`.
 * @returns The function. It returns `undefined` for a recursive or external reference.
 */
export function referenceTargets(
  root: JsonSchema,
  rewrite: (target: JsonSchema, depth: number) => JsonSchema,
): (ref: unknown, depth: number) => JsonSchema | undefined {
  const resolve = resolverOf(root);
  const rewritten = new Map<JsonSchema, JsonSchema>();
  let recursive: ReadonlySet<string> | undefined;
  return (ref, depth) => {
    const target = resolve(ref);
    if (target === undefined) return undefined;
    recursive ??= findReferences(root).recursive;
    if (recursive.has(String(ref))) return undefined;
    return once(rewritten, target, () => rewrite(target, depth + 1));
  };
}

/** Returns a schema to be moved, without its identifiers and definitions. */
export function withoutNames(schema: JsonSchema): JsonSchema {
  return isObject(schema)
    ? without(schema, "$defs", "definitions", "$id", "$anchor", "$dynamicAnchor")
    : schema;
}

/** The targets of a schema's references, by their text. */
export interface References {
  /** References to a schema that contains them or is recursive. */
  readonly recursive: ReadonlySet<string>;
  /** References that cannot be resolved in this schema. */
  readonly external: ReadonlySet<string>;
}

const NO_REFERENCES: References = { recursive: new Set(), external: new Set() };

/** Finds the recursive and the external references of `root`. */
export function findReferences(root: JsonSchema): References {
  const resolve = resolverOf(root);
  const targets = new Map<string, JsonSchemaObject>();
  const external = new Set<string>();
  eachNode(root, (node) => {
    const ref = node["$ref"];
    if (typeof ref !== "string" || targets.has(ref) || external.has(ref)) return;
    const target = resolve(ref);
    if (target === undefined) external.add(ref);
    else if (isObject(target)) targets.set(ref, target);
  });
  if (targets.size === 0 && external.size === 0) return NO_REFERENCES;
  const leads = new Map<JsonSchemaObject, Set<JsonSchemaObject>>();
  for (const target of targets.values()) {
    if (leads.has(target)) continue; // Two texts may mean one schema.
    const next = new Set<JsonSchemaObject>();
    leads.set(target, next);
    eachNode(target, (node) => {
      const to = typeof node["$ref"] === "string" ? targets.get(node["$ref"]) : undefined;
      if (to !== undefined) next.add(to);
    });
  }
  const looping = onLoops(leads);
  const recursive = new Set<string>();
  for (const [ref, target] of targets) if (looping.has(target)) recursive.add(ref);
  return { recursive, external };
}

/**
 * Returns the recursive nodes of a graph: Tarjan's strongly connected components, with an explicit
 * stack, because a chain of definitions may exhaust the runtime's.
 */
function onLoops<Node>(leads: ReadonlyMap<Node, ReadonlySet<Node>>): ReadonlySet<Node> {
  const looping = new Set<Node>();
  const number = new Map<Node, number>();
  const lowest = new Map<Node, number>();
  const unsettled: Node[] = [];
  const waiting = new Set<Node>();
  const way: { readonly node: Node; readonly next: Iterator<Node> }[] = [];
  const enter = (node: Node): void => {
    number.set(node, number.size);
    lowest.set(node, number.size - 1);
    unsettled.push(node);
    waiting.add(node);
    way.push({ node, next: (leads.get(node) ?? new Set<Node>()).values() });
  };
  const lower = (node: Node, to: number | undefined): void => {
    lowest.set(node, Math.min(lowest.get(node) ?? Infinity, to ?? Infinity));
  };
  for (const start of leads.keys()) {
    if (!number.has(start)) enter(start);
    for (let at = way.at(-1); at !== undefined; at = way.at(-1)) {
      const { node } = at;
      const { value: to, done } = at.next.next();
      if (done !== true) {
        if (!number.has(to)) enter(to);
        else if (waiting.has(to)) lower(node, number.get(to));
        continue;
      }
      way.pop();
      const from = way.at(-1);
      if (from !== undefined) lower(from.node, lowest.get(node));
      if (lowest.get(node) !== number.get(node)) continue;
      // The node is the first of its component: the others are the nodes after it on the stack.
      const component = unsettled.splice(unsettled.lastIndexOf(node));
      for (const member of component) {
        waiting.delete(member);
        if (component.length > 1 || leads.get(member)?.has(member) === true) looping.add(member);
      }
    }
  }
  return looping;
}

/** Returns the name in `$defs` of a reference, or `undefined` for other targets. */
export function definitionName(ref: unknown): string | undefined {
  const steps = typeof ref === "string" ? fragmentSteps(ref) : undefined;
  return steps?.length === 2 && steps[0] === "$defs" ? steps[1] : undefined;
}

/**
 * Moves all targets of references to the root's `$defs`, so that other transforms may move and
 * change the rest. References to the root itself stay.
 */
export function hoistReferences(root: JsonSchema): JsonSchema {
  if (!isObject(root)) return root;
  const names = new Map<JsonSchema, string>();
  const given = mapOf(root["$defs"]);
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
  const resolve = resolverOf(root);
  const rewrite = (part: JsonSchema): JsonSchema =>
    mapSchema(part, {
      enter: (node, spot) => {
        const target = Object.hasOwn(node, "$ref") ? resolve(node["$ref"]) : undefined;
        const inner = spot.root && part === root ? node : without(node, "$defs", "definitions");
        if (!isObject(target) || target === root) return inner;
        const ref = fragment(["$defs", nameOf(target)]);
        return ref === inner["$ref"] ? inner : changed(inner, { $ref: ref });
      },
    });
  const result = rewrite(root);
  if (extra.size === 0 || !isObject(result)) return result;
  const definitions = { ...mapOf(result["$defs"]) };
  // Rewriting one may add more, which a map's iterator also visits.
  for (const [name, target] of extra) setOwn(definitions, name, rewrite(target));
  return changed(result, { $defs: definitions });
}

/** Removes unused definitions of the root. */
export function pruneDefinitions(root: JsonSchema): JsonSchema {
  if (!isObject(root) || !isObject(root["$defs"])) return root;
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
  // A set's iterator also visits items that are added meanwhile.
  for (const name of used) {
    const target = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
    if (isObject(target)) collect(target);
  }
  const names = Object.keys(definitions);
  if (whole || names.every((name) => used.has(name))) return root;
  const kept: Record<string, unknown> = {};
  for (const name of names) if (used.has(name)) setOwn(kept, name, definitions[name]);
  return changed(root, { $defs: Object.keys(kept).length > 0 ? kept : undefined });
}

/**
 * Rewrites the local references of a schema that moves to the JSON Pointer `steps` of another
 * document. A schema with its own `$id` stays unchanged, because its references are relative to it.
 */
export function rebaseReferences(schema: JsonSchema, steps: readonly string[]): JsonSchema {
  if (isObject(schema) && Object.hasOwn(schema, "$id")) return schema;
  return mapSchema(schema, {
    leave: (node) => {
      const inner = typeof node["$ref"] === "string" ? fragmentSteps(node["$ref"]) : undefined;
      return inner === undefined ? node : changed(node, { $ref: fragment([...steps, ...inner]) });
    },
  });
}
