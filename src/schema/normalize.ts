/** Rewrites a checked schema for engines: one 2020-12 document, in which references are plain. */

import { isObject, type JsonSchema, type JsonSchemaObject, once, setOwn } from "../tool/mod.ts";
import {
  type Dialect,
  isOldDraft,
  isSchema,
  KEYWORDS,
  listOf,
  mapSchemasOf,
  uriOf,
} from "./keywords.ts";
import { indexSchemas, ReferenceIndex, type ReferenceTarget, ROOT_URI } from "./references.ts";

/**
 * The values of `format` that engines assert: the formats of draft-07 and 2020-12. They apply to
 * both drafts, because a model should send a date for `"format": "date"`. Any other format
 * (`int32`, `password`, `city`) is an annotation: models read it, and it accepts every value.
 */
export const ASSERTED_FORMATS: ReadonlySet<string> = new Set(
  ("date date-time duration email hostname idn-email idn-hostname ipv4 ipv6 iri iri-reference " +
    "json-pointer regex relative-json-pointer time uri uri-reference uri-template uuid").split(" "),
);

export interface NormalizeOptions {
  /** The formats to assert. Other formats are omitted. */
  readonly formats: { has(name: string): boolean };
  /** Keywords that no draft has, but that the engine supports. They are not omitted. */
  readonly keywords?: Iterable<string>;
}

export interface NormalizedSchema {
  readonly schema: JsonSchema;
  readonly targets: ReadonlyMap<string, JsonSchema>;
  readonly hasReferences: boolean;
}

/** The first schema with each ambiguous `$dynamicAnchor`. Schemas are rewritten once per scope. */
interface Scope {
  readonly key: string;
  readonly anchors: ReadonlyMap<string, ReferenceTarget>;
}

const OUTSIDE: Scope = { key: "", anchors: new Map() };

/** Rewrites `root`, which `checkSchema` has accepted. */
export function normalizeSchema(
  root: JsonSchema,
  dialect: Dialect,
  options: NormalizeOptions,
): NormalizedSchema {
  return typeof root === "boolean"
    ? { schema: root, targets: new Map(), hasReferences: false }
    : new Normalizer(root, dialect, options).normalize(root);
}

