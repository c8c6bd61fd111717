/**
 * Rewrites a checked schema into the one form that engines compile: 2020-12, self-contained, every
 * reference a plain `#` or `#/$defs/0`. So no engine has to know draft-07, to resolve URIs, or to
 * keep the `$id`s of two tools apart, and the engines cannot differ in how they do it.
 *
 * @module
 */

import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../tool/mod.ts";
import type { Dialect } from "./dialect.ts";
import { KEYWORDS, type KeywordShape } from "./keywords.ts";
import { ReferenceIndex, ROOT_URI } from "./references.ts";
import { isStructured } from "./same_json.ts";

/** Options for {@linkcode normalizeSchema}. */
export interface NormalizeOptions {
  /** The formats to assert. A `format` that names another one is left out. */
  readonly formats: { has(name: string): boolean };
  /**
   * Keywords outside the drafts to keep, for an engine that knows them.
   *
   * @default {[]}
   */
  readonly keywords?: Iterable<string>;
}

/** A schema in the form that engines compile. */
export interface NormalizedSchema {
  readonly schema: JsonSchema;
  /** What each `$ref` in it points to. */
  readonly targets: ReadonlyMap<string, JsonSchema>;
  /**
   * `false` if a `$dynamicRef` may mean more than one place. Such a schema is left in its own form,
   * since what it means depends on the way that validation takes.
   */
  readonly flat: boolean;
  /**
   * Whether checking may exhaust the stack: by following a value down without a bound, or by the
   * mere size of the compiled code.
   */
  readonly mayExhaustStack: boolean;
}

/** Keywords that say nothing about validity, or have done their work once references are resolved. */
const DROPPED: ReadonlySet<string> = new Set(
  ("$id $schema $anchor $dynamicAnchor $dynamicRef $recursiveRef $recursiveAnchor $vocabulary $comment $defs " +
    "definitions dependencies contentEncoding contentMediaType contentSchema " +
    "title description default deprecated readOnly writeOnly examples").split(" "),
);

/** Engines nest the code of a schema as deep as it has parts; up to here that is no trouble. */
const MANY_SCHEMAS = 200;
const NO_OPTIONS: NormalizeOptions = { formats: new Set() };
const DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema";

/** Rewrites `schema`, which `checkSchema` has accepted. */
export function normalizeSchema(
  schema: JsonSchema,
  dialect: Dialect,
  options: NormalizeOptions,
): NormalizedSchema {
  return typeof schema === "boolean"
    ? { schema, targets: new Map(), flat: true, mayExhaustStack: false }
    : new Normalizer(schema, dialect, options).run();
}

/** A place that a reference leads to, waiting to be rewritten. */
interface Pending {
  readonly source: JsonSchema;
  readonly base: string;
  readonly name: string;
}

class Normalizer {
  readonly #root: JsonSchemaObject;
  readonly #dialect: Dialect;
  readonly #index: ReferenceIndex;
  readonly #formats: NormalizeOptions["formats"];
  readonly #kept: ReadonlySet<string>;
  readonly #names = new Map<unknown, string>();
  readonly #pending: Pending[] = [];
  readonly #targets = new Map<string, JsonSchema>();
  #schemas = 0;
  #flat = true;
  #mayExhaustStack = false;

  constructor(root: JsonSchemaObject, dialect: Dialect, options: NormalizeOptions) {
    const { formats, keywords = [] } = options;
    this.#root = root;
    this.#dialect = dialect;
    this.#index = new ReferenceIndex(root, dialect);
    this.#formats = formats;
    this.#kept = new Set(keywords);
    this.#names.set(root, "#");
  }

