/**
 * What keeps a check from taking time that doubles with each level of the value.
 *
 * `{"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "minItems": 1}]}` checks each item
 * twice, the items of those four times, and so on. Here such a schema is taken apart at its
 * references. The verdict of a part on an object or a list is kept while one value is checked, so
 * no part looks at the same place twice, and the work is that of the schema times the value.
 *
 * @module
 */

import { isObject, type JsonSchema, type JsonSchemaObject } from "../tool/mod.ts";
import { IN_PLACE } from "./keywords.ts";
import type { NormalizedSchema } from "./normalize.ts";

/** As many schemas may be unfolded from one without being kept track of; no recursion is so small. */
const FEW_SCHEMAS = 1_000;
/** From here on a schema counts as one without end. */
const MAX_CHAIN = 1_000;
/** How many schemas may check one value; registration allows fewer. */
const MAX_IN_PLACE = 10_000;

/** What a schema's references may lead to. */
export type Leads = (schema: JsonSchemaObject) => Iterable<unknown>;

/** A part that has been taken out of a schema, with its compiled check. */
export interface Part {
  readonly schema: JsonSchemaObject;
  /** Whoever takes the schema apart sets it. */
  compiled: (value: unknown) => boolean;
}

/** A schema in parts. */
export interface TakenApart {
  readonly parts: readonly Part[];
  /** Makes the check of the whole, out of that of what is left of the schema. */
  whole(check: (value: unknown) => boolean): (value: unknown) => boolean;
}

/** A schema that checks a part of the value: where it stands, and what it checks. */
interface Step {
  readonly holder: Record<string, unknown>;
  readonly key: string;
  readonly child: JsonSchemaObject;
  /** `.name`, `[0]`, or `.` and `[` for all properties and all items. */
  readonly place: string;
}

/** Whether a normalised schema must be taken apart before it is compiled. */
export function repeatsParts(form: NormalizedSchema): boolean {
  // Without a reference no schema is without end; and this costs more than compiling a small one.
  return form.flat && form.mayExhaustStack && checksRepeatedly(form.schema, leadsOf(form));
}

/**
 * Takes a schema apart, in place.
 *
 * @param form The schema: a copy that nobody else uses.
 * @param mark Makes the keyword that stands for a part: it must ask `check`.
 */
export function takeApart(
  form: NormalizedSchema,
  mark: (check: (value: unknown) => boolean) => JsonSchemaObject,
): TakenApart {
  const { schemas, steps } = survey(form.schema, leadsOf(form));
  const parts = new Map<JsonSchemaObject, KeptPart>();
  const markFor = (schema: JsonSchemaObject): JsonSchemaObject => {
    let part = parts.get(schema);
    if (part === undefined) parts.set(schema, part = new KeptPart(schema));
    return part.mark ??= mark(part.check);
  };
  const joined = joinedSchemas(schemas, form);
  for (const { holder, key, child } of steps) {
    if (joined.has(child)) holder[key] = markFor(child);
  }
  for (const schema of schemas) {
    const target = targetOf(schema, form);
    if (!isObject(target) || joined.has(schema)) continue;
    delete schema["$ref"];
    Object.assign(schema, markFor(target));
  }
  const kept = [...parts.values()];
  return {
    parts: kept,
    whole: (check) => (value) => {
      try {
        return check(value);
      } finally {
        // The next value may be the same object, changed.
        for (const { verdicts } of kept) verdicts.clear();
      }
    },
  };
}

/** A part, and its verdicts on the parts of the value that is being checked. */
class KeptPart implements Part {
  readonly schema: JsonSchemaObject;
  readonly verdicts: Map<unknown, boolean> = new Map();
  mark: JsonSchemaObject | undefined;
  compiled: (value: unknown) => boolean = () => false;

  constructor(schema: JsonSchemaObject) {
    this.schema = schema;
  }

  readonly check = (value: unknown): boolean => {
    if (typeof value !== "object" || value === null) return this.compiled(value);
    let verdict = this.verdicts.get(value);
    if (verdict === undefined) this.verdicts.set(value, verdict = this.compiled(value));
    return verdict;
  };
}

