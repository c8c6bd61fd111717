/**
 * Protections against schemas and values that were made to use up time: patterns in linear time, no
 * part of a value checked again and again, and a bound on the steps of a check.
 *
 * A check cannot be interrupted, and nothing else runs while it does. So its steps are estimated
 * before it begins. They depend on how many schemas look at each part of the value: the estimate goes
 * through the value once, with the list of the schemas that look at each place.
 */

import { isObject, type JsonSchemaObject, once, type Tool } from "../tool/mod.ts";
import { type Hardening, type SchemaEngine, type SchemaValidator, wrapEngineOf } from "./engine.ts";
import { MAX_STEPS, tooCostlyIssue } from "./issues.ts";
import { eachSchemaIn, isStructure, KEYWORDS, partsOf } from "./keywords.ts";
import type { NormalizedSchema } from "./normalize.ts";
import { compilePattern, LOOKS_PER_STEP, resetSteps } from "./patterns.ts";
import { repeatsParts, splitterFor } from "./repeated_parts.ts";

/** The protections that {@linkcode hardened} passes to an engine. */
export const HARDENING: Hardening = Object.freeze({
  compilePattern,
  splitterFor,
  boundSteps,
});

const hardenedEngines = new WeakMap<SchemaEngine, SchemaEngine>();

/**
 * Protects an engine from hostile schemas and values: `^(a+)+$` takes linear time, a recursive schema
 * visits each part of a value once, and a value whose check takes more than 2,500,000 steps does not
 * fit.
 *
 * The `ToolRegistry` and the `ToolDispatcher` of `@plue/tools` harden every engine, and imported
 * tools are always compiled by a hardened one. `@plue/tools/core` leaves it to you: a program that
 * registers only its own tools can do without, and is about 5 kB smaller.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { hardened, typeboxEngine } from "@plue/tools";
 * import { Registry } from "@plue/tools/core";
 *
 * const engine = hardened(typeboxEngine());
 * const registry = new Registry({ engine });
 *
 * assert.equal(registry.engine.compile({ pattern: "^(a+)+$" }).check("a".repeat(50) + "!"), false);
 * assert.equal(hardened(engine), engine);
 * ```
 *
 * @param engine The engine.
 * @returns The protected engine: the same one for the same engine.
 */
export function hardened(engine: SchemaEngine): SchemaEngine {
  return once(hardenedEngines, engine, () => {
    const made = Object.freeze<SchemaEngine>({
      name: engine.name,
      admit: (schema, what) => engine.admit(schema, what, HARDENING),
      compile: (schema, dialect) => engine.compile(schema, dialect, HARDENING),
    });
    hardenedEngines.set(made, made);
    return made;
  });
}

/**
 * Has the schemas of a tool compiled by hardened engines only, whatever registry it is in: for
 * tools that come from outside.
 */
export function hardenTool(tool: Tool): Tool {
  const { parameters, returns, config, context } = tool;
  for (const schema of [parameters, returns, config, context]) wrapEngineOf(schema, hardened);
  return tool;
}

/** The number of characters whose comparison takes as long as the check of a value. */
const CHARACTERS = 16;

/** The steps that a schema takes, or all that look at one place. */
interface Cost {
  /** For a value, whatever it is. */
  value: number;
  /** For each item or property. */
  member: number;
  /** For each character of a string. */
  character: number;
  /** For each character of the name of a property. */
  name: number;
  /** For each value inside, at any depth: equal values are compared all the way down. */
  inside: number;
}

interface Place extends Cost {
  readonly items: Members;
  readonly properties: Members;
  readonly names: Members;
}

interface Members {
  readonly all: unknown[];
  readonly named: Map<string, unknown[]>;
  /** The places that were met: of members that are named, and of all others. */
  readonly places: Map<string | undefined, Place | undefined>;
}

/**
 * Bounds the steps of a check. A value that takes more steps does not fit.
 */
