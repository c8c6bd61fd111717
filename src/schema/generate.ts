/**
 * Generates JavaScript that checks values by a normalised schema. A schema becomes statements that
 * return `false` for an invalid value. A schema becomes a function if references point to it, or if
 * a valid value may violate it.
 *
 * If a schema contains `unevaluated…` keywords, each schema in it has a set of the keys and indexes
 * that it has checked.
 */

import { isObject, type JsonSchemaObject, once } from "../tool/mod.ts";
import { characters, type FormatTest, isMultipleOf, isOneOf, sameItems } from "./explain.ts";
import { eachSchemaIn, entriesOf, isStructure, KEYWORDS, listOf } from "./keywords.ts";
import type { NormalizedSchema } from "./normalize.ts";

/** From this number of choices on, a set replaces the comparisons. */
const MANY_CHOICES = 16;

const TESTS: { readonly [type: string]: (value: string) => string } = {
  array: (value) => `Array.isArray(${value})`,
  boolean: (value) => `typeof ${value}==="boolean"`,
  integer: (value) => `Number.isInteger(${value})`,
  null: (value) => `${value}===null`,
  number: (value) => `Number.isFinite(${value})`,
  object: (value) => `typeof ${value}==="object"&&${value}!==null&&!Array.isArray(${value})`,
  string: (value) => `typeof ${value}==="string"`,
};

/** The keywords that limit a number or a count, with the operator for an invalid value. */
const OF_NUMBER = { minimum: "<", maximum: ">", exclusiveMinimum: "<=", exclusiveMaximum: ">=" };
const OF_ITEMS = { minItems: "<", maxItems: ">" };
const OF_PROPERTIES = { minProperties: "<", maxProperties: ">" };

const HELPERS = { characters, isMultipleOf, presentKeys, sameItems };

type Check = (value: unknown) => boolean;

export class CheckGenerator {
  readonly #form: NormalizedSchema;
  readonly #testFormat: FormatTest;
  readonly #compilePattern: (source: string) => Pick<RegExp, "test">;
  readonly #caches: boolean;
  readonly #isTracked: boolean;
  readonly #externals: unknown[] = [];
  readonly #functions: string[] = [];
  readonly #names: Map<object, string> = new Map();
  #variables = 0;

  /** @param caches True to cache the verdict of each schema on each object and list of a value. */
  constructor(
    form: NormalizedSchema,
    testFormat: FormatTest,
    compilePattern: (source: string) => Pick<RegExp, "test"> = (source) => new RegExp(source, "u"),
    caches = false,
  ) {
    this.#form = form;
    this.#testFormat = testFormat;
    this.#compilePattern = compilePattern;
    this.#caches = caches;
    this.#isTracked = [form.schema, ...form.targets.values()].some(isTracking);
  }

  /** Returns the check. Throws an `EvalError` if the runtime forbids code generation. */
  generate(): Check {
    const verdicts = new Map<unknown, Map<object, boolean>>();
    const cached = (check: (value: unknown, seen: Set<unknown>) => boolean, value: unknown) => {
      const run = (): boolean => check(value, new Set());
      return isStructure(value) ? once(once(verdicts, check, () => new Map()), value, run) : run();
    };
    const body = `return (value)=>${this.#call(this.#form.schema, "value")}`;
    const helpers = { ...HELPERS, cached };
    const code = `const {${Object.keys(helpers)}}=helpers;${this.#functions.join("")}${body}`;
    const check: Check = new globalThis.Function("helpers", "use", code)(helpers, this.#externals);
    return !this.#caches ? check : (value) => {
      try {
        return check(value);
      } finally {
        // The next value may be the same object with changed contents.
        verdicts.clear();
      }
    };
  }

  /** @param seen The variable with the keys that the caller has checked, if the value is the same. */
  #call(schema: unknown, value: string, seen?: string): string {
    if (!isObject(schema)) return String(schema !== false);
    const name = once(this.#names, schema, () => this.#variable("check"));
    if (this.#functions.length < this.#names.size) this.#define(schema, name);
    if (this.#isTracked && seen !== undefined) return `${name}(${value},${seen})`;
    if (this.#caches) return `cached(${name},${value})`;
    return this.#isTracked ? `${name}(${value},new Set())` : `${name}(${value})`;
  }

  #define(schema: JsonSchemaObject, name: string): void {
    const index = this.#functions.push("") - 1;
    const body = this.#statements(schema, "value", "seen");
    this.#functions[index] = `const ${name}=(value,seen)=>{${body}return true};`;
  }

  #variable(name: string): string {
    return `${name}${this.#variables++}`;
  }

  #use(value: unknown): string {
    return `use[${this.#externals.push(value) - 1}]`;
  }

