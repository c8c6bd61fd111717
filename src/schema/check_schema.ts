/**
 * Checks a schema before it is used: that every keyword has a value that its draft allows (with
 * the verdict of the draft's meta-schema), its size, its patterns, and that its references lead
 * somewhere and not in circles.
 */

import {
  clip,
  describe,
  describeThrown,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  pointerStep,
} from "../tool/mod.ts";
import type {
  AdmittedSchema,
  Hardening,
  PatternBudget,
  SchemaEngine,
  SchemaValidator,
} from "./engine.ts";
import {
  detectDialect,
  type Dialect,
  dialectOf,
  holdsSchemas,
  isStructure,
  KEYWORDS,
  type KeywordShape,
} from "./keywords.ts";
import {
  boundReferences,
  pointerSteps,
  type Reference,
  ReferenceIndex,
  ROOT_URI,
} from "./references.ts";

/** The bounds of one schema. Values are also counted in `enum`, `default` and unknown keywords. */
const MAX_SCHEMAS = 5_000;
const MAX_DEPTH = 64;
const MAX_VALUES = 100_000;
const MAX_CHARACTERS = 1_000_000;

/** The maximum number of states of all patterns of a schema: some hundred milliseconds. */
export const MAX_PATTERN_STATES = 250_000;

/**
 * Checks a schema and detects its draft. Unknown keywords, and keywords about other types of
 * values, are accepted, as JSON Schema has it.
 *
 * @param budget The states that its patterns may cost together. Their cost is taken off.
 * @throws {TypeError} If a keyword has an invalid value, or a reference has no target or refers to
 * itself.
 * @throws {SyntaxError} If a pattern is not a regular expression.
 * @throws {RangeError} If it is too large or too deep.
 */