export function boundSteps(
  form: NormalizedSchema,
): (validator: SchemaValidator) => SchemaValidator {
  const { total, costIn } = costsOf(form);
  const short = MAX_STEPS / total;
  let estimate: ((value: unknown) => boolean) | undefined;
  const isBounded = (value: unknown): boolean => (estimate ??= estimator(form, costIn))(value);
  return ({ check, issues }) => ({
    check(value, length = Infinity) {
      resetSteps();
      try {
        return (length <= short || isBounded(value)) && check(value);
      } catch {
        // A pattern is out of steps, or the value is too deep for the stack.
        return false;
      }
    },
    issues(value) {
      resetSteps();
      return isBounded(value) ? issues(value) : [tooCostlyIssue()];
    },
  });
}

interface Costs {
  /** An upper bound of the steps of all schemas for one character of JSON. */
  readonly total: number;
  /** Returns the cost of one schema. */
  readonly costIn: (schema: JsonSchemaObject) => Cost;
}

function costsOf({ schema: root }: NormalizedSchema): Costs {
  const schemas: JsonSchemaObject[] = [];
  let references = 1;
  let isTracked = false;
  const add = (schema: unknown): void => {
    if (!isObject(schema)) return;
    schemas.push(schema);
    const { $ref: ref, unevaluatedItems, unevaluatedProperties } = schema;
    // A schema may check the same value once for each reference to it.
    if (typeof ref === "string") references++;
    isTracked ||= (unevaluatedItems ?? unevaluatedProperties) !== undefined;
    eachSchemaIn(schema, KEYWORDS["2020-12"], add);
  };
  add(root);
  const costIn = (schema: JsonSchemaObject): Cost => {
    const cost = costOf(schema);
    // Each schema notes what it has looked at.
    if (isTracked) cost.member += 8;
    return cost;
  };
  let total = 0;
  for (const schema of schemas) {
    const { value, member, character, name, inside } = costIn(schema);
    total += value + member + inside + (character + name) * CHARACTERS;
  }
  return { total: total * references, costIn };
}

/** Returns a function that is true for values whose check takes at most `MAX_STEPS`. */
function estimator(
  form: NormalizedSchema,
  costIn: (schema: JsonSchemaObject) => Cost,
): (value: unknown) => boolean {
  const places = new Map<string, Place>();
  const parts = new Map<unknown, Cost & { readonly id: number }>();
  // A split schema checks each part of a value once. Other schemas check it each time they are
  // reached.
  const once = repeatsParts(form);
  let left = 0;
  return (value) => {
    left = MAX_STEPS;
    try {
      visit(value, placeOf([form.schema]), 0);
      return true;
    } catch {
      // Out of steps, or too deep for the stack.
      return false;
    } finally {
      places.clear();
    }
  };

  function spend(steps: number): void {
    left -= steps;
    if (left < 0) throw new RangeError("Cannot check the value: it takes too many steps");
  }

  /** @param above The steps of the schemas above for each value inside. */
  function visit(value: unknown, place: Place | undefined, above: number): void {
    spend(above + (place?.value ?? 0));
    if (typeof value === "string") {
      return spend(((place?.character ?? 0) + above / CHARACTERS) * value.length);
    }
    if (!isStructure(value)) return;
    const inside = above + (place?.inside ?? 0);
    const see = (part: unknown, members: Members | undefined, key: string | number): void => {
      const member = members && memberOf(members, key);
      if (member !== undefined || inside > 0) visit(part, member, inside);
    };
    const keys = Array.isArray(value) ? value : Object.keys(value);
    spend((place?.member ?? 0) * keys.length);
    if (keys === value) return keys.forEach((item, index) => see(item, place?.items, index));
    for (const key of keys) {
      spend((place?.name ?? 0) * key.length);
      see(key, place?.names, "");
      see((value as Record<string, unknown>)[key], place?.properties, key);
    }
  }

  function memberOf({ all, named, places }: Members, key: string | number): Place | undefined {
    const own = named.size === 0 ? undefined : named.get(String(key));
    const name = own && String(key);
    let place = places.get(name);
    if (place === undefined && !places.has(name)) {
      place = placeOf(own === undefined ? all : [...own, ...all]);
      places.set(name, place);
    }
    return place;
  }

  function placeOf(schemas: readonly unknown[]): Place | undefined {
    const here = schemas.filter(isObject);
    spend(here.length);
    if (here.length === 0) return undefined;
    const key = here.map((schema) => partOf(schema).id).join();
    let place = places.get(key);
    if (place === undefined) places.set(key, place = makePlace(here));
    return place;
  }

  function makePlace(schemas: readonly unknown[]): Place {
    const here = once ? new Set(schemas) : [...schemas];
    const [items, properties, names] = [newMembers(), newMembers(), newMembers()];
    const sum = { ...NOTHING };
    for (const schema of here) {
      spend(1);
      if (!isObject(schema)) continue;
      const cost = partOf(schema);
      for (const kind of KINDS) sum[kind] += cost[kind];
      const { inPlace, below } = partsOf(schema);
      const { $ref: ref, propertyNames } = schema;
      names.all.push(propertyNames);
      for (const part of [...inPlace, form.targets.get(String(ref))]) {
        if (here instanceof Set) here.add(part);
        else here.push(part);
      }
      for (const { child, place } of below) {
        const { all, named } = place.startsWith("[") ? items : properties;
        const key = place.slice(1);
        const own = key === "" && place.length === 1 ? all : named.get(key);
        if (own === undefined) named.set(key, [child]);
        else own.push(child);
      }
    }
    return { ...sum, items, properties, names };
  }

  function partOf(schema: JsonSchemaObject): Cost & { readonly id: number } {
    let part = parts.get(schema);
    if (part === undefined) parts.set(schema, part = { ...costIn(schema), id: parts.size });
    return part;
  }
}

