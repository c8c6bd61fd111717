/**
 * Where the parts of a transformed schema came from, so that a loss found late names a place in
 * the schema that its author wrote; and what was done to them that must be undone in values.
 *
 * @module
 */

import { type JsonValue, pointerStep } from "../../tool/mod.ts";

/** What must be undone in a value that was written for a node. */
export interface Mark {
  readonly values?: ReadonlyMap<string, JsonValue>;
  readonly nulls?: ReadonlySet<string>;
  readonly keys?: ReadonlyMap<string, string>;
}

/** A keyword of a node. */
export interface Place {
  readonly node: object;
  readonly keyword: string;
}

interface Origin {
  readonly node: object;
  /** Keywords that had another name, or were taken from another node. */
  readonly moved?: ReadonlyMap<string, Place>;
}

const origins = new WeakMap<object, Origin>();
const marks = new WeakMap<object, Mark>();

/** Notes that `made` stands where `node` stood. */
export function cameFrom(made: object, node: object, moved?: ReadonlyMap<string, Place>): void {
  origins.set(made, moved === undefined ? { node } : { node, moved });
}

/** Notes what must be undone in values of `node`. */
export function mark(node: object, more: Mark): void {
  marks.set(node, { ...markOf(node), ...more });
}

/** What must be undone in values of `node`, also if it was noted on what `node` came from. */
export function markOf(node: object): Mark | undefined {
  for (let at: object | undefined = node; at !== undefined; at = origins.get(at)?.node) {
    const found = marks.get(at);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Where a keyword of `node` stood in the first schema. */
export function originOf(node: object, keyword: string): Place {
  let at: Place = { node, keyword };
  for (;;) {
    const origin = origins.get(at.node);
    if (origin === undefined) return at;
    at = origin.moved?.get(at.keyword) ?? { node: origin.node, keyword: at.keyword };
  }
}

/** The JSON Pointer and the order of every object in `root`, by identity. */
export function locate(root: unknown): Map<object, { readonly path: string; readonly at: number }> {
  const places = new Map<object, { readonly path: string; readonly at: number }>();
  function step(part: unknown, path: string): void {
    if (typeof part !== "object" || part === null || places.has(part)) return;
    places.set(part, { path, at: places.size });
    if (Array.isArray(part)) {
      for (let index = 0; index < part.length; index++) step(part[index], `${path}/${index}`);
    } else {
      for (const [key, value] of Object.entries(part)) step(value, path + pointerStep(key));
    }
  }
  step(root, "");
  return places;
}