export function checkSchema(
  schema: JsonSchema,
  what: string = "the schema",
  hardening?: Hardening,
  budget: PatternBudget = { left: MAX_PATTERN_STATES },
): AdmittedSchema {
  const dialect = dialectOf(schema, `use ${what}`);
  const index = new ReferenceIndex(schema, dialect);
  let schemas = 0;
  let values = 0;
  let characters = 0;
  /** The keys on the way to the current place; made into a pointer only when one is needed. */
  const path: string[] = [];
  const visited = new Set<unknown>();
  const references: Reference[] = [];
  let recursiveAnchors = 0;

  checkPart(schema, ROOT_URI, 0);
  // A target outside of the places for schemas is checked when it is resolved, and may add references.
  for (const reference of references) reference.targets = resolve(reference);
  boundReferences(references, dialect, MAX_SCHEMAS, what);
  // Engines get a copy of each schema for each scope of its dynamic references.
  let scopes = 1;
  for (const { length } of index.dynamicAnchors.values()) if (length > 1) scopes *= length + 1;
  if (scopes > 1 && schemas * scopes > MAX_SCHEMAS) {
    tooLarge(`at most ${MAX_SCHEMAS} schemas for all meanings of its dynamic references`);
  }
  return { dialect };

  function checkPart(part: unknown, base: string, depth: number): void {
    if (typeof part === "boolean") return count();
    if (!isObject(part)) wrong("an object or a boolean", part);
    if (++schemas > MAX_SCHEMAS) tooLarge(`at most ${MAX_SCHEMAS} schemas`);
    count();
    checkDepth(depth);
    visited.add(part);
    const inner = index.add(part, base, (name) => {
      fail(TypeError, `has an "$id" or anchor that is taken or no URI: ${describe(name)}`);
    });
    for (const keyword of Object.keys(part)) {
      characters += keyword.length;
      path.push(keyword);
      checkKeyword(keyword, part, inner, depth);
      path.pop();
    }
  }

  function checkKeyword(
    keyword: string,
    holder: JsonSchemaObject,
    base: string,
    depth: number,
  ): void {
    const value = holder[keyword];
    const { shape: known = "any", role } = KEYWORDS[dialect].get(keyword) ?? {};
    const either = Array.isArray(value) ? "schemas" : "schema";
    const shape = known === "schema or schemas" ? either : known;
    const rule = VALUE_RULES[shape];
    if (rule !== undefined && !rule[1](value)) wrong(rule[0], value);
    if (shape === "schema") return checkPart(value, base, depth + 1);
    if (holdsSchemas(shape) || shape === "dependentRequired") {
      return checkMembers(keyword, shape, value as object, base, depth);
    }
    if (keyword === "$recursiveAnchor" && value === true && dialect === "2019-09") {
      if (recursiveAnchors++ > 0) {
        fail(TypeError, 'must stand in one place: write several as "$dynamicAnchor" in 2020-12');
      }
    }
    if (isReference(keyword) && role === "limits") {
      references.push({ holder, keyword, base, pointer: pointer(), targets: [] });
    }
    countData(value, depth + 1);
    if (shape === "pattern") checkPattern(value as string);
  }

  function checkMembers(
    keyword: string,
    shape: KeywordShape,
    members: object,
    base: string,
    depth: number,
  ): void {
    const isList = Array.isArray(members);
    for (const [place, member] of isList ? members.entries() : Object.entries(members)) {
      const key = String(place);
      if (!isList) characters += key.length;
      path.push(key);
      if (keyword === "patternProperties") checkPattern(key);
      if (shape === "dependentRequired" || (shape === "dependencies" && Array.isArray(member))) {
        if (!isDifferentStrings(member)) wrong("a list of different strings", member);
        countData(member, depth + 1);
      } else checkPart(member, base, depth + 1);
      path.pop();
    }
  }

  function countData(value: unknown, depth: number): void {
    if (typeof value === "string") characters += value.length;
    count();
    if (!isStructure(value)) return;
    checkDepth(depth);
    for (const key of Object.keys(value)) {
      characters += key.length;
      countData((value as Record<string, unknown>)[key], depth + 1);
    }
  }

  function count(): void {
    if (++values > MAX_VALUES) tooLarge(`at most ${MAX_VALUES} values`);
    if (characters > MAX_CHARACTERS) tooLarge(`at most ${MAX_CHARACTERS} characters`);
  }

  function checkDepth(depth: number): void {
    if (depth > MAX_DEPTH) tooLarge(`at most ${MAX_DEPTH} levels`);
  }

  function checkPattern(source: string): void {
    try {
      if (hardening === undefined) new RegExp(source, "u");
      else hardening.compilePattern(source, budget);
    } catch (cause) {
      const rule = hardening === undefined
        ? 'must be a regular expression that works with the "u" flag'
        : describeThrown(cause).replace("The pattern ", "");
      fail(SyntaxError, `${rule}, not "${clip(source)}"`);
    }
  }

  function resolve({ holder, keyword, base, pointer }: Reference): readonly unknown[] {
    // Until draft-07 a $ref hides other keywords, but nothing hides a $ref.
    const ref = holder[keyword] as string;
    const target = index.resolve(ref, base);
    if (target === undefined) {
      fail(
        TypeError,
        `must point into the schema (nothing is fetched), and ${describe(ref)} leads nowhere in it`,
        pointer,
      );
    }
    if (!visited.has(target.schema)) {
      path.push(...pointerSteps(ref.slice(ref.indexOf("#") + 1)));
      checkPart(target.schema, target.base, 0);
      path.length = 0;
    }
    const anchor = keyword === "$dynamicRef" && isObject(target.schema) &&
      target.schema["$dynamicAnchor"];
    // Which of the anchors of one name a dynamic reference means depends on the way to it.
    return typeof anchor === "string"
      ? (index.dynamicAnchors.get(anchor) ?? []).map((namesake) => namesake.schema)
      : [target.schema];
  }

  function pointer(): string {
    return path.map(pointerStep).join("");
  }

  function wrong(rule: string, value: unknown): never {
    fail(TypeError, `must be ${rule}, not ${describe(value)}`);
  }

  function tooLarge(rule: string): never {
    fail(RangeError, `goes too far: the schema must have ${rule}`);
  }

  function fail(Kind: new (message: string) => Error, problem: string, at = pointer()): never {
    throw new Kind(`Cannot use ${what}: ${at === "" ? "it" : `"${clip(at, 200)}"`} ${problem}`);
  }
}

