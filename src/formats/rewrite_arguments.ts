/**
 * Values on the wire and values for the tool: what an export changed in a schema is done to a
 * value that is sent (an example), and undone in a value that comes back (the arguments of a call).
 *
 * @module
 */

import { type JsonValue, setOwn } from "../tool/mod.ts";
import { MAX_LOOK } from "./argument_rewrite.ts";
import { jsonEqual } from "./transform/json_equal.ts";
import { isNode } from "./transform/schema_walk.ts";
import type { ArgumentChoice, ArgumentRewrite } from "./types.ts";

/** How deep a value is followed. What is deeper is left as it came: validation will refuse it. */
const MAX_DEPTH = 256;

/** Everything that applies to one value: the node, what it includes, and the branches it fits. */
function applying(rewrite: ArgumentRewrite, value: unknown): readonly ArgumentRewrite[] {
  if (rewrite.also === undefined && rewrite.choices === undefined) return [rewrite];
  const found = new Set<ArgumentRewrite>();
  const open = [rewrite];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (found.has(at)) continue;
    found.add(at);
    open.push(...(at.also ?? []));
    const choice = at.choices?.find(({ accepts }) => accepts(value));
    if (choice !== undefined) open.push(choice.rewrite);
  }
  return [...found];
}

/**
 * Turns the arguments of a call, as the provider's model wrote them, into the tool's own: nulls
 * that stand for "left out" go, renamed keys and texts become what they were. Where nothing was
 * changed, the value is answered as it is; it is never written to.
 *
 * The value need not fit the schema: what does not fit is left alone, for the validation to name.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { decodeArguments, exportTools } from "@plue/tools/formats";
 *
 * const tool = defineTool({
 *   name: "weather",
 *   description: "Tells the weather.",
 *   parameters: { type: "object", properties: { unit: { type: "string" } } },
 * });
 * const { names } = exportTools([tool], "openai.strict");
 * assert.deepEqual(decodeArguments({ unit: null }, names.encodingOf("weather")?.input), {});
 * ```
 *
 * @param value The arguments as they came.
 * @param rewrite What the export changed: `names.encodingOf(id)?.input`.
 * @returns The arguments for the tool.
 */
export function decodeArguments(value: unknown, rewrite: ArgumentRewrite | undefined): unknown {
  return rewrite === undefined ? value : decode(value, [rewrite], 0);
}

function decode(value: unknown, rewrites: readonly ArgumentRewrite[], depth: number): unknown {
  if (rewrites.length === 0 || depth > MAX_DEPTH) return value;
  const parts = rewrites.flatMap((rewrite) => applying(rewrite, value));
  if (typeof value === "string") {
    for (const { values } of parts) {
      const stands = values?.get(value);
      if (stands !== undefined) return stands;
    }
    return value;
  }
  if (Array.isArray(value)) {
    return eachItem(value, parts, (item, own) => decode(item, own, depth + 1));
  }
  if (!isNode(value)) return value;
  const result: Record<string, unknown> = {};
  let changed = false;
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === null && parts.some(({ nulls }) => nulls?.has(key) === true)) {
      changed = true;
      continue;
    }
    const inner = decode(item, propertyRewrites(parts, key), depth + 1);
    const name = parts.find(({ keys }) => keys?.has(key))?.keys?.get(key) ?? key;
    if (inner !== item || name !== key) changed = true;
    setOwn(result, name, inner);
  }
  return changed ? result : value;
}

function eachItem(
  value: readonly unknown[],
  parts: readonly ArgumentRewrite[],
  step: (item: unknown, rewrites: readonly ArgumentRewrite[]) => unknown,
): readonly unknown[] {
  let changed = false;
  const list = value.map((item, index) => {
    const rewrites = parts.flatMap((part) => {
      const own = index < (part.prefixItems?.length ?? 0) ? part.prefixItems?.[index] : part.items;
      return own === undefined ? [] : [own];
    });
    const inner = step(item, rewrites);
    if (inner !== item) changed = true;
    return inner;
  });
  return changed ? list : value;
}

function propertyRewrites(
  parts: readonly ArgumentRewrite[],
  key: string,
): readonly ArgumentRewrite[] {
  return parts.flatMap((part) => {
    const own = part.properties?.get(key) ??
      (part.declared?.has(key) === true ? undefined : part.additionalProperties);
    return own === undefined ? [] : [own];
  });
}

