/**
 * How far references may lead. `{"$ref": "#"}` would check the same value for ever, and references
 * that double and double again would check it more often than there is time.
 *
 * @module
 */

import { clip, isObject, type JsonSchema, type JsonSchemaObject } from "../tool/mod.ts";
import type { Dialect } from "./dialect.ts";
import { checksRepeatedly, inPlace } from "./repeated_parts.ts";

/** How long a chain of references may be that all check the same value; each takes of the stack. */
const MAX_CHAIN = 256;

/** A reference that was met: who holds it, where, and what it is relative to. */
export interface Reference {
  readonly holder: JsonSchemaObject;
  readonly keyword: "$ref" | "$dynamicRef";
  readonly base: string;
  readonly pointer: string;
}

/**
 * Checks how far references lead before they come to another part of the value.
 *
 * @param root The schema.
 * @param targets What each reference may lead to.
 * @param dialect The draft: in draft-07 a `$ref` hides what stands beside it.
 * @param maxSchemas How many schemas may check one value, all in all.
 * @param what What the schema is called in messages.
 * @throws {TypeError} If a reference leads in a circle.
 * @throws {RangeError} If it leads to too many schemas, or checks too often.
 */
export function boundReferences(
  root: JsonSchema,
  targets: ReadonlyMap<Reference, readonly unknown[]>,
  dialect: Dialect,
  maxSchemas: number,
  what: string,
): void {
  const leads = leadsOf(targets, (found) => found);
  const sizes = new Map<unknown, number>();
  for (const { holder, keyword, pointer } of targets.keys()) {
    const size = sizeOf(holder, 0);
    if (size <= maxSchemas) continue;
    throw Number.isNaN(size)
      ? new TypeError(
        `Cannot use ${what}: "${pointer}" leads in a circle back to itself: ` +
          `"${clip(String(holder[keyword]))}" must lead to another part of the value first`,
      )
      : new RangeError(
        `Cannot use ${what}: "${pointer}" goes too far: its references must unfold to at ` +
          `most ${maxSchemas} schemas, in chains of at most ${MAX_CHAIN}`,
      );
  }

  refuseRepetition(root, targets, what);

  /** How many schemas check one value, all in all. NaN in a circle, and so whatever leads there. */
  function sizeOf(schema: unknown, depth: number): number {
    if (!isObject(schema)) return 0;
    const known = sizes.get(schema);
    if (known !== undefined) return known;
    if (depth > MAX_CHAIN) return Infinity;
    sizes.set(schema, NaN);
    const next = [...leads.get(schema) ?? []];
    const hidden = dialect === "draft-07" && next.length > 0;
    let size = 1;
    for (const part of hidden ? next : [...next, ...inPlace(schema)]) {
      size += sizeOf(part, depth + 1);
    }
    sizes.set(schema, size);
    return size;
  }
}

/** What the references of each schema lead to, as far as `choose` has it. */
function leadsOf(
  targets: ReadonlyMap<Reference, readonly unknown[]>,
  choose: (found: readonly unknown[]) => readonly unknown[],
): ReadonlyMap<unknown, ReadonlySet<unknown>> {
  // Sets: an object that stands in two places of the schema is met twice.
  const leads = new Map<unknown, Set<unknown>>();
  for (const [{ holder }, found] of targets) {
    leads.set(holder, new Set([...leads.get(holder) ?? [], ...choose(found)]));
  }
  return leads;
}

/**
 * Other schemas are taken apart when they are compiled. What a `$dynamicRef` means depends on the
 * way to it, so those with one that may mean several places cannot be.
 */
function refuseRepetition(
  root: JsonSchema,
  targets: ReadonlyMap<Reference, readonly unknown[]>,
  what: string,
): void {
  for (const [{ pointer }, several] of targets) {
    if (several.length < 2) continue;
    // On one way, all dynamic references to an anchor mean the same place.
    for (const place of several) {
      const leads = leadsOf(targets, (found) => found.includes(place) ? [place] : found);
      if (!checksRepeatedly(root, (schema) => leads.get(schema) ?? [])) continue;
      throw new RangeError(
        `Cannot use ${what}: "${pointer}" may mean several places, and the schema would check ` +
          "parts of the value again and again, more often with each level",
      );
    }
    return;
  }
}