function newMembers(): Members {
  return { all: [], named: new Map(), places: new Map() };
}

const NOTHING: Cost = { value: 0, member: 0, character: 0, name: 0, inside: 0 };
const KINDS = ["value", "member", "character", "name", "inside"] as const satisfies (keyof Cost)[];

/** The steps for a character. */
const OF_TEXT: ReadonlyMap<string, number> = new Map([
  ["minLength", 1 / 16],
  ["maxLength", 1 / 16],
]);

/** The steps for a character of a format. Parsing `\p{L}` takes V8 34 µs a character. */
const OF_FORMAT: ReadonlyMap<unknown, number> = new Map([
  ["regex", 500],
  ["idn-email", 16],
  ["idn-hostname", 16],
]);

function costOf(schema: JsonSchemaObject): Cost {
  const cost = { ...NOTHING, value: 1 };
  for (const [keyword, value] of Object.entries(schema)) {
    const members = isStructure(value) ? Object.values(value) : [];
    const isList = Array.isArray(value) && keyword !== "required";
    cost.value += members.length / (isList ? 8 : 2);
    cost.character += keyword === "format" ? OF_FORMAT.get(value) ?? 2 : OF_TEXT.get(keyword) ?? 0;
    if (keyword === "pattern") cost.character += stepsOf(String(value));
    else if (keyword === "patternProperties") {
      cost.member += 8 * members.length;
      for (const name of Object.keys(value as object)) cost.name += stepsOf(name);
    } else if (keyword === "additionalProperties") cost.member += value === false ? 1 : 8;
    else if (keyword.startsWith("unevaluated")) cost.member += 12;
    else if (keyword === "uniqueItems" && value === true) cost.inside += 14;
    else if (keyword === "const" && isStructure(value)) cost.inside += 14;
    else if (keyword === "enum" && members.some(isStructure)) cost.inside += 14;
  }
  return cost;
}

/** The steps that a pattern takes for a character; some count their own, text by text. */
function stepsOf(pattern: string): number {
  const { looks } = compilePattern(pattern);
  return looks === Infinity ? 0 : looks / LOOKS_PER_STEP;
}