/**
 * The way back of {@linkcode decodeArguments}: the tool's own arguments as the exported schema has
 * them. Used for examples, and wherever a call is written rather than read.
 *
 * @param value Arguments that fit the tool's own schema.
 * @param rewrite What the export changed: `names.encodingOf(id)?.input`.
 * @returns The arguments as they stand on the wire.
 */
export function encodeArguments(value: unknown, rewrite: ArgumentRewrite | undefined): unknown {
  if (rewrite === undefined) return value;
  return encode(value, [rewrite], { depth: 0, levels: Infinity, work: { left: MAX_WRITES } });
}

/** How many parts of a value are written, tries included. What is beyond is left as it came. */
const MAX_WRITES = 100_000;

/** How many combinations of branches are tried for one part of a value. */
const MAX_COMBINATIONS = 64;

/** How far to go in a value. */
interface Reach {
  /** How deep in the value it is. */
  readonly depth: number;
  /** How many more levels are to be written: those that a branch looks at, or all. */
  readonly levels: number;
  /** How many parts may still be written. */
  readonly work: { left: number };
}

function encode(value: unknown, rewrites: readonly ArgumentRewrite[], reach: Reach): unknown {
  const { depth, levels, work } = reach;
  if (rewrites.length === 0 || levels < 0 || depth > MAX_DEPTH || --work.left < 0) return value;
  if (rewrites.every(isSingle)) return encodeWith(value, rewrites, reach);
  // Which branch a value is can be told on the wire. So each is tried on the first levels, looked
  // at as far as it is written, and only the one that fits is written to the end.
  const look = { ...reach, levels: Math.min(levels, MAX_LOOK) };
  let tries = 0;
  for (const combination of combinations(rewrites, depth, work)) {
    if (tries++ === MAX_COMBINATIONS) break;
    const parts = combination.map((part) => part.rewrite);
    const seen = encodeWith(value, parts, look);
    if (combination.every(({ choice }) => choice?.accepts(seen, look.levels) ?? true)) {
      return levels <= MAX_LOOK ? seen : encodeWith(value, parts, reach);
    }
  }
  return value;
}

/** Whether a rewrite has no parts of its own that apply to the same value. */
function isSingle({ also, choices }: ArgumentRewrite): boolean {
  return also === undefined && choices === undefined;
}

/** A rewrite that may apply to a value, and the branch that it is, if it is one. */
interface Part {
  readonly rewrite: ArgumentRewrite;
  readonly choice?: ArgumentChoice;
}

/** The combinations of branches that may apply, one after the other, as they are asked for. */
function* combinations(
  rewrites: readonly ArgumentRewrite[],
  depth: number,
  work: Reach["work"],
): Generator<readonly Part[], void> {
  const [first, ...others] = rewrites;
  if (--work.left < 0) return;
  if (first === undefined || depth > MAX_DEPTH) {
    yield [];
    return;
  }
  for (const included of combinations(first.also ?? [], depth + 1, work)) {
    for (const branch of branches(first, depth, work)) {
      for (const rest of combinations(others, depth + 1, work)) {
        yield [{ rewrite: first }, ...included, ...branch, ...rest];
      }
    }
  }
}

function* branches(
  { choices }: ArgumentRewrite,
  depth: number,
  work: Reach["work"],
): Generator<readonly Part[], void> {
  if (choices === undefined) yield [];
  for (const choice of choices ?? []) {
    for (const [own, ...more] of combinations([choice.rewrite], depth + 1, work)) {
      if (own !== undefined) yield [{ ...own, choice }, ...more];
    }
  }
}

function encodeWith(value: unknown, parts: readonly ArgumentRewrite[], reach: Reach): unknown {
  const below = { ...reach, depth: reach.depth + 1, levels: reach.levels - 1 };
  if (Array.isArray(value)) {
    return eachItem(value, parts, (item, own) => encode(item, own, below));
  }
  if (!isNode(value)) {
    for (const { values } of parts) {
      for (const [text, stands] of values ?? []) {
        if (jsonEqual(stands, value as JsonValue)) return text;
      }
    }
    return value;
  }
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const name = wireKey(parts, key);
    setOwn(result, name, encode(value[key], propertyRewrites(parts, name), below));
  }
  for (const { nulls } of parts) {
    for (const name of nulls ?? []) if (!Object.hasOwn(result, name)) setOwn(result, name, null);
  }
  return result;
}

function wireKey(parts: readonly ArgumentRewrite[], key: string): string {
  for (const { keys } of parts) {
    for (const [wire, own] of keys ?? []) if (own === key) return wire;
  }
  return key;
}
