/**
 * Says what is wrong with a value that an engine has refused. It walks the schema itself, so a
 * model reads the same sentences whatever the engine, and the engines need only say yes or no.
 *
 * @module
 */

import {
  clip,
  isObject,
  type Issue,
  type JsonSchema,
  type JsonSchemaObject,
  pointerStep,
} from "../tool/mod.ts";
import {
  counted,
  issue,
  nameHint,
  quote,
  typeOf,
  typeWords,
  vagueIssue,
  valueWords,
} from "./issues.ts";
import type { NormalizedSchema } from "./normalize.ts";
import { limitIssues, numberIssues } from "./limit_issues.ts";
import { isOneOf, sameItems } from "./same_json.ts";
import { MAX_ISSUES } from "./schema_engine.ts";
import { unionIssues } from "./union_issues.ts";

/** How many places are visited before the search is given up. */
const MAX_STEPS = 100_000;
/** How much of a property's name a path repeats. */
const MAX_KEY = 100;

/** Says whether a string has a format. */
export type FormatTest = (format: string, value: string) => boolean;

/**
 * What is wrong with `value`: 1 to 8 issues. Never throws, and ends within bounded work.
 *
 * @param normalized The schema, from `normalizeSchema`.
 * @param value A value that the engine refused.
 * @param testFormat The engine's own formats.
 * @returns The issues; none if nothing is found wrong.
 */
export function explain(
  { schema, targets, flat }: NormalizedSchema,
  value: unknown,
  testFormat: FormatTest,
): readonly Issue[] {
  if (!flat) return [vagueIssue()];
  try {
    return new Explainer(targets, testFormat).visit(schema, value, "", newSeen())
      .slice(0, MAX_ISSUES);
  } catch {
    // Out of steps, or nested too deep for the stack.
    return [vagueIssue()];
  }
}

/** Which members of a value have been looked at, for the `unevaluated…` keywords. */
interface Seen {
  readonly keys: Set<string>;
  readonly items: Set<number>;
}

/** What is wrong at a place. */
interface Found {
  readonly path: string;
  readonly found: readonly Issue[];
}

function newSeen(): Seen {
  return { keys: new Set(), items: new Set() };
}

class Explainer {
  readonly #targets: ReadonlyMap<string, JsonSchema>;
  readonly #testFormat: FormatTest;
  /** The choices of each `enum`, made ready once: a list may have many items. */
  readonly #choices = new Map<unknown, (value: unknown) => boolean>();
  /** What was found at the places that a schema has visited. */
  readonly #parts = new Map<unknown, Map<object, Found>>();
  #steps = MAX_STEPS;

  constructor(targets: ReadonlyMap<string, JsonSchema>, testFormat: FormatTest) {
    this.#targets = targets;
    this.#testFormat = testFormat;
  }

  /** What is wrong with `value`; nothing if it fits. */
  visit(schema: unknown, value: unknown, path: string, seen: Seen): readonly Issue[] {
    if (--this.#steps < 0) throw new RangeError("Cannot explain: too much to visit");
    if (schema === false) return [issue(path, "false schema", "absent")];
    if (!isObject(schema)) return [];

    // The first of these makes everything else noise.
    const { type, enum: choices } = schema;
    if (Object.hasOwn(schema, "const") && !isOneOf([schema["const"]])(value)) {
      return [issue(path, "const", quote(schema["const"]))];
    }
    if (Array.isArray(choices) && !this.#isChosen(choices, value)) {
      return [issue(path, "enum", valueWords(choices))];
    }
    if (type !== undefined) {
      const types = Array.isArray(type) ? type : [type];
      if (!types.some((one) => isOfType(one, value))) {
        const was = typeWords([typeOf(value)]);
        // "a number, not a number" would not help: what is wrong is the fraction.
        const remark = typeof value === "number" && types.includes("integer") ? "" : `, not ${was}`;
        return [issue(path, "type", typeWords(types), "be", remark)];
      }
    }

    const found: Issue[] = [];
    if (typeof value === "number") numberIssues(schema, value, path, found);
    else if (typeof value === "string") this.#string(schema, value, path, found);
    else if (Array.isArray(value)) this.#array(schema, value, path, seen, found);
    else if (isObject(value)) this.#object(schema, value, path, seen, found);
    this.#inPlace(schema, value, path, seen, found);
    if (Array.isArray(value)) this.#unevaluatedItems(schema, value, path, seen, found);
    else if (isObject(value)) this.#unevaluatedProperties(schema, value, path, seen, found);
    return found;
  }

  /**
   * What is wrong with a part of the value. Once for each schema and place: schemas that lead back
   * to themselves in several ways would visit it twice as often with each level.
   */
  #part(schema: unknown, value: unknown, path: string): readonly Issue[] {
    if (!isObject(schema) || typeof value !== "object" || value === null) {
      return this.visit(schema, value, path, newSeen());
    }
    let known = this.#parts.get(schema);
    if (known === undefined) this.#parts.set(schema, known = new Map());
    const before = known.get(value);
    // An object may stand in several places, and long names make paths alike.
    if (before?.path === path) return before.found;
    const found = this.visit(schema, value, path, newSeen());
    known.set(value, { path, found });
    return found;
  }

