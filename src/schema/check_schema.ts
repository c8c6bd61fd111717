/**
 * Checks a schema before it is used: every keyword's value against what its draft wants (the
 * verdict of the draft's meta-schema), its size, its patterns, and that its references lead
 * somewhere and not in circles.
 *
 * @module
 */

import {
  clip,
  describe,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  pointerStep,
} from "../tool/mod.ts";
import { detectDialect, type Dialect } from "./dialect.ts";
import { KEYWORDS, type KeywordShape } from "./keywords.ts";
import { boundReferences, type Reference } from "./reference_bounds.ts";
import { pointerSteps, ReferenceIndex, ROOT_URI } from "./references.ts";
import { isDifferentStrings, VALUE_RULES } from "./value_rules.ts";

/** Options for {@linkcode checkSchema}. The bounds keep a hostile schema from taking the machine. */
export interface CheckSchemaOptions {
  /**
   * What the schema is called in messages, such as `the parameters of tool "add"`.
   *
   * @default {"the schema"}
   */
  readonly what?: string;
  /**
   * How many schemas it may hold, itself included.
   *
   * @default {5_000}
   */
  readonly maxSchemas?: number;
  /**
   * How deep schemas, and values inside them, may nest.
   *
   * @default {64}
   */
  readonly maxDepth?: number;
  /**
   * How many values it may hold, those in `enum`, `default` and unknown keywords included.
   *
   * @default {100_000}
   */
  readonly maxValues?: number;
  /**
   * How many characters its keys and strings may have in all.
   *
   * @default {1_000_000}
   */
  readonly maxCharacters?: number;
}

/** What {@linkcode checkSchema} found out. */
export interface CheckedSchema {
  /** The draft it was checked against. */
  readonly dialect: Dialect;
}

const SCHEMA_RULE = "an object or a boolean";

/**
 * Checks a schema and says which draft it is in. What is strange but legal (unknown keywords, a
 * `minimum` for strings) is accepted.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { checkSchema } from "@plue/tools";
 *
 * assert.equal(checkSchema({ type: "string" }).dialect, "2020-12");
 * assert.throws(() => checkSchema({ properties: { a: { minimum: "1" } } }), {
 *   name: "TypeError",
 *   message: 'Cannot use the schema: "/properties/a/minimum" must be a number, not "1"',
 * });
 * ```
 *
 * @param schema The schema.
 * @param options What it is called, and how large it may be.
 * @returns The draft.
 * @throws {TypeError} If a keyword has a wrong value, or a reference leads nowhere or in a circle.
 * @throws {SyntaxError} If a pattern is no regular expression.
 * @throws {RangeError} If it is too large or too deep.
 */
export function checkSchema(schema: JsonSchema, options: CheckSchemaOptions = {}): CheckedSchema {
  const { what = "the schema" } = options;
  let dialect: Dialect;
  try {
    dialect = detectDialect(schema);
  } catch (cause) {
    throw new TypeError(
      (cause as TypeError).message.replace("read the schema", () => `use ${what}`),
    );
  }
  new SchemaChecker(schema, dialect, what, options).run(schema);
  return { dialect };
}

/** One check of one document. */
class SchemaChecker {
  readonly #keywords: ReadonlyMap<string, KeywordShape>;
  readonly #dialect: Dialect;
  readonly #index: ReferenceIndex;
  readonly #what: string;
  readonly #maxDepth: number;
  readonly #limits: readonly [schemas: number, values: number, characters: number];
  #schemas: number;
  #values: number;
  #characters: number;
  /** The keys on the way to the current place; made into a pointer only when one is needed. */
  readonly #path: (string | number)[] = [];
  readonly #visited = new Set<unknown>();
  readonly #references: Reference[] = [];

