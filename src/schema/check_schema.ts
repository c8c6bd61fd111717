/** Checks a schema before its use: its keywords' values, size, patterns and references. */

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
import * as keywords from "./keywords.ts";
import type { Dialect } from "./keywords.ts";
import * as references from "./references.ts";

/** The bounds of one schema. The values in `enum`, `default` and unknown keywords count, too. */
const MAX_SCHEMAS = 5_000;
const MAX_DEPTH = 64;
const MAX_VALUES = 100_000;
const MAX_CHARACTERS = 1_000_000;

/** The maximum number of states of all patterns of a schema: some hundred milliseconds of work. */
export const MAX_PATTERN_STATES = 250_000;

/**
 * Checks a schema and detects its draft. Unknown keywords, and keywords about other types of values,
 * are accepted. The states of its patterns are subtracted from `budget`.
 *
 * @throws {TypeError} If a keyword has an invalid value, or a reference has no target or refers to
 * itself.
 * @throws {SyntaxError} If a pattern is not a regular expression.
 * @throws {RangeError} If the schema is too large or too deep.
 */
export function checkSchema(
  schema: JsonSchema,
  what: string = "the schema",
  hardening?: Hardening,
  budget: PatternBudget = { left: MAX_PATTERN_STATES },
): AdmittedSchema {
  const dialect = keywords.dialectOf(schema, `use ${what}`);
  const compile = hardening?.compilePattern ?? compilePlain;
  new SchemaChecker(schema, dialect, what, (source) => compile(source, budget)).check(schema);
  return { dialect };
}

function compilePlain(source: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch {
    throw new SyntaxError('must be a regular expression that works with the "u" flag');
  }
}

class SchemaChecker {
  readonly #dialect: Dialect;
  readonly #what: string;
  readonly #compile: (source: string) => RegExp;
  readonly #index: references.ReferenceIndex;
  #schemas = 0;
  #values = 0;
  #characters = 0;
  /** The keys of the current position. The pointer is created only for an error or a reference. */
  readonly #path: string[] = [];
  readonly #visited = new Set<unknown>();
  readonly #references: references.Reference[] = [];
  #recursiveAnchors = 0;

  constructor(
    schema: JsonSchema,
    dialect: Dialect,
    what: string,
    compile: (source: string) => RegExp,
  ) {
    this.#dialect = dialect;
    this.#what = what;
    this.#compile = compile;
    this.#index = new references.ReferenceIndex(schema, dialect);
  }

  check(root: JsonSchema): void {
    this.#checkPart(root, references.ROOT_URI, 0);
    // A target that was not checked as a part of the schema is checked now, and may add references.
    for (const reference of this.#references) reference.targets = this.#resolve(reference);
    references.boundReferences(this.#references, this.#dialect, MAX_SCHEMAS, this.#what);
    // Engines get a copy of each schema for each scope of a dynamic reference.
    let scopes = 1;
    for (const { length } of this.#index.dynamicAnchors.values()) {
      if (length > 1) scopes *= length + 1;
    }
    if (scopes > 1 && this.#schemas * scopes > MAX_SCHEMAS) {
      this.#tooLarge(`at most ${MAX_SCHEMAS} schemas for all scopes of its dynamic references`);
    }
  }

  #checkPart(part: unknown, base: string, depth: number): void {
    if (typeof part === "boolean") return this.#count();
    if (!isObject(part)) this.#wrong("an object or a boolean", part);
    if (++this.#schemas > MAX_SCHEMAS) this.#tooLarge(`at most ${MAX_SCHEMAS} schemas`);
    this.#count(0, depth);
    this.#visited.add(part);
    const inner = this.#index.add(part, base, (name) => {
      this.#fail(TypeError, `has an "$id" or anchor that is taken or not a URI: ${describe(name)}`);
    });
    for (const keyword of Object.keys(part)) {
      this.#characters += keyword.length;
      this.#path.push(keyword);
      this.#checkKeyword(keyword, part, inner, depth + 1);
      this.#path.pop();
    }
  }

  /** @param depth The depth of the keyword's value. */
  #checkKeyword(keyword: string, holder: JsonSchemaObject, base: string, depth: number): void {
    const value = holder[keyword];
    const { shape: known = "any", role } = keywords.KEYWORDS[this.#dialect].get(keyword) ?? {};
    const either = Array.isArray(value) ? "schemas" : "schema";
    const shape = known === "schema or schemas" ? either : known;
    const rule = VALUE_RULES[shape];
    if (rule !== undefined && !rule[1](value)) this.#wrong(rule[0], value);
    if (shape === "schema") return this.#checkPart(value, base, depth);
    if (keywords.holdsSchemas(shape) || shape === "dependentRequired") {
      return this.#checkMembers(keyword, shape, value as object, base, depth);
    }
    const isRecursive = keyword === "$recursiveAnchor" && this.#dialect === "2019-09";
    if (isRecursive && value === true && this.#recursiveAnchors++ > 0) {
      this.#fail(TypeError, 'must not occur twice: write several as "$dynamicAnchor" in 2020-12');
    }
    if (isReference(keyword) && role === "limits") {
      this.#references.push({ holder, keyword, base, pointer: this.#pointer(), targets: [] });
    }
    this.#countData(value, depth);
    if (shape === "pattern") this.#checkPattern(value as string);
  }

