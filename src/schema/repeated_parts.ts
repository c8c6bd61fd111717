/**
 * Keeps a check from taking time that doubles with each level of the value.
 *
 * `{"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "minItems": 1}]}` checks each item
 * twice, the items of those four times, and so on. Such a schema is split at its references, and
 * the verdict of a part on an object or a list is cached while one value is checked. So no part
 * checks the same object twice, and the work is at most the size of the schema times the size of
 * the value.
 */

import { isObject, type JsonSchema, type JsonSchemaObject, once } from "../tool/mod.ts";
import type { SchemaPart, SchemaSplitter, SplitSchema } from "./engine.ts";
import { isStructure, partsOf, type Step } from "./keywords.ts";
import type { NormalizedSchema } from "./normalize.ts";
import { unfolding } from "./references.ts";

/** A schema that unfolds to fewer schemas need not be split; recursive ones unfold without end. */
const FEW_SCHEMAS = 1_000;
/** The length from which on a chain of schemas counts as endless. */
const MAX_CHAIN = 1_000;
/** The maximum number of schemas that check one value; registration allows fewer. */
const MAX_IN_PLACE = 10_000;

/** Returns `splitSchema` for a normalised schema that must be split before it is compiled. */
export function splitterFor(form: NormalizedSchema): SchemaSplitter | undefined {
  return repeatsParts(form) ? splitSchema : undefined;
}

/** Returns true if a normalised schema must be split before it is compiled. */
export function repeatsParts(form: NormalizedSchema): boolean {
  // Only references make a schema endless, and the question costs more than compiling a small one.
  return form.hasReferences &&
    checksRepeatedly(form.schema, (schema) => [targetOf(schema, form)]);
}

function splitSchema(
  form: NormalizedSchema,
  mark: (check: (value: unknown) => boolean) => JsonSchemaObject,
): SplitSchema {
  const parts: SchemaPart[] = [];
  const marks = new Map<JsonSchemaObject, JsonSchemaObject>();
  /** The verdicts of each part on the objects and lists of the value that is being checked. */
  const kept = new Map<SchemaPart, Map<object, boolean>>();
  const markOf = (schema: JsonSchemaObject): JsonSchemaObject =>
    once(marks, schema, () => {
      const part: SchemaPart = { schema, compiled: () => false };
      parts.push(part);
      return mark((value) => {
        const check = () => part.compiled(value);
        return isStructure(value) ? once(once(kept, part, () => new Map()), value, check) : check();
      });
    });
  const schemas = new Set<Record<string, unknown>>();
  const steps: Step[] = [];
  const add = (schema: unknown): void => {
    if (isObject(schema)) schemas.add(schema);
  };
  add(form.schema);
  for (const schema of schemas) {
    const { inPlace, below } = partsOf(schema);
    steps.push(...below);
    [...inPlace, targetOf(schema, form), ...below.map(({ child }) => child)].forEach(add);
  }
  const joined = joinedSchemas(schemas, form);
  for (const { holder, key, child } of steps) {
    if (joined.has(child)) (holder as Record<string, unknown>)[key] = markOf(child);
  }
  for (const schema of schemas) {
    const target = targetOf(schema, form);
    if (!isObject(target) || joined.has(schema)) continue;
    delete schema["$ref"];
    Object.assign(schema, markOf(target));
  }
  return {
    parts,
    whole: (check) => (value) => {
      try {
        return check(value);
      } finally {
        // The next value may be the same object, changed.
        kept.clear();
      }
    },
  };
}

/**
 * The schemas whose evaluated members an `unevaluated…` keyword depends on. They stay in one piece
 * with it, and are split from the schema where they look at another part of the value.
 */
function joinedSchemas(
  schemas: Iterable<JsonSchemaObject>,
  form: NormalizedSchema,
): ReadonlySet<unknown> {
  const joined = new Set<unknown>();
  for (const schema of schemas) {
    const { unevaluatedItems, unevaluatedProperties } = schema;
    if (unevaluatedItems !== undefined || unevaluatedProperties !== undefined) joined.add(schema);
  }
  for (const schema of joined) {
    if (!isObject(schema)) continue;
    for (const part of [...partsOf(schema).inPlace, targetOf(schema, form)]) joined.add(part);
  }
  return joined;
}

function targetOf({ $ref: ref }: JsonSchemaObject, { targets }: NormalizedSchema): unknown {
  return typeof ref === "string" ? targets.get(ref) : undefined;
}

/**
 * Whether a schema checks a part of a value more than once at each level, however deep it is.
 */
export function checksRepeatedly(
  root: JsonSchema,
  referencesOf: (schema: JsonSchemaObject) => Iterable<unknown>,
): boolean {
  const sizeOf = unfolding(
    (schema) => {
      const { inPlace, below } = partsOf(schema);
      return [...inPlace, ...referencesOf(schema), ...below.map(({ child }) => child)];
    },
    Infinity,
    MAX_CHAIN,
  );
  const units = new Set<unknown>([root]);
  for (const unit of units) {
    const places = new Set<string>();
    // A list, not a set: a schema that is reached in two ways checks the value twice.
    const here = [unit];
    for (const part of here) {
      if (!isObject(part)) continue;
      const { inPlace, below } = partsOf(part);
      here.push(...inPlace, ...referencesOf(part));
      if (here.length > MAX_IN_PLACE) return true;
      for (const { child, place } of below) {
        if (sizeOf(child) <= FEW_SCHEMAS) continue;
        if (overlaps(place, places)) return true;
        places.add(place);
        units.add(child);
      }
    }
  }
  return false;
}

/** Returns true if the value at `place` may also be the value at one of the other places. */
function overlaps(place: string, others: ReadonlySet<string>): boolean {
  if (others.has(place)) return true;
  const all = place.slice(0, 1);
  return place === all ? [...others].some((other) => other.startsWith(all)) : others.has(all);
}