  constructor(
    root: JsonSchema,
    dialect: Dialect,
    what: string,
    options: CheckSchemaOptions,
  ) {
    const {
      maxSchemas = 5_000,
      maxDepth = 64,
      maxValues = 100_000,
      maxCharacters = 1_000_000,
    } = options;
    this.#keywords = KEYWORDS[dialect];
    this.#dialect = dialect;
    this.#index = new ReferenceIndex(root, dialect);
    this.#what = what;
    this.#maxDepth = maxDepth;
    this.#limits = [maxSchemas, maxValues, maxCharacters];
    [this.#schemas, this.#values, this.#characters] = this.#limits;
  }

  run(root: JsonSchema): void {
    this.#schema(root, ROOT_URI, 0);
    const targets = new Map<Reference, readonly unknown[]>();
    // A target may lie where no schema is expected; then it is checked too, and may add references.
    for (const reference of this.#references) {
      targets.set(reference, this.#resolve(reference));
    }
    if (targets.size > 0) {
      boundReferences(root, targets, this.#dialect, this.#limits[0], this.#what);
    }
  }

  #schema(schema: unknown, base: string, depth: number): void {
    if (typeof schema === "boolean") return this.#count();
    if (!isObject(schema)) this.#wrong(SCHEMA_RULE, schema);
    if (--this.#schemas < 0) this.#tooLarge(`at most ${this.#limits[0]} schemas`);
    this.#count();
    if (depth > this.#maxDepth) this.#tooLarge(`at most ${this.#maxDepth} levels`);
    this.#visited.add(schema);
    const inner = this.#index.add(schema, base);
    if (typeof inner !== "string") {
      this.#fail(
        TypeError,
        `has an "$id" or anchor that is taken or no URI: ${describe(inner.taken)}`,
      );
    }
    for (const keyword of Object.keys(schema)) {
      this.#characters -= keyword.length;
      this.#path.push(keyword);
      this.#keyword(keyword, schema, inner, depth);
      this.#path.pop();
    }
  }

  #keyword(keyword: string, schema: JsonSchemaObject, base: string, depth: number): void {
    const value = schema[keyword];
    const shape = this.#keywords.get(keyword);
    switch (shape) {
      case undefined:
        return this.#data(value, depth + 1);
      case "schema":
        return this.#schema(value, base, depth + 1);
      case "schema or schemas":
        return Array.isArray(value)
          ? this.#list(value, base, depth)
          : this.#schema(value, base, depth + 1);
      case "schemas":
        return this.#list(value, base, depth);
      case "map":
      case "dependencies":
      case "dependentRequired":
        return this.#members(keyword, shape, value, base, depth);
      case "pattern":
        if (typeof value !== "string") this.#wrong("a string", value);
        this.#pattern(value);
        return this.#data(value, depth);
      default: {
        const rule = VALUE_RULES[shape];
        if (rule !== undefined && !rule[1](value)) this.#wrong(rule[0], value);
        if (keyword === "$ref" || keyword === "$dynamicRef") {
          this.#references.push({ holder: schema, keyword, base, pointer: this.#pointer() });
        }
        this.#data(value, depth + 1);
      }
    }
  }

  #list(value: unknown, base: string, depth: number): void {
    if (!Array.isArray(value) || value.length === 0) {
      this.#wrong("a list of at least one schema", value);
    }
    value.forEach((item, at) => this.#at(at, () => this.#schema(item, base, depth + 1)));
  }

  #members(
    keyword: string,
    shape: "map" | "dependencies" | "dependentRequired",
    value: unknown,
    base: string,
    depth: number,
  ): void {
    if (!isObject(value)) {
      this.#wrong(
        shape === "dependentRequired" ? "an object of lists of names" : "an object of schemas",
        value,
      );
    }
    for (const name of Object.keys(value)) {
      this.#characters -= name.length;
      this.#at(name, () => {
        if (keyword === "patternProperties") this.#pattern(name);
        const member = value[name];
        if (shape === "map" || (shape === "dependencies" && !Array.isArray(member))) {
          return this.#schema(member, base, depth + 1);
        }
        if (!isDifferentStrings(member)) this.#wrong("a list of different strings", member);
        this.#data(member, depth + 1);
      });
    }
  }

  /** Counts what is not a schema, all the way down. */
  #data(value: unknown, depth: number): void {
    if (typeof value === "string") this.#characters -= value.length;
    this.#count();
    if (typeof value === "object" && value !== null) {
      if (depth > this.#maxDepth) this.#tooLarge(`at most ${this.#maxDepth} levels`);
      for (const key of Object.keys(value)) {
        this.#characters -= key.length;
        this.#data((value as Record<string, unknown>)[key], depth + 1);
      }
    }
  }

  #count(): void {
    if (--this.#values < 0) this.#tooLarge(`at most ${this.#limits[1]} values`);
    if (this.#characters < 0) this.#tooLarge(`at most ${this.#limits[2]} characters`);
  }

  #pattern(source: string): void {
    try {
      new RegExp(source, "u");
    } catch {
      this.#fail(
        SyntaxError,
        `must be a regular expression that works with the "u" flag, not "${clip(source)}"`,
      );
    }
  }

  /** Everything that a reference may lead to. */
  #resolve({ holder, keyword, base, pointer }: Reference): readonly unknown[] {
    // In draft-07 a $ref hides everything beside it, but is itself never hidden.
    const ref = holder[keyword] as string;
    const target = this.#index.resolve(ref, base);
    if (target === undefined) {
      throw new TypeError(
        `Cannot use ${this.#what}: "${pointer}" must point into the schema (nothing is fetched), ` +
          `and ${describe(ref)} leads nowhere in it`,
      );
    }
    if (!this.#visited.has(target.schema)) {
      this.#path.splice(0, this.#path.length, ...pointerSteps(ref.slice(ref.indexOf("#") + 1)));
      this.#schema(target.schema, target.base, 0);
      this.#path.length = 0;
    }
    const anchor = keyword === "$dynamicRef" && isObject(target.schema) &&
      target.schema["$dynamicAnchor"];
    // Which of its namesakes a dynamic reference means depends on the way to it.
    return typeof anchor === "string"
      ? (this.#index.dynamicAnchors.get(anchor) ?? []).map((namesake) => namesake.schema)
      : [target.schema];
  }

  #at(step: string | number, check: () => void): void {
    this.#path.push(step);
    check();
    this.#path.pop();
  }

  #pointer(): string {
    return this.#path.map(pointerStep).join("");
  }

  #wrong(rule: string, value: unknown): never {
    this.#fail(TypeError, `must be ${rule}, not ${describe(value)}`);
  }

  #tooLarge(rule: string): never {
    this.#fail(RangeError, `goes too far: the schema must have ${rule}`);
  }

  #fail(Kind: new (message: string) => Error, problem: string): never {
    const pointer = this.#pointer();
    const where = pointer === "" ? "it" : `"${clip(pointer, 200)}"`;
    throw new Kind(`Cannot use ${this.#what}: ${where} ${problem}`);
  }
}