  #checkMembers(
    keyword: string,
    shape: keywords.KeywordShape,
    members: object,
    base: string,
    depth: number,
  ): void {
    const isList = Array.isArray(members);
    for (const [step, member] of isList ? members.entries() : Object.entries(members)) {
      const key = String(step);
      if (!isList) this.#characters += key.length;
      this.#path.push(key);
      if (keyword === "patternProperties") this.#checkPattern(key);
      if (shape === "dependentRequired" || (shape === "dependencies" && Array.isArray(member))) {
        if (!isDifferentStrings(member)) this.#wrong("a list of different strings", member);
        this.#countData(member, depth);
      } else this.#checkPart(member, base, depth);
      this.#path.pop();
    }
  }

  #countData(value: unknown, depth: number): void {
    if (!keywords.isStructure(value)) {
      return this.#count(typeof value === "string" ? value.length : 0);
    }
    this.#count(0, depth);
    for (const [key, member] of Object.entries(value)) {
      this.#characters += key.length;
      this.#countData(member, depth + 1);
    }
  }

  #count(characters = 0, depth = 0): void {
    this.#characters += characters;
    if (++this.#values > MAX_VALUES) this.#tooLarge(`at most ${MAX_VALUES} values`);
    if (this.#characters > MAX_CHARACTERS) this.#tooLarge(`at most ${MAX_CHARACTERS} characters`);
    if (depth > MAX_DEPTH) this.#tooLarge(`at most ${MAX_DEPTH} levels`);
  }

  #checkPattern(source: string): void {
    try {
      this.#compile(source);
    } catch (cause) {
      const rule = describeThrown(cause).replace("The pattern ", "");
      this.#fail(SyntaxError, `${rule}, not "${clip(source)}"`);
    }
  }

  #resolve({ holder, keyword, base, pointer }: references.Reference): readonly unknown[] {
    // Until draft-07, a `$ref` hides the keywords next to it, but no keyword hides a `$ref`.
    const ref = holder[keyword] as string;
    const target = this.#index.resolve(ref, base);
    if (target === undefined) {
      const rule = "must point into the schema (nothing is fetched)";
      this.#fail(TypeError, `${rule}, and ${describe(ref)} has no target in it`, pointer);
    }
    if (!this.#visited.has(target.schema)) {
      this.#path.push(...references.pointerSteps(ref.slice(ref.indexOf("#") + 1)));
      this.#checkPart(target.schema, target.base, 0);
      this.#path.length = 0;
    }
    const anchor = keyword === "$dynamicRef" && isObject(target.schema) &&
      target.schema["$dynamicAnchor"];
    // A dynamic reference has as targets all anchors with its name. Validation chooses one of them.
    return typeof anchor === "string"
      ? (this.#index.dynamicAnchors.get(anchor) ?? []).map((namesake) => namesake.schema)
      : [target.schema];
  }

  #pointer(): string {
    return this.#path.map(pointerStep).join("");
  }

  #wrong(rule: string, value: unknown): never {
    this.#fail(TypeError, `must be ${rule}, not ${describe(value)}`);
  }

  #tooLarge(rule: string): never {
    this.#fail(RangeError, `exceeds a limit: the schema must have ${rule}`);
  }

  #fail(Kind: new (message: string) => Error, problem: string, at = this.#pointer()): never {
    const subject = at === "" ? "it" : `"${clip(at, 200)}"`;
    throw new Kind(`Cannot use ${this.#what}: ${subject} ${problem}`);
  }
}

const TYPES = new Set<unknown>("array boolean integer null number object string".split(" "));
const ANCHOR = /^[A-Za-z_][-A-Za-z0-9._]*$/;

type Rule = readonly [words: string, fits: (value: unknown) => boolean];

const VALUE_RULES: { readonly [Shape in keywords.KeywordShape]?: Rule } = {
  schemas: ["a list of at least one schema", (value) => Array.isArray(value) && value.length > 0],
  map: ["an object of schemas", isObject],
  dependencies: ["an object of schemas", isObject],
  dependentRequired: ["an object of lists of names", isObject],
  text: ["a string", isString],
  pattern: ["a string", isString],
  flag: ["true or false", (value) => typeof value === "boolean"],
  number: ["a number", (value) => typeof value === "number"],
  positive: ["a number above 0", (value) => typeof value === "number" && value > 0],
  count: ["a whole number of at least 0", (value) => Number.isInteger(value) && Number(value) >= 0],
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
} satisfies Record<Exclude<keywords.KeywordShape, "schema" | "schema or schemas" | "any">, Rule>;

function isReference(keyword: string): keyword is references.Reference["keyword"] {
  return keyword === "$ref" || keyword === "$dynamicRef" || keyword === "$recursiveRef";
}

function isDifferentStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string") &&
    new Set(value).size === value.length;
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

/** The part of a schema engine that each engine implements; see {@linkcode withSchemaCheck}. */
export interface SchemaCompiler {
  /** Names the engine in messages. */
  readonly name: string;
  /** Compiles a schema that was checked before. Throws a `SyntaxError` if the engine cannot. */
  compile(schema: JsonSchema, dialect: Dialect, hardening?: Hardening): SchemaValidator;
}

/**
 * Creates an engine from a function that compiles. Its `admit` checks schemas as the engines of plue
 * do: the values of keywords, the size, patterns and references.
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
 */
export function withSchemaCheck(compiler: SchemaCompiler): SchemaEngine {
  return Object.freeze({
    name: compiler.name,
    admit: checkSchema,
    compile: (schema: JsonSchema, dialect?: Dialect, hardening?: Hardening) =>
      compiler.compile(schema, dialect ?? keywords.detectDialect(schema), hardening),
  });
}
