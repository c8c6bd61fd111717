/**
 * Bounds how far references lead: `{"$ref": "#"}` would check the same value for ever, and a chain
 * of definitions that each refer to the next one twice would check it 2, 4, 8… times.
 *
 * @module
 */

import { clip, type JsonSchema } from "../tool/mod.ts";
import type { Reference } from "./engine.ts";
import { type Dialect, isOldDraft } from "./keywords.ts";
import { unfolding } from "./references.ts";
import { checksRepeatedly, partsOf } from "./repeated_parts.ts";

/** How many references may follow each other on one value: each takes room on the stack. */
const MAX_CHAIN = 256;

/**
 * Checks how far references lead before they come to another part of the value.
 *
 * @param references The references of a schema, each with what it may lead to.
 * @param dialect The draft: until draft-07 a `$ref` hides what stands beside it.
 * @param maxSchemas How many schemas may check one value.
 * @param what What the schema is called in messages.
 * @throws {TypeError} If a reference leads in a circle.
 * @throws {RangeError} If it leads to too many schemas.
 */
export function boundReferences(
  references: readonly Reference[],
  dialect: Dialect,
  maxSchemas: number,
  what: string,
): void {
  const targetsOf = targetsByHolder(references);
  // NaN for a circle, and for every schema that refers to one.
  const sizeOf = unfolding(
    (schema) => {
      const next = [...targetsOf.get(schema) ?? []];
      const hidden = isOldDraft(dialect) && next.length > 0;
      return hidden ? next : [...next, ...partsOf(schema, dialect).inPlace];
    },
    NaN,
    MAX_CHAIN,
  );
  for (const { holder, keyword, pointer } of references) {
    const size = sizeOf(holder);
    if (size <= maxSchemas) continue;
    throw Number.isNaN(size)
      ? new TypeError(
        `Cannot use ${what}: "${pointer}" refers to itself: ` +
          `put the reference to "${clip(String(holder[keyword]))}" under "properties" or "items"`,
      )
      : new RangeError(
        `Cannot use ${what}: "${pointer}" goes too far: its references must unfold to at ` +
          `most ${maxSchemas} schemas, in chains of at most ${MAX_CHAIN}`,
      );
  }
}

/** What the references of each schema lead to: only to `place`, for those that may mean it. */
function targetsByHolder(
  references: readonly Reference[],
  place?: unknown,
): ReadonlyMap<unknown, ReadonlySet<unknown>> {
  // Sets, because an object that stands in two places of the schema is met twice.
  const byHolder = new Map<unknown, Set<unknown>>();
  for (const { holder, targets } of references) {
    const chosen = targets.includes(place) ? [place] : targets;
    byHolder.set(holder, new Set([...byHolder.get(holder) ?? [], ...chosen]));
  }
  return byHolder;
}

/**
 * Refuses a schema that would check parts of the value again and again, if a `$dynamicRef` in it may
 * mean several places. Engines split other such schemas, but not one whose meaning depends on the
 * way to a reference.
 */
export function refuseRepetition(
  root: JsonSchema,
  references: readonly Reference[],
  what: string,
): void {
  for (const { pointer, targets } of references) {
    if (targets.length < 2) continue;
    // On any one way, all dynamic references to an anchor mean the same place.
    for (const place of targets) {
      const targetsOf = targetsByHolder(references, place);
      if (!checksRepeatedly(root, (schema) => targetsOf.get(schema) ?? [])) continue;
      throw new RangeError(
        `Cannot use ${what}: "${pointer}" may mean several places, and the schema would check ` +
          "parts of the value again and again, more often with each level",
      );
    }
    return;
  }
}