class Normalizer {
  readonly #dialect: Dialect;
  readonly #formats: NormalizeOptions["formats"];
  readonly #keywords: ReadonlySet<string>;
  readonly #index: ReferenceIndex;
  /** The dynamic anchors with a name that several schemas have. */
  readonly #ambiguous: readonly (readonly [name: string, schemas: readonly ReferenceTarget[]])[];
  /** The new reference to each target, by the scope in which the target is reached. */
  readonly #names = new Map<unknown, Map<string, string>>();
  /** The targets of references. They are rewritten after the root. */
  readonly #pending: {
    readonly target: ReferenceTarget;
    readonly scope: Scope;
    readonly name: string;
  }[] = [];
  #hasReferences = false;

  constructor(root: JsonSchema, dialect: Dialect, { formats, keywords = [] }: NormalizeOptions) {
    this.#dialect = dialect;
    this.#formats = formats;
    this.#keywords = new Set(keywords);
    this.#index = new ReferenceIndex(root, dialect);
    // First indexes every `$id` and anchor, and then resolves references.
    indexSchemas(this.#index, root);
    this.#ambiguous = [...this.#index.dynamicAnchors].filter(([, { length }]) => length > 1);
  }

  normalize(root: JsonSchemaObject): NormalizedSchema {
    this.#names.set(root, new Map([[this.#enter(OUTSIDE, root, ROOT_URI).key, "#"]]));
    const schema = this.#rewrite(root, ROOT_URI, OUTSIDE);
    const targets = new Map<string, JsonSchema>();
    for (const { target, scope, name } of this.#pending) {
      targets.set(name, this.#rewrite(target.schema as JsonSchema, target.base, scope));
    }
    const definitions = [...targets.values()];
    targets.set("#", schema);
    // Changes the root object itself, because references to the root resolve to this object.
    if (isObject(schema)) {
      Object.assign(schema, {
        $schema: uriOf("2020-12"),
        ...(definitions.length > 0 && { $defs: { ...definitions } }),
      });
    }
    return { schema, targets, hasReferences: this.#hasReferences };
  }

  #rewrite(source: JsonSchema, outer: string, around: Scope): JsonSchema {
    if (typeof source === "boolean") return source;
    const base = this.#index.add(source, outer);
    const scope = this.#enter(around, source, outer);
    const schema = this.#dialect === "2020-12" ? source : asDraft2020(source, this.#dialect);
    const choices = schema["enum"];
    // Ajv rejects an empty enum.
    if (Array.isArray(choices) && choices.length === 0) return false;
    const result: Record<string, unknown> = {};
    for (const keyword of Object.keys(schema)) {
      if (!this.#isKept(keyword, schema)) continue;
      const value = schema[keyword];
      const shape = KEYWORDS["2020-12"].get(keyword)?.shape ?? "any";
      result[keyword] = keyword === "$ref"
        ? this.#refer(value as string, base, scope)
        : mapSchemasOf(value, shape, (child) => this.#rewrite(child, base, scope));
    }
    const dynamic = schema["$dynamicRef"];
    if (typeof dynamic === "string") {
      const $ref = this.#refer(dynamic, base, scope, true);
      if (result["$ref"] === undefined) result["$ref"] = $ref;
      else result["allOf"] = [...listOf(result["allOf"]), { $ref }];
    }
    boundFormat(result);
    return result;
  }

  /** Returns true if a keyword still restricts values after references were resolved. */
  #isKept(keyword: string, schema: JsonSchemaObject): boolean {
    const role = KEYWORDS["2020-12"].get(keyword)?.role;
    if (role === undefined) return this.#keywords.has(keyword);
    if (keyword === "format") return this.#formats.has(schema[keyword] as string);
    return role !== "annotates" && keyword !== "dependencies" && keyword !== "$dynamicRef";
  }

  #refer(ref: string, base: string, scope: Scope, isDynamic = false): string {
    this.#hasReferences = true;
    let target = this.#index.resolve(ref, base);
    if (target === undefined) {
      throw new SyntaxError(
        `Cannot compile the schema: the reference ${JSON.stringify(ref)} cannot be resolved`,
      );
    }
    const anchor = isDynamic && isObject(target.schema) && target.schema["$dynamicAnchor"];
    if (typeof anchor === "string" && ref.endsWith(`#${anchor}`)) {
      target = scope.anchors.get(anchor) ?? target;
    }
    const { schema, base: around } = target;
    // Booleans have no identity: all `true` share one target, and all `false` share one.
    const inScopes = once(this.#names, schema, () => new Map<string, string>());
    return once(inScopes, this.#enter(scope, schema, around).key, () => {
      const name = `#/$defs/${this.#pending.length}`;
      this.#pending.push({ target: { schema, base: around }, scope, name });
      return name;
    });
  }

  /** Returns the scope inside a schema, with the anchors of its document. */
  #enter(scope: Scope, schema: unknown, base: string): Scope {
    if (this.#ambiguous.length === 0) return scope;
    const anchors = new Map(scope.anchors);
    const uri = isObject(schema) ? this.#index.add(schema, base) : base;
    for (const [name, namesakes] of this.#ambiguous) {
      const target = this.#index.resolve(`#${name}`, uri);
      const isDynamic = namesakes.some(({ schema }) => schema === target?.schema);
      if (target !== undefined && isDynamic) once(anchors, name, () => target);
    }
    const meanings = this.#ambiguous.map(([name, all]) =>
      all.findIndex(({ schema }) => schema === anchors.get(name)?.schema)
    );
    return { key: String(meanings), anchors };
  }
}

/** Longer strings are invalid: engines take 20 to 700 ns per character of a format. */
const MAX_FORMATTED = 10_000;

/** Formats that engines test in quadratic time, with the maximum length of their standards. */
const SHORT_FORMATS = new Map<unknown, number>([["idn-email", 320], ["idn-hostname", 255]]);

function boundFormat(schema: Record<string, unknown>): void {
  const { format, maxLength = MAX_FORMATTED } = schema;
  // A custom format of an engine has no maximum length, because it may be for long texts.
  if (!ASSERTED_FORMATS.has(format as string)) return;
  schema["maxLength"] = Math.min(Number(maxLength), SHORT_FORMATS.get(format) ?? MAX_FORMATTED);
}