  /** @param seen The variable with the set of keys and indexes that the schema has checked. */
  #statements(schema: unknown, value: string, seen: string): string {
    if (schema === false) return "return false;";
    if (!isObject(schema)) return "";
    const { type, multipleOf } = schema;
    const multiple = typeof multipleOf === "number"
      ? failIf(`!isMultipleOf(${value},${multipleOf})`)
      : "";
    const forType = (kind: string, body: string): string =>
      body === "" || type === kind ? body : `if(${TESTS[kind]?.(value)}){${body}}`;
    const types = type === undefined ? [] : [type].flat();
    return [
      types.length > 0 &&
      failIf(`!(${types.map((one) => TESTS[String(one)]?.(value) ?? "false").join("||")})`),
      Object.hasOwn(schema, "const") && this.#choice([schema["const"]], value),
      Array.isArray(schema["enum"]) && this.#choice(schema["enum"], value),
      forType("string", this.#stringStatements(schema, value)),
      forType("number", limitStatements(schema, OF_NUMBER, value) + multiple),
      forType("array", this.#arrayStatements(schema, value, seen)),
      forType("object", this.#objectStatements(schema, value, seen)),
      this.#inPlaceStatements(schema, value, seen),
      forType("array", this.#restStatements(schema, "unevaluatedItems", value, seen)),
      forType("object", this.#restStatements(schema, "unevaluatedProperties", value, seen)),
    ].filter(Boolean).join("");
  }

  #member(schema: unknown, expression: string, isPresent: boolean): string {
    if (schema === false && isPresent) return "return false;";
    if (typeof schema === "boolean") return schema ? "" : failIf(`${expression}!==undefined`);
    const [value, seen] = [this.#variable("v"), this.#variable("s")];
    const body = this.#caches
      ? failIf(`!${this.#call(schema, value)}`)
      : this.#newSet(seen) + this.#statements(schema, value, seen);
    const checked = isPresent ? body : `if(${value}!==undefined){${body}}`;
    return `{const ${value}=${expression};${checked}}`;
  }

  #newSet(name: string): string {
    return this.#isTracked ? `const ${name}=new Set();` : "";
  }

  #mark(seen: string, key: string): string {
    return this.#isTracked ? `${seen}.add(${key});` : "";
  }

  #choice(choices: readonly unknown[], value: string): string {
    return choices.length > MANY_CHOICES || choices.some(isStructure)
      ? failIf(`!${this.#use(isOneOf(choices))}(${value})`)
      : failIf(choices.map((one) => `${value}!==${JSON.stringify(one)}`).join("&&") || "true");
  }

  #stringStatements(schema: JsonSchemaObject, value: string): string {
    const { minLength, maxLength, pattern, format } = schema;
    const length = `${value}.length`;
    // A character has one or two code units, so the `length` of most texts decides without a count.
    const least = typeof minLength === "number" && failIf(
      `${length}<${minLength}||${length}<${2 * minLength}&&characters(${value})<${minLength}`,
    );
    const most = typeof maxLength === "number" && failIf(
      `${length}>${maxLength}&&(${length}>${2 * maxLength}||characters(${value})>${maxLength})`,
    );
    const test = (text: string): boolean => this.#testFormat(String(format), text);
    return [
      least,
      most,
      typeof pattern === "string" &&
      failIf(`!${this.#use(this.#compilePattern(pattern))}.test(${value})`),
      typeof format === "string" && failIf(`!${this.#use(test)}(${value})`),
    ].filter(Boolean).join("");
  }

