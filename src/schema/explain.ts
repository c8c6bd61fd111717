/**
 * Explains why an engine has rejected a value, by a walk over the schema: the sentences are the
 * same for every engine, a union is explained by its closest branch, and the work is bounded. The
 * errors of the engines have none of these properties, and need as much code in a bundle. The walk
 * accepts the same values as the engines, so it also checks values where no code may be generated.
 */

import {
  canonicalJson,
  clip,
  isObject,
  type Issue,
  type JsonSchema,
  type JsonSchemaObject,
  once,
  pointerStep,
} from "../tool/mod.ts";
import { type Hardening, MAX_ISSUES } from "./engine.ts";
import {
  counted,
  issue,
  nameHint,
  quote,
  quoteList,
  tooCostlyIssue,
  typeWords,
  unionIssues,
} from "./issues.ts";
import { detectDialect, entriesOf, isStructure, listOf } from "./keywords.ts";
import { type NormalizedSchema, normalizeSchema } from "./normalize.ts";
import { compilePattern, resetSteps } from "./patterns.ts";

/** The maximum number of visits of a value by a schema. They take about 50 ms. */
const MAX_STEPS = 60_000;
const MAX_KEY = 100;

/** The maximum number of known names that are compared with the unknown names of a value. */
const MAX_COMPARED_NAMES = 4_000;
export type FormatTest = (format: string, value: string) => boolean;

interface Visit {
  readonly path: string;
  /** The keys of an object, or the indexes of a list, that were checked. */
  readonly seen: Set<string>;
  readonly found: Issue[];
  /** Adds an issue about the visited value. */
  readonly add: (keyword: string, expected: string, verb?: string, remark?: string) => void;
}

/** The choices of a `const` or `enum`, and the text that lists them in an issue. */
interface Choices {
  readonly keyword: string;
  readonly include: (value: unknown) => boolean;
  readonly words: string;
}

interface Found {
  readonly path: string;
  readonly found: readonly Issue[];
}

/** Interprets one schema. Explains failed checks, and checks where engines cannot compile. */
export class SchemaInterpreter {
  readonly #form: NormalizedSchema;
  readonly #testFormat: FormatTest;
  readonly #compilePattern: (source: string) => Pick<RegExp, "test">;
  /** Caches the choices of each schema, because many values may be compared with a long list. */
  readonly #choices: Map<object, readonly Choices[]> = new Map();
  /** Caches the canonical JSON of parts of the current value. */
  readonly #texts: Map<unknown, string> = new Map();
  readonly #patterns: Map<string, Pick<RegExp, "test">> = new Map();
  /** Caches the issues of each part of the current value, by schema. */
  readonly #parts: Map<unknown, Map<object, Found>> = new Map();
  /** Caches the length of one text, because many schemas may limit the length. */
  #measured = "";
  #length = 0;
  #steps = 0;
  /** The number of known names that were compared with unknown names of the current value. */
  #compared = 0;

  constructor(
    form: NormalizedSchema,
    testFormat: FormatTest,
    hardening?: Pick<Hardening, "compilePattern">,
  ) {
    this.#form = form;
    this.#testFormat = testFormat;
    this.#compilePattern = hardening?.compilePattern ?? ((source) => new RegExp(source, "u"));
  }

  /** Returns at most 8 issues of a value. Never throws, and ends within `maxSteps` visits. */
  issues(value: unknown, maxSteps: number = MAX_STEPS): readonly Issue[] {
    this.#steps = maxSteps;
    this.#compared = 0;
    try {
      return this.#visit(this.#form.schema, value, "").slice(0, MAX_ISSUES);
    } catch {
      // A pattern or this walk exceeds its steps, or the value is too deep for the stack.
      return [tooCostlyIssue()];
    } finally {
      this.#parts.clear();
      this.#texts.clear();
      // A large text must not stay in memory.
      this.#measured = "";
      this.#length = 0;
    }
  }

  #spend(count: number): void {
    this.#steps -= count;
    if (this.#steps < 0) throw new RangeError("Too costly");
  }