/**
 * The schemas that tell one with `unevaluated…` what they have looked at. They must stay together
 * with it, so they are taken out as they are, where they step down into the value.
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
    for (const part of [...inPlace(schema), targetOf(schema, form)]) joined.add(part);
  }
  return joined;
}

function targetOf({ $ref: ref }: JsonSchemaObject, { targets }: NormalizedSchema): unknown {
  return typeof ref === "string" ? targets.get(ref) : undefined;
}

function leadsOf(form: NormalizedSchema): Leads {
  return (schema) => [targetOf(schema, form)];
}

/** All schemas that a value may meet, and how they step down into it. */
interface Survey {
  readonly schemas: ReadonlySet<Record<string, unknown>>;
  readonly steps: readonly Step[];
}

function survey(root: JsonSchema, leads: Leads): Survey {
  const schemas = new Set<Record<string, unknown>>();
  const steps: Step[] = [];
  const add = (schema: unknown): void => {
    if (isObject(schema)) schemas.add(schema);
  };
  add(root);
  for (const schema of schemas) {
    const below = stepsOf(schema);
    steps.push(...below);
    for (const part of [...inPlace(schema), ...leads(schema)]) add(part);
    for (const { child } of below) add(child);
  }
  return { schemas, steps };
}

/**
 * Whether a schema checks a part of a value more than once at each level, however deep it is.
 *
 * @param leads What the references of a schema lead to.
 */
export function checksRepeatedly(root: JsonSchema, leads: Leads): boolean {
  const sizes = new Map<unknown, number>();
  const units = new Set<unknown>([root]);
  for (const unit of units) {
    const places = new Set<string>();
    // As often as it is met: what is checked by two ways is checked twice.
    const here = [unit];
    for (const part of here) {
      if (!isObject(part)) continue;
      here.push(...inPlace(part), ...leads(part));
      if (here.length > MAX_IN_PLACE) return true;
      for (const { child, place } of stepsOf(part)) {
        if (sizeOf(child, 0) <= FEW_SCHEMAS) continue;
        if (overlaps(place, places)) return true;
        places.add(place);
        units.add(child);
      }
    }
  }
  return false;

  /** How many schemas it unfolds to, all the way down; Infinity if it leads back to itself. */
  function sizeOf(schema: unknown, depth: number): number {
    if (!isObject(schema)) return 0;
    const size = sizes.get(schema);
    if (size !== undefined) return size;
    if (depth > MAX_CHAIN) return Infinity;
    sizes.set(schema, Infinity);
    const below = stepsOf(schema).map(({ child }) => child);
    let sum = 1;
    for (const part of [...inPlace(schema), ...leads(schema), ...below]) {
      sum += sizeOf(part, depth + 1);
    }
    sizes.set(schema, sum);
    return sum;
  }
}

/** Whether what stands at `place` may be what one of the others stands at, too. */
function overlaps(place: string, others: ReadonlySet<string>): boolean {
  if (others.has(place)) return true;
  const all = place.slice(0, 1);
  return place === all ? [...others].some((other) => other.startsWith(all)) : others.has(all);
}

function stepsOf(schema: JsonSchemaObject): readonly Step[] {
  const steps: Step[] = [];
  const add = (holder: unknown, key: string, place: string): void => {
    const child = (holder as JsonSchemaObject)[key];
    if (!isObject(child)) return;
    // Only what is taken apart is changed, and that is a copy.
    steps.push({ holder: holder as Record<string, unknown>, key, child, place });
  };
  const { prefixItems, properties, patternProperties } = schema;
  for (const key of ["items", "contains", "unevaluatedItems"]) add(schema, key, "[");
  for (const key of ["additionalProperties", "unevaluatedProperties"]) add(schema, key, ".");
  for (const key of Object.keys(prefixItems ?? {})) add(prefixItems, key, `[${key}`);
  for (const key of Object.keys(properties ?? {})) add(properties, key, `.${key}`);
  for (const key of Object.keys(patternProperties ?? {})) add(patternProperties, key, ".");
  return steps;
}

/** The schemas inside `schema` that check the very value that it checks. */
export function inPlace(schema: JsonSchemaObject): unknown[] {
  return IN_PLACE.flatMap((keyword) => {
    const value = schema[keyword];
    return Array.isArray(value)
      ? value
      : isObject(value) && keyword.startsWith("depend")
      ? Object.values(value)
      : [value];
  });
}