  #arrayStatements(schema: JsonSchemaObject, value: string, seen: string): string {
    const { prefixItems, items, contains, minContains = 1, maxContains = Infinity } = schema;
    const first = listOf(prefixItems);
    const length = `${value}.length`;
    const prefix = first.map((item, index) => {
      const body = this.#member(item, `${value}[${index}]`, true) + this.#mark(seen, `${index}`);
      return body && `if(${length}>${index}){${body}}`;
    });
    const rest = this.#eachIndex(
      value,
      first.length,
      (index, item) =>
        items === undefined ? "" : this.#member(items, item, true) + this.#mark(seen, index),
    );
    const count = this.#variable("count");
    const counted = contains === undefined ? "" : `let ${count}=0;` +
      this.#eachIndex(
        value,
        0,
        (index, item) => `if(${this.#call(contains, item)}){${count}++;${this.#mark(seen, index)}}`,
      ) +
      failIf(`${count}<${Number(minContains)}||${count}>${Number(maxContains)}`);
    return limitStatements(schema, OF_ITEMS, length) +
      (schema["uniqueItems"] === true ? failIf(`sameItems(${value})!==undefined`) : "") +
      prefix.join("") + rest + counted;
  }

  #eachIndex(value: string, from: number, body: (index: string, item: string) => string): string {
    const index = this.#variable("i");
    const statements = body(index, `${value}[${index}]`);
    return statements &&
      `for(let ${index}=${from};${index}<${value}.length;${index}++){${statements}}`;
  }

  #objectStatements(schema: JsonSchemaObject, value: string, seen: string): string {
    const { required, dependentRequired, dependentSchemas } = schema;
    const missing = (names: unknown): string =>
      listOf(names).map((name) => `${memberOf(value, String(name))}===undefined`).join("||");
    const needed = missing(required);
    const dependent = entriesOf(dependentRequired).map(([name, names]) =>
      listOf(names).length > 0 &&
      failIf(`${memberOf(value, name)}!==undefined&&(${missing(names)})`)
    );
    const schemas = entriesOf(dependentSchemas).map(([name, child]) => {
      const body = this.#apply(child, value, seen);
      return body && `if(${memberOf(value, name)}!==undefined){${body}}`;
    });
    return (needed && failIf(needed)) + dependent.filter(Boolean).join("") +
      this.#propertyStatements(schema, value, seen) + schemas.join("");
  }

  #propertyStatements(schema: JsonSchemaObject, value: string, seen: string): string {
    const { patternProperties, additionalProperties: others = true, propertyNames } = schema;
    const known = entriesOf(schema["properties"]);
    const patterns = entriesOf(patternProperties);
    const limits = limitStatements(schema, OF_PROPERTIES, `presentKeys(${value}).length`);
    const isClosed = others === false && patterns.length === 0;
    const count = this.#variable("count");
    const named = known.map(([name, child]) => {
      const member = memberOf(value, name);
      const present = (isClosed ? `${count}++;` : "") + this.#mark(seen, JSON.stringify(name));
      return (present && `if(${member}!==undefined){${present}}`) +
        this.#member(child, member, false);
    }).join("");
    // A key with the value `undefined` counts as absent. This matters only if the counts differ.
    const closed = isClosed
      ? failIf(`Object.keys(${value}).length!==${count}&&presentKeys(${value}).length!==${count}`)
      : "";
    const isOpen = isClosed || (others === true && patterns.length === 0 && !this.#isTracked);
    const keys = propertyNames === undefined && isOpen
      ? ""
      : this.#keyStatements(schema, value, seen, isOpen);
    return (isClosed ? `let ${count}=0;` : "") + limits + named + closed + keys;
  }

  /** The statements for each key. If `isOpen`, they check only the names of the keys. */
  #keyStatements(schema: JsonSchemaObject, value: string, seen: string, isOpen: boolean): string {
    const { additionalProperties: others, propertyNames, properties } = schema;
    const [key, isKnown] = [this.#variable("k"), this.#variable("known")];
    const member = `${value}[${key}]`;
    const names = propertyNames === undefined ? "" : this.#member(propertyNames, key, true);
    const matching = entriesOf(schema["patternProperties"]).map(([pattern, child]) =>
      `if(${this.#use(this.#compilePattern(pattern))}.test(${key})){${isKnown}=true;` +
      `${this.#member(child, member, true)}${this.#mark(seen, key)}}`
    );
    const additional = others === undefined
      ? ""
      : this.#member(others, member, true) + this.#mark(seen, key);
    const hasKey = this.#use(new Set(Object.keys(properties ?? {})));
    const body = isOpen ? "" : `let ${isKnown}=${hasKey}.has(${key});${matching.join("")}` +
      (additional && `if(!${isKnown}){${additional}}`);
    return `for(const ${key} of presentKeys(${value})){${names}${body}}`;
  }

  #inPlaceStatements(schema: JsonSchemaObject, value: string, seen: string): string {
    const { $ref: ref, allOf, anyOf, oneOf, not, if: condition } = schema;
    let code = "";
    if (typeof ref === "string") {
      const target = this.#form.targets.get(ref) ?? false;
      code += this.#branch(target, value, seen, "", "return false;");
    }
    for (const part of listOf(allOf)) code += this.#apply(part, value, seen);
    for (const [forms, isOne] of [[listOf(anyOf), false], [listOf(oneOf), true]] as const) {
      if (forms.length === 0) continue;
      if (!isOne && !this.#isTracked) {
        code += failIf(`!(${forms.map((form) => this.#call(form, value)).join("||")})`);
        continue;
      }
      const count = this.#variable("count");
      code += `let ${count}=0;`;
      for (const form of forms) code += this.#branch(form, value, seen, `${count}++;`, "");
      code += failIf(isOne ? `${count}!==1` : `${count}===0`);
    }
    if (not !== undefined) code += failIf(this.#call(not, value));
    if (condition !== undefined) {
      const [yes, no] = [schema["then"], schema["else"]]
        .map((part) => this.#apply(part ?? true, value, seen)) as [string, string];
      code += this.#branch(condition, value, seen, yes, no);
    }
    return code;
  }

  /** The statements of another schema for the same value. */
  #apply(schema: unknown, value: string, seen: string): string {
    const own = this.#variable("s");
    const body = this.#statements(schema, value, this.#isTracked ? own : seen);
    return this.#isTracked && body ? `{${this.#newSet(own)}${body}${merge(own, seen)}}` : body;
  }

  /** Statements that run `yes` for a value that the schema accepts, and `no` for other values. */
  #branch(schema: unknown, value: string, seen: string, yes: string, no: string): string {
    const own = this.#variable("s");
    const call = this.#call(schema, value, own);
    const fits = this.#isTracked ? merge(own, seen) + yes : yes;
    return `{${this.#newSet(own)}if(${call}){${fits}}else{${no}}}`;
  }

  #restStatements(
    schema: JsonSchemaObject,
    keyword: "unevaluatedItems" | "unevaluatedProperties",
    value: string,
    seen: string,
  ): string {
    if (schema[keyword] === undefined) return "";
    const key = this.#variable("k");
    const keys = keyword === "unevaluatedItems" ? `${value}.keys()` : `presentKeys(${value})`;
    const body = this.#member(schema[keyword], `${value}[${key}]`, true) + this.#mark(seen, key);
    return `for(const ${key} of ${keys})if(!${seen}.has(${key})){${body}}`;
  }
}

function isTracking(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  let found = (schema["unevaluatedItems"] ?? schema["unevaluatedProperties"]) !== undefined;
  eachSchemaIn(schema, KEYWORDS["2020-12"], (child) => found ||= isTracking(child));
  return found;
}

function failIf(condition: string): string {
  return `if(${condition})return false;`;
}

function merge(from: string, to: string): string {
  return `for(const key of ${from})${to}.add(key);`;
}

/** The expression for a property's value, which is `undefined` for an inherited property. */
function memberOf(value: string, name: string): string {
  const key = JSON.stringify(name);
  return name in Object.prototype
    ? `(Object.hasOwn(${value},${key})?${value}[${key}]:undefined)`
    : `${value}[${key}]`;
}

/** A member that is `undefined` counts as absent, as in JSON.stringify(). */
function presentKeys(value: JsonSchemaObject): readonly string[] {
  return Object.keys(value).filter((key) => value[key] !== undefined);
}

function limitStatements(
  schema: JsonSchemaObject,
  operators: { readonly [keyword: string]: string },
  value: string,
): string {
  return Object.entries(operators).map(([keyword, operator]) =>
    typeof schema[keyword] === "number" ? failIf(`${value}${operator}${schema[keyword]}`) : ""
  ).join("");
}
