/**
 * Bounds how far references lead: `{"$ref": "#"}` would check the same value for ever, and a chain
 * of definitions that each refer to the next one twice would check it 2, 4, 8… times.
 *
 * @module
 */

import { clip, once } from "../tool/mod.ts";
import type { Reference } from "./engine.ts";
import { type Dialect, isOldDraft } from "./keywords.ts";
import { unfolding } from "./references.ts";
import { partsOf } from "./repeated_parts.ts";

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
  // Sets, because an object that stands in two places of the schema is met twice.
  const targetsOf = new Map<unknown, Set<unknown>>();
  for (const { holder, targets } of references) {
    const known = once(targetsOf, holder, () => new Set());
    for (const target of targets) known.add(target);
  }
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