const TYPES: ReadonlySet<unknown> = new Set(
  "array boolean integer null number object string".split(" "),
);
const ANCHOR = /^[A-Za-z_][-A-Za-z0-9._]*$/;

type Rule = readonly [words: string, fits: (value: unknown) => boolean];

const VALUE_RULES: { readonly [Shape in KeywordShape]?: Rule } = {
  schemas: ["a list of at least one schema", (value) => Array.isArray(value) && value.length > 0],
  map: ["an object of schemas", isObject],
  dependencies: ["an object of schemas", isObject],
  dependentRequired: ["an object of lists of names", isObject],
  text: ["a string", isString],
  pattern: ["a string", isString],
  flag: ["true or false", (value) => typeof value === "boolean"],
  number: ["a number", (value) => typeof value === "number"],
  positive: ["a number above 0", (value) => typeof value === "number" && value > 0],
  count: [
    "a whole number of at least 0",
    (value) => Number.isInteger(value) && (value as number) >= 0,
  ],
  list: ["a list", Array.isArray],
  strings: ["a list of different strings", isDifferentStrings],
  types: [
    `one of ${[...TYPES].join(", ")}, or a list of different ones of them`,
    (value) =>
      Array.isArray(value)
        ? value.length > 0 && isDifferentStrings(value) && value.every((type) => TYPES.has(type))
        : TYPES.has(value),
  ],
  id: ['a URI reference without "#"', (value) => isString(value) && /^[^#]*#?$/.test(value)],
  anchor: [
    'a letter or "_", then letters, digits, "-", "_" or "."',
    (value) => isString(value) && ANCHOR.test(value),
  ],
  vocabulary: [
    "an object with true or false for each URI",
    (value) => isObject(value) && Object.values(value).every((on) => typeof on === "boolean"),
  ],
} satisfies Record<Exclude<KeywordShape, "schema" | "schema or schemas" | "any">, Rule>;

function isReference(keyword: string): keyword is Reference["keyword"] {
  return keyword === "$ref" || keyword === "$dynamicRef" || keyword === "$recursiveRef";
}

function isDifferentStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string") &&
    new Set(value).size === value.length;
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

/** The part of an engine that differs between engines; see {@linkcode withSchemaCheck}. */
export interface SchemaCompiler {
  /** Names the engine in messages. */
  readonly name: string;
  /** Compiles a schema that has been checked. Throws a `SyntaxError` if it cannot. */
  compile(schema: JsonSchema, dialect: Dialect, hardening?: Hardening): SchemaValidator;
}

/**
 * Makes an engine of a function that compiles. Its `admit` checks schemas as the engines of plue do:
 * with the verdict of the draft's meta-schema, the bounds of a registry, and references that lead
 * somewhere.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { withSchemaCheck } from "@plue/tools";
 * import { Registry } from "@plue/tools/core";
 *
 * // An engine that compiles nothing, for tools that check their arguments themselves.
 * const engine = withSchemaCheck({
 *   name: "none",
 *   compile: () => ({ check: () => true, issues: () => [] }),
 * });
 * const registry = new Registry({ engine });
 * const parameters = { type: "object", required: "a" };
 *
 * assert.equal(engine.admit({ type: "string" }).dialect, "2020-12");
 * assert.throws(() => registry.registerTool({ name: "a", description: "A.", parameters }), {
 *   message: /"\/required" must be a list of different strings/,
 * });
 * ```
 *
 * @param compiler Compiles the schemas.
 * @returns The engine.
 */
export function withSchemaCheck(compiler: SchemaCompiler): SchemaEngine {
  return Object.freeze({
    name: compiler.name,
    admit: checkSchema,
    compile: (schema: JsonSchema, dialect?: Dialect, hardening?: Hardening) =>
      compiler.compile(schema, dialect ?? detectDialect(schema), hardening),
  });
}