  run(): NormalizedSchema {
    this.#identify(this.#root, ROOT_URI);
    const root = this.#schema(this.#root, ROOT_URI);
    if (typeof root === "boolean") return normalizeSchema(root, this.#dialect, NO_OPTIONS);
    const definitions: JsonSchema[] = [];
    for (const { source, base, name } of this.#pending) {
      const target = this.#schema(source, base);
      this.#targets.set(name, target);
      definitions.push(target);
    }
    if (!this.#flat) {
      return { schema: this.#verbatim(), targets: new Map(), flat: false, mayExhaustStack: true };
    }
    this.#targets.set("#", root);
    return {
      // Added to the root itself: references to it lead to this very object.
      schema: Object.assign(root, {
        $schema: DRAFT_2020_12,
        ...(definitions.length > 0 && { $defs: { ...definitions } }),
      }),
      targets: this.#targets,
      flat: true,
      mayExhaustStack: this.#mayExhaustStack,
    };
  }

  /** Notes every `$id` and anchor, before the first reference is resolved. */
  #identify(schema: unknown, base: string): void {
    if (!isObject(schema)) return;
    const inner = this.#index.add(schema, base);
    eachSchema(schema, KEYWORDS[this.#dialect], (child) => {
      this.#identify(child, typeof inner === "string" ? inner : base);
    });
  }

  #schema(schema: JsonSchema, outer: string): JsonSchema {
    if (typeof schema === "boolean") return schema;
    if (++this.#schemas > MANY_SCHEMAS) this.#mayExhaustStack = true;
    const inner = this.#index.add(schema, outer);
    const base = typeof inner === "string" ? inner : outer;
    const ref = schema["$ref"];
    if (this.#dialect === "draft-07" && typeof ref === "string") {
      return { $ref: this.#reference(ref, base) };
    }
    const choices = schema["enum"];
    // Ajv will not compile an empty enum.
    if (Array.isArray(choices) && choices.length === 0) return false;
    const result: Record<string, unknown> = {};
    const keywords = KEYWORDS[this.#dialect];
    for (const keyword of Object.keys(schema)) {
      const shape = keywords.get(keyword);
      const value = schema[keyword];
      if (keyword === "dependencies" && this.#dialect === "draft-07") {
        this.#dependencies(value as JsonSchemaObject, base, result);
      } else if (keyword === "const" || (shape === undefined && this.#kept.has(keyword))) {
        result[keyword] = value;
        if (isStructured(value)) this.#mayExhaustStack = true;
      } else if (shape !== undefined && !DROPPED.has(keyword)) {
        this.#keyword(keyword, shape, value, base, schema, result);
      }
    }
    // Last, because it may have to join what `$ref` and `allOf` have become.
    const dynamic = schema["$dynamicRef"];
    if (typeof dynamic === "string" && this.#dialect === "2020-12") {
      this.#dynamic(dynamic, base, result);
    }
    nameByPattern(result);
    return result;
  }

  #keyword(
    keyword: string,
    shape: KeywordShape,
    value: unknown,
    base: string,
    schema: JsonSchemaObject,
    result: Record<string, unknown>,
  ): void {
    const list = (items: unknown) =>
      (items as JsonSchema[]).map((item) => this.#schema(item, base));
    switch (shape) {
      case "schema":
        if (keyword !== "additionalItems") {
          result[keyword] = this.#schema(value as JsonSchema, base);
        }
        return;
      case "schemas":
        result[keyword] = list(value);
        return;
      case "map":
        result[keyword] = mapMembers(value, (member) => this.#schema(member as JsonSchema, base));
        return;
      case "schema or schemas":
        if (!Array.isArray(value)) result["items"] = this.#schema(value as JsonSchema, base);
        else {
          result["prefixItems"] = list(value);
          const rest = schema["additionalItems"] as JsonSchema | undefined;
          if (rest !== undefined) result["items"] = this.#schema(rest, base);
        }
        return;
      default:
        if (keyword === "$ref") result["$ref"] = this.#reference(value as string, base);
        else if (keyword !== "format" || this.#formats.has(value as string)) {
          result[keyword] = value;
          // What is compared by value, is compared all the way down.
          if (
            keyword === "uniqueItems" ||
            (keyword === "enum" && (value as unknown[]).some(isStructured))
          ) {
            this.#mayExhaustStack = true;
          }
        }
    }
  }

  #dependencies(value: JsonSchemaObject, base: string, result: Record<string, unknown>): void {
    const required: Record<string, unknown> = {};
    const schemas: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const member = value[name];
      if (Array.isArray(member)) setOwn(required, name, member);
      else setOwn(schemas, name, this.#schema(member as JsonSchema, base));
    }
    result["dependentRequired"] = required;
    result["dependentSchemas"] = schemas;
  }

  #dynamic(ref: string, base: string, result: Record<string, unknown>): void {
    const target = this.#index.resolve(ref, base)?.schema;
    const anchor = isObject(target) ? target["$dynamicAnchor"] : undefined;
    const byAnchor = typeof anchor === "string" && ref.endsWith(`#${anchor}`);
    if (byAnchor && (this.#index.dynamicAnchors.get(anchor)?.length ?? 0) > 1) this.#flat = false;
    const plain = this.#reference(ref, base);
    if (result["$ref"] === undefined) result["$ref"] = plain;
    else {result["allOf"] = [...(result["allOf"] as JsonSchema[] | undefined) ?? [], {
        $ref: plain,
      }];}
  }

  #reference(ref: string, base: string): string {
    this.#mayExhaustStack = true;
    const found = this.#index.resolve(ref, base);
    if (found === undefined) {
      throw new SyntaxError(
        `Cannot compile the schema: the reference ${JSON.stringify(ref)} leads nowhere in it`,
      );
    }
    const source = found.schema as JsonSchema;
    // Booleans are no identities, but all alike.
    let name = this.#names.get(source);
    if (name === undefined) {
      name = `#/$defs/${this.#pending.length}`;
      this.#names.set(source, name);
      this.#pending.push({ source, base: found.base, name });
    }
    return name;
  }

  /** The schema as it is, but for formats that are not to be asserted. */
  #verbatim(): JsonSchema {
    const copy = (part: JsonSchema): JsonSchema => {
      if (typeof part === "boolean") return part;
      const result: Record<string, unknown> = { ...part };
      if (!this.#formats.has(String(part["format"]))) delete result["format"];
      for (const [keyword, shape] of KEYWORDS["2020-12"]) {
        const value = part[keyword];
        if (value === undefined) continue;
        if (shape === "schema") result[keyword] = copy(value as JsonSchema);
        else if (shape === "schemas") result[keyword] = (value as JsonSchema[]).map(copy);
        else if (shape === "map") {
          result[keyword] = mapMembers(value, (member) => copy(member as JsonSchema));
        }
      }
      return result;
    };
    return copy(this.#root);
  }
}

/** Calls `visit` with everything that stands where a schema is expected inside `schema`. */
function eachSchema(
  schema: JsonSchemaObject,
  keywords: ReadonlyMap<string, KeywordShape>,
  visit: (child: unknown) => void,
): void {
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword];
    switch (keywords.get(keyword)) {
      case "schema":
      case "schema or schemas":
      case "schemas":
        if (Array.isArray(value)) value.forEach(visit);
        else visit(value);
        break;
      case "map":
      case "dependencies":
        if (isObject(value)) Object.values(value).forEach(visit);
    }
  }
}

/**
 * Names by pattern the properties that are called as something that every object inherits: Ajv
 * passes over `__proto__`, and TypeBox finds a `toString` in every object. With patterns, both look
 * at what the object itself has.
 */
function nameByPattern(schema: Record<string, unknown>): void {
  const { properties, patternProperties } = schema;
  if (!isObject(properties)) return;
  const inherited = Object.keys(properties).filter((name) => name in Object.prototype);
  if (inherited.length === 0) return;
  const patterns: Record<string, unknown> = isObject(patternProperties)
    ? { ...patternProperties }
    : {};
  for (const name of inherited) {
    const pattern = `^${name}$`;
    const before = patterns[pattern];
    const member = properties[name];
    patterns[pattern] = before === undefined ? member : { allOf: [before, member] };
  }
  schema["patternProperties"] = patterns;
  schema["properties"] = Object.fromEntries(
    Object.entries(properties).filter(([name]) => !inherited.includes(name)),
  );
}

function mapMembers(map: unknown, change: (member: unknown) => unknown): JsonSchemaObject {
  const result: Record<string, unknown> = {};
  for (const name of Object.keys(map as JsonSchemaObject)) {
    setOwn(result, name, change((map as JsonSchemaObject)[name]));
  }
  return result;
}