  /** Adds the checked keys to `seen`. */
  #visit(
    schema: unknown,
    value: unknown,
    path: string,
    seen: Set<string> = new Set(),
  ): readonly Issue[] {
    if (schema === false) return [issue(path, "false schema", "absent")];
    if (!isObject(schema)) return [];
    this.#spend(1);

    // Returns the first of these issues alone, because further issues would only distract.
    const { type } = schema;
    for (const { keyword, include, words } of this.#choicesOf(schema)) {
      if (!include(value)) return [issue(path, keyword, words)];
    }
    const types = type === undefined || Array.isArray(type) ? type : [type];
    if (types !== undefined && !types.some((one) => isOfType(one, value))) {
      // "must be an integer, not a number" does not explain why a fraction is invalid.
      const fraction = typeof value === "number" && types.includes("integer");
      const remark = fraction ? "" : `, not ${typeWords([typeOf(value)])}`;
      return [issue(path, "type", typeWords(types), "be", remark)];
    }

    const found: Issue[] = [];
    const add: Visit["add"] = (...issueAt) => found.push(issue(path, ...issueAt));
    const at: Visit = { path, seen, found, add };
    if (typeof value === "number") checkLimits(OF_NUMBER, schema, value, add);
    else if (typeof value === "string") this.#checkString(schema, value, at);
    else if (Array.isArray(value)) this.#checkArray(schema, value, at);
    else if (isObject(value)) this.#checkObject(schema, value, at);
    this.#checkInPlace(schema, value, at);
    if (Array.isArray(value)) this.#checkRest("unevaluatedItems", schema, value, at);
    else if (isObject(value)) this.#checkRest("unevaluatedProperties", schema, value, at);
    return found;
  }

  /** Visits a part once per schema. Otherwise each level of a value could double the visits. */
  #visitPart(schema: unknown, value: unknown, path: string): readonly Issue[] {
    if (!isObject(schema) || typeof value !== "object" || value === null) {
      return this.#visit(schema, value, path);
    }
    const known = once(this.#parts, schema, () => new Map<object, Found>());
    const before = known.get(value);
    // Compares the path, because one object may be the value of several properties.
    if (before?.path === path) return before.found;
    const found = this.#visit(schema, value, path);
    known.set(value, { path, found });
    return found;
  }

  /** Applies a schema to the same value. If it is valid, adds its checked keys to `seen`. */
  #apply(schema: unknown, value: unknown, { path, seen }: Visit): readonly Issue[] {
    const inner = new Set<string>();
    const found = this.#visit(schema, value, path, inner);
    if (found.length === 0) { for (const key of inner) seen.add(key); }
    return found;
  }

  #choicesOf(schema: JsonSchemaObject): readonly Choices[] {
    const textOf = (value: unknown): string => once(this.#texts, value, () => canonicalJson(value));
    return once(this.#choices, schema, () =>
      Object.entries({
        const: Object.hasOwn(schema, "const") ? [schema["const"]] : undefined,
        enum: schema["enum"],
      }).flatMap(([keyword, choices]) => {
        if (!Array.isArray(choices)) return [];
        const words = quoteList(choices, (more) => ` or ${more} more`);
        return {
          keyword,
          include: isOneOf(choices, textOf),
          words: choices.length === 1 ? words : `one of ${words}`,
        };
      }));
  }

  #matches(source: string, text: string): boolean {
    return once(this.#patterns, source, () => this.#compilePattern(source)).test(text);
  }

  #checkInPlace(schema: JsonSchemaObject, value: unknown, at: Visit): void {
    const { path, found, add } = at;
    const { $ref: ref, allOf, not, if: condition } = schema;
    if (typeof ref === "string") {
      found.push(...this.#apply(this.#form.targets.get(ref) ?? false, value, at));
    }
    for (const part of listOf(allOf)) found.push(...this.#apply(part, value, at));
    for (const keyword of ["anyOf", "oneOf"]) {
      const forms = listOf(schema[keyword]);
      if (forms.length === 0) continue;
      const results = forms.map((form) => this.#apply(form, value, at));
      const fitting = results.filter((result) => result.length === 0).length;
      if (fitting === 0) found.push(...unionIssues(keyword, path, results));
      else if (keyword === "oneOf" && fitting > 1) {
        add(keyword, `exactly one of ${forms.length} forms, and fits ${fitting}`, "fit");
      }
    }
    if (not !== undefined && this.#visit(not, value, path).length === 0) {
      add("not", 'the schema in "not"', "not match");
    }
    if (condition !== undefined) {
      const fits = this.#apply(condition, value, at).length === 0;
      found.push(...this.#apply(schema[fits ? "then" : "else"] ?? true, value, at));
    }
  }

  #checkString(schema: JsonSchemaObject, value: string, { add }: Visit): void {
    const { minLength, maxLength, pattern, format } = schema;
    if (minLength !== undefined || maxLength !== undefined) {
      if (value !== this.#measured) {
        this.#measured = value;
        this.#length = characters(value);
      }
      checkLimits(OF_LENGTH, schema, this.#length, add, "character");
    }
    if (typeof pattern === "string" && !this.#matches(pattern, value)) {
      add("pattern", `the pattern ${quote(pattern)}`, "match");
    }
    // A normalised schema with a format also has a maximum length.
    const isShort = maxLength === undefined || this.#length <= Number(maxLength);
    if (typeof format === "string" && isShort && !this.#testFormat(format, value)) {
      add("format", `the format ${quote(format)}`, "match");
    }
  }

  #checkArray(schema: JsonSchemaObject, value: readonly unknown[], at: Visit): void {
    const { path, seen, found, add } = at;
    const { prefixItems, items, contains, uniqueItems } = schema;
    checkLimits(OF_ITEMS, schema, value.length, add, "item");
    const twins = uniqueItems === true && sameItems(value);
    if (twins) {
      const remark = `: ${twins[0]} and ${twins[1]} are the same`;
      add("uniqueItems", "the same item twice", "not have", remark);
    }
    const first = listOf(prefixItems);
    for (let index = 0; index < value.length && found.length < MAX_ISSUES; index++) {
      const itemSchema = index < first.length ? first[index] : items;
      if (itemSchema === undefined) break;
      seen.add(String(index));
      found.push(...this.#visitPart(itemSchema, value[index], `${path}/${index}`));
    }
    if (contains === undefined) return;
    let matches = 0;
    for (const [index, item] of value.entries()) {
      if (this.#visitPart(contains, item, `${path}/${index}`).length > 0) continue;
      matches++;
      seen.add(String(index));
    }
    const { minContains = 1, maxContains = Infinity } = schema;
    const has = `, and has ${matches}`;
    if (matches < Number(minContains)) {
      const needed = counted(Number(minContains), "item");
      add("contains", `at least ${needed} matching "contains"`, "have", has);
    } else if (matches > Number(maxContains)) {
      const allowed = counted(Number(maxContains), "item");
      add("maxContains", `at most ${allowed} matching "contains"`, "have", has);
    }
  }

  #checkObject(schema: JsonSchemaObject, value: JsonSchemaObject, at: Visit): void {
    const { path, seen, found, add } = at;
    const { properties, patternProperties, additionalProperties, propertyNames } = schema;
    // A member that is `undefined` counts as absent, as in JSON.stringify().
    const has = (name: string): boolean => Object.hasOwn(value, name) && value[name] !== undefined;
    const requires = (names: unknown, keyword: string, because = ""): void => {
      for (const name of listOf(names).map(String)) {
        if (!has(name)) add(keyword, property(name), "have", because);
      }
    };
    requires(schema["required"], "required");
    const dependentRequired = entriesOf(schema["dependentRequired"]);
    this.#spend((listOf(schema["required"]).length + dependentRequired.length) / 8);
    for (const [name, needed] of dependentRequired) {
      if (!has(name)) continue;
      requires(needed, "dependentRequired", `, because it has ${quote(name)}`);
    }
    const keys = Object.keys(value).filter(has);
    this.#spend(keys.length / 4);
    checkLimits(OF_PROPERTIES, schema, keys.length, add, "property");
    const known = isObject(properties) ? properties : {};
    const byPattern = entriesOf(patternProperties);
    for (const key of keys) {
      if (found.length >= MAX_ISSUES) return;
      const [wrong] = propertyNames === undefined ? [] : this.#visit(propertyNames, key, "");
      if (wrong !== undefined) {
        const remark = `: its name${wrong.message.slice("The value".length)}`;
        add("propertyNames", property(key), "not have", remark);
      }
      const schemas: unknown[] = [];
      for (const [pattern, memberSchema] of byPattern) {
        if (this.#matches(pattern, key)) schemas.push(memberSchema);
      }
      if (Object.hasOwn(known, key)) schemas.push(known[key]);
      if (schemas.length === 0 && additionalProperties === false) {
        const names = Object.keys(known);
        this.#compared += names.length;
        const hint = this.#compared > MAX_COMPARED_NAMES ? "" : nameHint(key, names);
        add("additionalProperties", property(key), "not have", hint);
      } else if (schemas.length === 0 && additionalProperties !== undefined) {
        schemas.push(additionalProperties);
      }
      for (const memberSchema of schemas) {
        seen.add(key);
        found.push(...this.#visitPart(memberSchema, value[key], placeOf(path, key)));
      }
    }
    for (const [name, dependent] of entriesOf(schema["dependentSchemas"])) {
      if (has(name)) found.push(...this.#apply(dependent, value, at));
    }
  }

  #checkRest(
    keyword: "unevaluatedItems" | "unevaluatedProperties",
    schema: JsonSchemaObject,
    value: object,
    { path, seen, found, add }: Visit,
  ): void {
    const rest = schema[keyword];
    if (rest === undefined) return;
    for (const [key, member] of Object.entries(value)) {
      if (found.length >= MAX_ISSUES) return;
      if (seen.has(key)) continue;
      seen.add(key);
      if (rest === false && !Array.isArray(value)) {
        add(keyword, property(key), "not have");
      } else found.push(...this.#visitPart(rest, member, placeOf(path, key)));
    }
  }
}

/** A keyword that limits a number or a count: its wording in issues, and its rule. */
type Limit = readonly [
  keyword: string,
  words: string,
  fits: (value: number, limit: number) => boolean,
];

const least = (keyword: string): Limit => [keyword, "at least", (value, limit) => value >= limit];
const most = (keyword: string): Limit => [keyword, "at most", (value, limit) => value <= limit];

const OF_NUMBER: readonly Limit[] = [
  least("minimum"),
  most("maximum"),
  ["exclusiveMinimum", "more than", (value, limit) => value > limit],
  ["exclusiveMaximum", "less than", (value, limit) => value < limit],
  ["multipleOf", "a multiple of", isMultipleOf],
];
const OF_LENGTH = [least("minLength"), most("maxLength")];
const OF_ITEMS = [least("minItems"), most("maxItems")];
const OF_PROPERTIES = [least("minProperties"), most("maxProperties")];

/** `noun` names the counted parts. It is absent if the limit applies to a number. */
function checkLimits(
  limits: readonly Limit[],
  schema: JsonSchemaObject,
  value: number,
  add: Visit["add"],
  noun?: "character" | "item" | "property",
): void {
  for (const [keyword, words, fits] of limits) {
    const limit = schema[keyword];
    if (typeof limit !== "number" || fits(value, limit)) continue;
    if (noun === undefined) add(keyword, `${words} ${limit}`);
    else add(keyword, `${words} ${counted(limit, noun)}`, "have", `, and has ${value}`);
  }
}

function property(name: string): string {
  return `the property ${quote(name)}`;
}

function placeOf(path: string, key: string): string {
  return path + pointerStep(clip(key, MAX_KEY));
}

/** Code points, not code units: JSON Schema counts characters. */
export function characters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

export function isOfType(type: unknown, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return typeof value === "number" && Number.isFinite(value);
  return typeOf(value) === type;
}

export function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

/** Creates a test for one of `choices`. The test serializes the value only once. */
export function isOneOf(
  choices: readonly unknown[],
  textOf: (value: unknown) => string = canonicalJson,
): (value: unknown) => boolean {
  const simple = new Set(choices);
  const texts = new Set(choices.filter(isStructure).map((choice) => canonicalJson(choice)));
  return (value) =>
    isStructure(value) ? texts.size > 0 && texts.has(textOf(value)) : simple.has(value);
}

/** Returns the indexes of the first two equal items, in time linear in the size of the list. */
export function sameItems(items: readonly unknown[]): readonly [number, number] | undefined {
  const simple = new Map<unknown, number>();
  const texts = new Map<unknown, number>();
  for (const [at, item] of items.entries()) {
    const [places, key] = isStructure(item) ? [texts, canonicalJson(item)] : [simple, item];
    const before = places.get(key);
    if (before !== undefined) return [before, at];
    places.set(key, at);
  }
  return undefined;
}

/** The maximum distance from a multiple, because 0.3 is not exact as a binary fraction. */
const TOLERANCE = 1e-10;

export function isMultipleOf(value: number, step: number): boolean {
  // A whole number is a multiple of 1/2, 1/4…, even if the remainder would be inexact.
  if (Number.isInteger(value) && Number.isInteger(1 / step)) return true;
  const rest = value % step;
  return Math.min(Math.abs(rest), Math.abs(rest - step), Math.abs(rest + step)) < TOLERANCE;
}

/** Creates a slow check without an engine. It ignores formats, and rejects costly values. */
export function checkWithoutEngine(schema: JsonSchema): (value: unknown) => boolean {
  const issuesOf = explainWithoutEngine(schema);
  return (value) => issuesOf(value).length === 0;
}

/** Creates the function that returns the issues for {@linkcode checkWithoutEngine}. */
export function explainWithoutEngine(schema: JsonSchema): (value: unknown) => readonly Issue[] {
  const form = normalizeSchema(schema, detectDialect(schema), { formats: new Set() });
  const interpreter = new SchemaInterpreter(form, () => true, { compilePattern });
  return (value) => {
    resetSteps();
    return interpreter.issues(value);
  };
}