  #isChosen(choices: readonly unknown[], value: unknown): boolean {
    let test = this.#choices.get(choices);
    if (test === undefined) this.#choices.set(choices, test = isOneOf(choices));
    return test(value);
  }

  /** Visits a schema that looks at the same value; what it has looked at counts if it fits. */
  #apply(schema: unknown, value: unknown, path: string, seen: Seen): readonly Issue[] {
    const inner = newSeen();
    const found = this.visit(schema, value, path, inner);
    if (found.length === 0) {
      for (const key of inner.keys) seen.keys.add(key);
      for (const item of inner.items) seen.items.add(item);
    }
    return found;
  }

  #inPlace(schema: JsonSchemaObject, value: unknown, path: string, seen: Seen, found: Issue[]) {
    const { $ref: ref, allOf, anyOf, oneOf, not, if: condition } = schema;
    if (typeof ref === "string") {
      found.push(...this.#apply(this.#targets.get(ref) ?? false, value, path, seen));
    }
    for (const part of list(allOf)) found.push(...this.#apply(part, value, path, seen));
    for (const [keyword, forms] of [["anyOf", list(anyOf)], ["oneOf", list(oneOf)]] as const) {
      if (forms.length === 0) continue;
      const results = forms.map((form) => this.#apply(form, value, path, seen));
      const fitting = results.filter((result) => result.length === 0).length;
      if (fitting === 0) found.push(...unionIssues(keyword, path, results));
      else if (keyword === "oneOf" && fitting > 1) {
        const words = `exactly one of ${forms.length} forms, and fits ${fitting}`;
        found.push(issue(path, keyword, words, "fit"));
      }
    }
    if (not !== undefined && this.visit(not, value, path, newSeen()).length === 0) {
      found.push(issue(path, "not", "what its schema rules out", "not be"));
    }
    if (condition !== undefined) {
      const fits = this.#apply(condition, value, path, seen).length === 0;
      found.push(...this.#apply(schema[fits ? "then" : "else"] ?? true, value, path, seen));
    }
  }

  #string(schema: JsonSchemaObject, value: string, path: string, found: Issue[]): void {
    const { minLength, maxLength, pattern, format } = schema;
    const length = minLength === undefined && maxLength === undefined ? 0 : characters(value);
    const [least, most] = [["minLength", minLength], ["maxLength", maxLength]] as const;
    limitIssues(found, path, "character", length, least, most);
    if (typeof pattern === "string" && !new RegExp(pattern, "u").test(value)) {
      found.push(issue(path, "pattern", `the pattern ${quote(pattern)}`, "match"));
    }
    if (typeof format === "string" && !this.#testFormat(format, value)) {
      found.push(issue(path, "format", `the format ${quote(format)}`, "match"));
    }
  }

  #array(
    schema: JsonSchemaObject,
    value: readonly unknown[],
    path: string,
    seen: Seen,
    found: Issue[],
  ): void {
    const { prefixItems, items, contains, minItems, maxItems, uniqueItems } = schema;
    limitIssues(found, path, "item", value.length, ["minItems", minItems], ["maxItems", maxItems]);
    const twins = uniqueItems === true && sameItems(value);
    if (twins) {
      const remark = `: ${twins[0]} and ${twins[1]} are the same`;
      found.push(issue(path, "uniqueItems", "the same item twice", "not have", remark));
    }
    const first = list(prefixItems);
    for (let at = 0; at < value.length && found.length < MAX_ISSUES; at++) {
      const itemSchema = at < first.length ? first[at] : items;
      if (itemSchema === undefined) break;
      seen.items.add(at);
      found.push(...this.#part(itemSchema, value[at], `${path}/${at}`));
    }
    if (contains === undefined) return;
    let matches = 0;
    for (const [at, item] of value.entries()) {
      if (this.#part(contains, item, `${path}/${at}`).length > 0) continue;
      matches++;
      seen.items.add(at);
    }
    const { minContains = 1, maxContains = Infinity } = schema;
    if (matches < Number(minContains)) {
      const words = `at least ${counted(Number(minContains), "item")} of the kind it needs`;
      found.push(issue(path, "contains", words, "have", `, and has ${matches}`));
    } else if (matches > Number(maxContains)) {
      const words = `at most ${counted(Number(maxContains), "item")} of that kind`;
      found.push(issue(path, "maxContains", words, "have", `, and has ${matches}`));
    }
  }

  #object(
    schema: JsonSchemaObject,
    value: JsonSchemaObject,
    path: string,
    seen: Seen,
    found: Issue[],
  ): void {
    const { properties, patternProperties, additionalProperties, propertyNames } = schema;
    const { required, minProperties, maxProperties, dependentRequired, dependentSchemas } = schema;
    const keys = Object.keys(value);
    for (const name of list(required)) this.#requires(String(name), value, path, "required", found);
    for (const [name, needed] of members(dependentRequired)) {
      if (!Object.hasOwn(value, name)) continue;
      for (const other of list(needed)) {
        const because = `, because it has ${quote(name)}`;
        this.#requires(String(other), value, path, "dependentRequired", found, because);
      }
    }
    limitIssues(
      found,
      path,
      "property",
      keys.length,
      ["minProperties", minProperties],
      ["maxProperties", maxProperties],
    );
    const known = isObject(properties) ? properties : {};
    const patterns = members(patternProperties).map(([source, member]) =>
      [new RegExp(source, "u"), member] as const
    );
    for (const key of keys) {
      if (found.length >= MAX_ISSUES) return;
      const place = path + pointerStep(clip(key, MAX_KEY));
      if (propertyNames !== undefined) {
        const [wrong] = this.visit(propertyNames, key, "", newSeen());
        if (wrong !== undefined) {
          const remark = `: its name${wrong.message.slice("The value".length)}`;
          found.push(
            issue(path, "propertyNames", `the property ${quote(key)}`, "not have", remark),
          );
        }
      }
      const member = value[key];
      const schemas: unknown[] = patterns.filter(([pattern]) => pattern.test(key))
        .map(([, memberSchema]) => memberSchema);
      if (Object.hasOwn(known, key)) schemas.push(known[key]);
      if (schemas.length === 0 && additionalProperties !== undefined) {
        if (additionalProperties === false) {
          found.push(unexpected(path, "additionalProperties", key, Object.keys(known)));
          continue;
        }
        schemas.push(additionalProperties);
      }
      for (const memberSchema of schemas) {
        seen.keys.add(key);
        found.push(...this.#part(memberSchema, member, place));
      }
    }
    for (const [name, dependent] of members(dependentSchemas)) {
      if (Object.hasOwn(value, name)) found.push(...this.#apply(dependent, value, path, seen));
    }
  }

  #requires(
    name: string,
    value: JsonSchemaObject,
    path: string,
    keyword: string,
    found: Issue[],
    remark: string = "",
  ): void {
    if (Object.hasOwn(value, name)) return;
    found.push(issue(path, keyword, `the property ${quote(name)}`, "have", remark));
  }

  #unevaluatedItems(
    schema: JsonSchemaObject,
    value: readonly unknown[],
    path: string,
    seen: Seen,
    found: Issue[],
  ): void {
    const rest = schema["unevaluatedItems"];
    if (rest === undefined) return;
    for (let at = 0; at < value.length && found.length < MAX_ISSUES; at++) {
      if (seen.items.has(at)) continue;
      seen.items.add(at);
      found.push(...this.#part(rest, value[at], `${path}/${at}`));
    }
  }

  #unevaluatedProperties(
    schema: JsonSchemaObject,
    value: JsonSchemaObject,
    path: string,
    seen: Seen,
    found: Issue[],
  ): void {
    const rest = schema["unevaluatedProperties"];
    if (rest === undefined) return;
    for (const key of Object.keys(value)) {
      if (found.length >= MAX_ISSUES) return;
      if (seen.keys.has(key)) continue;
      seen.keys.add(key);
      if (rest === false) {
        found.push(unexpected(path, "unevaluatedProperties", key, [...seen.keys]));
      } else {
        const place = path + pointerStep(clip(key, MAX_KEY));
        found.push(...this.#part(rest, value[key], place));
      }
    }
  }
}

function unexpected(path: string, keyword: string, key: string, known: readonly string[]): Issue {
  const hint = keyword === "additionalProperties" ? nameHint(key, known) : "";
  return issue(path, keyword, `the property ${quote(key)}`, "not have", hint);
}

/** Code points, not code units: JSON Schema counts characters. */
function characters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function isOfType(type: unknown, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return typeof value === "number" && Number.isFinite(value);
  return typeOf(value) === type;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function members(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}