/** Returns true for a keyword of 2020-12 that `dialect` does not have. */
export function isLater(keyword: string, dialect: Dialect): boolean {
  return ASSERTED.has(keyword) && !KEYWORDS[dialect].has(keyword);
}

const ASSERTED: ReadonlySet<string> = new Set([
  ...[...KEYWORDS["2020-12"]].flatMap(([keyword, { role }]) =>
    role === "annotates" ? [] : [keyword]
  ),
  ...["$id", "$anchor", "$dynamicAnchor"],
]);

/** Annotations and definitions, which stay next to a `$ref`. */
export const BESIDE_REF: ReadonlySet<string> = new Set(
  "$ref $comment title description default examples definitions $defs".split(" "),
);

/**
 * Rewrites one schema of an older draft with the keywords of 2020-12. Its inner schemas and the
 * text of its `$ref` stay unchanged. Omits keywords that its draft ignores: keywords of later
 * drafts, and until draft-07 all keywords next to a `$ref` except `kept`. Returns the same object
 * if there is nothing to change.
 */
export function asDraft2020(
  node: JsonSchemaObject,
  dialect: Dialect,
  renamed?: (to: string, from: string) => void,
  kept?: string,
): JsonSchemaObject {
  const result: Record<string, unknown> = {};
  let changed = false;
  const rename = (to: string, from: string, value: unknown): void => {
    result[to] = value;
    changed = true;
    renamed?.(to, from);
  };
  const old = isOldDraft(dialect);
  const hasRef = typeof node["$ref"] === "string";
  const id = dialect === "draft-04" ? "id" : "$id";
  const tuple = Array.isArray(node["items"]) ? node["items"] : undefined;
  for (const keyword of Object.keys(node)) {
    const value = node[keyword];
    if (
      keyword === "$schema" || keyword === "$recursiveAnchor" || isLater(keyword, dialect) ||
      (old && hasRef && !BESIDE_REF.has(keyword) && keyword !== kept)
    ) {
      changed = true;
    } else if (old && keyword === id && typeof value === "string" && value.startsWith("#")) {
      rename("$anchor", keyword, value.slice(1));
    } else if (keyword === id && id !== "$id") {
      rename("$id", keyword, value);
    } else if (typeof node[EXCLUSIVE[keyword] ?? ""] === "boolean") {
      // In draft-04, a flag next to the limit excludes the limit's value.
      if (node[EXCLUSIVE[keyword] as string] === true) {
        rename(EXCLUSIVE[keyword] as string, keyword, value);
      } else setOwn(result, keyword, value);
    } else if (keyword.startsWith("exclusive") && typeof value === "boolean") {
      changed = true;
    } else if (keyword === "$recursiveRef") {
      if (hasRef) rename("allOf", keyword, [...listOf(node["allOf"]), { $ref: value }]);
      else rename("$ref", keyword, value);
    } else if (old && keyword === "definitions" && !Object.hasOwn(node, "$defs")) {
      rename("$defs", keyword, value);
    } else if (keyword === "items" && tuple !== undefined) {
      if (tuple.length > 0) rename("prefixItems", keyword, tuple);
      else changed = true;
    } else if (keyword === "additionalItems") {
      if (tuple !== undefined) rename("items", keyword, value);
      else changed = true;
    } else if (old && keyword === "dependencies") {
      changed = true;
      splitDependencies(value, (to, part) => rename(to, keyword, part));
    } else if (!Object.hasOwn(result, keyword)) setOwn(result, keyword, value);
  }
  return changed ? result : node;
}

/** The flag of draft-04 that excludes the value of a limit. */
const EXCLUSIVE: { readonly [limit: string]: string | undefined } = {
  minimum: "exclusiveMinimum",
  maximum: "exclusiveMaximum",
};

function splitDependencies(
  value: unknown,
  put: (keyword: string, part: Record<string, unknown>) => void,
): void {
  if (!isObject(value)) return;
  const required: Record<string, unknown> = {};
  const schemas: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const dependency = value[name];
    if (Array.isArray(dependency)) setOwn(required, name, dependency);
    else if (isSchema(dependency)) setOwn(schemas, name, dependency);
  }
  if (Object.keys(required).length > 0) put("dependentRequired", required);
  if (Object.keys(schemas).length > 0) put("dependentSchemas", schemas);
}
