/**
 * Protections against hostile schemas and values: patterns in linear time, verdicts that are cached
 * for recursive schemas, and a bound on the steps of a check.
 *
 * A check cannot be interrupted, and blocks the thread. So its steps are estimated before it
 * begins: the estimate visits each part of the value once, with all schemas that check the part.
 */

import { isObject, type JsonSchemaObject, once, type Tool } from "../tool/mod.ts";
import { type Hardening, type SchemaEngine, type SchemaValidator, wrapEngineOf } from "./engine.ts";
import { MAX_STEPS, tooCostlyIssue } from "./issues.ts";
import { eachSchemaIn, isStructure, KEYWORDS, partsOf } from "./keywords.ts";
import type { NormalizedSchema } from "./normalize.ts";
import { compilePattern, READS_PER_STEP, resetSteps } from "./patterns.ts";
import { checksRepeatedly } from "./references.ts";

/** The protections that {@linkcode hardened} passes to an engine. */
export const HARDENING: Hardening = Object.freeze({
  compilePattern,
  // A schema without references checks each part once, so the slow search is skipped.
  repeatsParts: ({ hasReferences, schema, targets }: NormalizedSchema) =>
    hasReferences && checksRepeatedly(schema, targets),
  boundSteps,
});

const hardenedEngines = new WeakMap<SchemaEngine, SchemaEngine>();

/**
 * Protects an engine from hostile schemas and values: `^(a+)+$` takes linear time, a recursive
 * schema visits each part of a value once, and a value whose check takes more than 2,500,000 steps
 * is invalid.
 *
 * The `ToolRegistry` and the `ToolDispatcher` of `@plue/tools` harden every engine, and imported
 * tools are always compiled by a hardened one. With `@plue/tools/core` you decide: a program that
 * registers only its own tools needs no hardening, and is about 5 kB smaller without it.
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
 * @returns The protected engine. Every call for the same engine returns the same object.
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

/** Makes every registry compile the schemas of a tool from outside with hardened engines only. */
export function hardenTool(tool: Tool): Tool {
  const { parameters, returns, config, context } = tool;
  for (const schema of [parameters, returns, config, context]) wrapEngineOf(schema, hardened);
  return tool;
}

/** The comparison of this number of characters takes as long as the check of a value. */
const CHARACTERS = 16;

/** The steps of a schema, or of all schemas that check one part of a value. */
interface Cost {
  /** Steps for a value of any type. */
  value: number;
  /** Steps for each item or property. */
  member: number;
  /** Steps for each character of a string. */
  character: number;
  /** Steps for each character of a property's name. */
  name: number;
  /** Steps for each nested value, at any depth: `const` and other keywords compare all of them. */
  inside: number;
}

const NOTHING: Cost = { value: 0, member: 0, character: 0, name: 0, inside: 0 };
const KINDS = Object.keys(NOTHING) as readonly (keyof Cost)[];

function boundSteps(
  form: NormalizedSchema,
  caches: boolean,
  { check, issues }: SchemaValidator,
): SchemaValidator {
  const { total, isTracked } = totalCost(form);
  const short = MAX_STEPS / total;
  let estimator: StepEstimator | undefined;
  const isBounded = (value: unknown): boolean =>
    (estimator ??= new StepEstimator(form, isTracked, caches)).isBounded(value);
  return {
    check(value, length = Infinity) {
      resetSteps();
      try {
        return (length <= short || isBounded(value)) && check(value);
      } catch {
        // A pattern has used up the steps, or the value is too deep for the stack.
        return false;
      }
    },
    issues(value) {
      resetSteps();
      return isBounded(value) ? issues(value) : [tooCostlyIssue()];
    },
  };
}

/** Returns an upper bound of the steps of all schemas for one character of JSON. */
function totalCost(
  { schema: root }: NormalizedSchema,
): { readonly total: number; readonly isTracked: boolean } {
  const schemas: JsonSchemaObject[] = [];
  let references = 1;
  let isTracked = false;
  const add = (schema: unknown): void => {
    if (!isObject(schema)) return;
    schemas.push(schema);
    const { $ref: ref, unevaluatedItems, unevaluatedProperties } = schema;
    // The same value may be checked once for each reference to a schema.
    if (typeof ref === "string") references++;
    isTracked ||= (unevaluatedItems ?? unevaluatedProperties) !== undefined;
    eachSchemaIn(schema, KEYWORDS["2020-12"], add);
  };
  add(root);
  let total = 0;
  for (const schema of schemas) {
    const { value, member, character, name, inside } = costOf(schema, isTracked);
    total += value + member + inside + (character + name) * CHARACTERS;
  }
  return { total: total * references, isTracked };
}

/** The schemas that check one part of a value: their cost, and the schemas of the members. */
interface Position extends Cost {
  readonly items: Members;
  readonly properties: Members;
  readonly names: Members;
}

interface Members {
  readonly all: JsonSchemaObject[];
  readonly named: Map<string, JsonSchemaObject[]>;
  /** The position for each name; `undefined` is the name of members without their own schema. */
  readonly positions: Map<string | undefined, Position | undefined>;
}

class StepEstimator {
  readonly #form: NormalizedSchema;
  readonly #isTracked: boolean;
  readonly #caches: boolean;
  readonly #positions = new Map<string, Position>();
  readonly #costs = new Map<JsonSchemaObject, Cost & { readonly id: number }>();
  #left = 0;

  /** @param caches True if verdicts are cached, so that each schema checks each part once. */
  constructor(form: NormalizedSchema, isTracked: boolean, caches: boolean) {
    this.#form = form;
    this.#isTracked = isTracked;
    this.#caches = caches;
  }

  /** Returns true if the check of a value takes at most `MAX_STEPS`. */
  isBounded(value: unknown): boolean {
    this.#left = MAX_STEPS;
    try {
      const { schema } = this.#form;
      this.#visit(value, this.#positionOf(isObject(schema) ? [schema] : []), 0);
      return true;
    } catch {
      // The steps are used up, or the value is too deep for the stack.
      return false;
    } finally {
      this.#positions.clear();
    }
  }

  #spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new RangeError("Cannot check the value: it takes too many steps");
  }

  /** @param outer The steps of the outer schemas for each nested value. */
  #visit(value: unknown, position: Position | undefined, outer: number): void {
    const cost = position ?? NOTHING;
    this.#spend(outer + cost.value);
    if (typeof value === "string") {
      return this.#spend((cost.character + outer / CHARACTERS) * value.length);
    }
    if (!isStructure(value)) return;
    const inside = outer + cost.inside;
    const see = (part: unknown, members: Members | undefined, key: string | number): void => {
      const member = members && this.#memberOf(members, key);
      if (member !== undefined || inside > 0) this.#visit(part, member, inside);
    };
    const keys = Array.isArray(value) ? value : Object.keys(value);
    this.#spend(cost.member * keys.length);
    if (keys === value) return keys.forEach((item, index) => see(item, position?.items, index));
    for (const key of keys) {
      this.#spend(cost.name * key.length);
      see(key, position?.names, "");
      see((value as Record<string, unknown>)[key], position?.properties, key);
    }
  }

  #memberOf({ all, named, positions }: Members, key: string | number): Position | undefined {
    const own = named.size === 0 ? undefined : named.get(String(key));
    return once(
      positions,
      own && String(key),
      () => this.#positionOf(own === undefined ? all : [...own, ...all]),
    );
  }

  #positionOf(schemas: readonly JsonSchemaObject[]): Position | undefined {
    this.#spend(schemas.length);
    if (schemas.length === 0) return undefined;
    const key = schemas.map((schema) => this.#costOf(schema).id).join();
    return once(this.#positions, key, () => this.#createPosition(schemas));
  }

  #createPosition(schemas: readonly JsonSchemaObject[]): Position {
    const here: Set<unknown> | unknown[] = this.#caches ? new Set(schemas) : [...schemas];
    const [items, properties, names] = [newMembers(), newMembers(), newMembers()];
    const sum = { ...NOTHING };
    for (const schema of here) {
      this.#spend(1);
      if (!isObject(schema)) continue;
      const cost = this.#costOf(schema);
      for (const kind of KINDS) sum[kind] += cost[kind];
      const { inPlace, below } = partsOf(schema);
      const { $ref: ref, propertyNames } = schema;
      if (isObject(propertyNames)) names.all.push(propertyNames);
      for (const part of [...inPlace, this.#form.targets.get(String(ref))]) {
        if (here instanceof Set) here.add(part);
        else here.push(part);
      }
      for (const { child, position } of below) {
        const { all, named } = position.startsWith("[") ? items : properties;
        if (position.length === 1) all.push(child);
        else once(named, position.slice(1), () => []).push(child);
      }
    }
    return { ...sum, items, properties, names };
  }

  #costOf(schema: JsonSchemaObject): Cost & { readonly id: number } {
    return once(
      this.#costs,
      schema,
      () => ({ ...costOf(schema, this.#isTracked), id: this.#costs.size }),
    );
  }
}

function newMembers(): Members {
  return { all: [], named: new Map(), positions: new Map() };
}

/** The steps per character of a string. */
const OF_TEXT = new Map([["minLength", 1 / 16], ["maxLength", 1 / 16]]);

/** The steps per character of a format. Parsing `\p{L}` takes V8 34 µs per character. */
const OF_FORMAT: ReadonlyMap<unknown, number> = new Map([
  ["regex", 500],
  ["idn-email", 16],
  ["idn-hostname", 16],
]);

/** @param isTracked True if schemas record the members that they have checked. */
function costOf(schema: JsonSchemaObject, isTracked: boolean): Cost {
  const cost = { ...NOTHING, value: 1, member: isTracked ? 8 : 0 };
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

/** The steps of a pattern per character; 0 for an automaton, because it counts its steps itself. */
function stepsOf(pattern: string): number {
  const { reads } = compilePattern(pattern);
  return reads === Infinity ? 0 : reads / READS_PER_STEP;
}
