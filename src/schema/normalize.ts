/**
 * Rewrites a checked schema into the one form that engines compile: 2020-12, self-contained, every
 * reference a plain `#` or `#/$defs/0`. So no engine has to know older drafts, to resolve URIs, or to
 * keep the `$id`s of two tools apart, and the engines cannot differ in how they do it.
 */

import { isObject, type JsonSchema, type JsonSchemaObject, once, setOwn } from "../tool/mod.ts";
import {
  type Dialect,
  isOldDraft,
  isSchema,
  KEYWORDS,
  type KeywordShape,
  listOf,
  mapSchemasOf,
  uriOf,
} from "./keywords.ts";
import { indexSchemas, ReferenceIndex, type ReferenceTarget, ROOT_URI } from "./references.ts";

/**
 * The values of `format` that engines assert: the formats of draft-07 and 2020-12, in both drafts,
 * because a model should send a date for `"format": "date"`. Any other format (`int32`, `password`,
 * `city`) is an annotation, which models read and every value fits.
 */
export const ASSERTED_FORMATS: ReadonlySet<string> = new Set(
  ("date date-time duration email hostname idn-email idn-hostname ipv4 ipv6 iri iri-reference " +
    "json-pointer regex relative-json-pointer time uri uri-reference uri-template uuid").split(" "),
);

export interface NormalizeOptions {
  /** The formats to assert. Other formats are omitted. */
  readonly formats: { has(name: string): boolean };
  /**
   * Keywords outside the drafts to keep, for an engine that supports them.
   *
   * @default {[]}
   */
  readonly keywords?: Iterable<string>;
}

/** A schema in the form that engines compile. */
export interface NormalizedSchema {
  readonly schema: JsonSchema;
  readonly targets: ReadonlyMap<string, JsonSchema>;
  readonly hasReferences: boolean;
}

/**
 * The meaning of each `$dynamicAnchor` whose name several schemas have: the first one on the way that
 * validation has taken. A schema is rewritten once for each scope that it is reached in.
 */
interface Scope {
  readonly key: string;
  readonly anchors: ReadonlyMap<string, ReferenceTarget>;
}

const OUTSIDE: Scope = { key: "", anchors: new Map() };

/** Rewrites `root`, which `checkSchema` has accepted. */
export function normalizeSchema(
  root: JsonSchema,
  dialect: Dialect,
  { formats, keywords = [] }: NormalizeOptions,
): NormalizedSchema {
  if (typeof root === "boolean") {
    return { schema: root, targets: new Map(), hasReferences: false };
  }
  const kept = new Set(keywords);
  const index = new ReferenceIndex(root, dialect);
  /** The targets of references, which are rewritten after the root. */
  const pending: { readonly target: ReferenceTarget; readonly scope: Scope; name: string }[] = [];
  const targets = new Map<string, JsonSchema>();
  let hasReferences = false;

  // Every `$id` and anchor is known before the first reference is resolved.
  indexSchemas(index, root);
  const ambiguous = [...index.dynamicAnchors].filter(([, namesakes]) => namesakes.length > 1);
  const names = new Map([[root as unknown, new Map([[enter(OUTSIDE, root, ROOT_URI).key, "#"]])]]);
  const made = rewrite(root, ROOT_URI, OUTSIDE);
  for (const { target: { schema, base }, scope, name } of pending) {
    targets.set(name, rewrite(schema as JsonSchema, base, scope));
  }
  const definitions = [...targets.values()];
  targets.set("#", made);
  // Added to the root itself, because references to the root resolve to this very object.
  const schema = typeof made === "boolean" ? made : Object.assign(made, {
    $schema: uriOf("2020-12"),
    ...(definitions.length > 0 && { $defs: { ...definitions } }),
  });
  return { schema, targets, hasReferences };

  function rewrite(source: JsonSchema, outer: string, around: Scope): JsonSchema {
    if (typeof source === "boolean") return source;
    const base = index.add(source, outer);
    const scope = enter(around, source, outer);
    const schema = dialect === "2020-12" ? source : asDraft2020(source, dialect);
    const choices = schema["enum"];
    // Ajv will not compile an empty enum.
    if (Array.isArray(choices) && choices.length === 0) return false;
    const result: Record<string, unknown> = {};
    for (const keyword of Object.keys(schema)) {
      if (!isKept(keyword, schema)) continue;
      const value = schema[keyword];
      result[keyword] = keyword === "$ref"
        ? refer(value as string, base, scope)
        : mapSchemasOf(value, shapeOf(keyword), (child) => rewrite(child, base, scope));
    }
    // Last, because it may have to join what `$ref` and `allOf` have become.
    const dynamic = schema["$dynamicRef"];
    if (typeof dynamic === "string") addDynamic(dynamic, base, scope, result);
    boundFormat(result);
    return result;
  }

  /** Returns true if a keyword restricts valid values, once references are resolved. */
  function isKept(keyword: string, schema: JsonSchemaObject): boolean {
    const role = KEYWORDS["2020-12"].get(keyword)?.role;
    if (role === undefined) return kept.has(keyword);
    if (keyword === "format") return formats.has(schema[keyword] as string);
    return role !== "annotates" && keyword !== "dependencies" && keyword !== "$dynamicRef";
  }

  function addDynamic(
    ref: string,
    base: string,
    scope: Scope,
    result: Record<string, unknown>,
  ): void {
    const $ref = refer(ref, base, scope, true);
    if (result["$ref"] === undefined) result["$ref"] = $ref;
    else result["allOf"] = [...result["allOf"] as JsonSchema[] | undefined ?? [], { $ref }];
  }

  function refer(ref: string, base: string, scope: Scope, isDynamic = false): string {
    hasReferences = true;
    let target = index.resolve(ref, base);
    if (target === undefined) {
      throw new SyntaxError(
        `Cannot compile the schema: the reference ${JSON.stringify(ref)} cannot be resolved`,
      );
    }
    const anchor = isDynamic && isObject(target.schema) && target.schema["$dynamicAnchor"];
    if (typeof anchor === "string" && ref.endsWith(`#${anchor}`)) {
      target = scope.anchors.get(anchor) ?? target;
    }
    // All `true` are one target, and all `false`: booleans have no identity.
    const inScopes = once(names, target.schema, () => new Map<string, string>());
    const inside = enter(scope, target.schema, target.base);
    const made = target;
    return once(inScopes, inside.key, () => {
      const name = `#/$defs/${pending.length}`;
      pending.push({ target: made, scope, name });
      return name;
    });
  }

  /** The scope inside of a schema: with the anchors of the document that it is in. */
  function enter(scope: Scope, schema: unknown, base: string): Scope {
    if (ambiguous.length === 0) return scope;
    const anchors = new Map(scope.anchors);
    const uri = isObject(schema) ? index.add(schema, base) : base;
    for (const [name, namesakes] of ambiguous) {
      const target = index.resolve(`#${name}`, uri);
      const isDynamic = namesakes.some(({ schema }) => schema === target?.schema);
      if (target !== undefined && isDynamic) once(anchors, name, () => target);
    }
    const meanings = ambiguous.map(([name, all]) =>
      all.findIndex(({ schema }) => schema === anchors.get(name)?.schema)
    );
    return { key: String(meanings), anchors };
  }
}

/** Engines test formats in 20 to 700 ns a character, and give up on long strings, each elsewhere. */
const MAX_FORMATTED = 10_000;

/** Formats that engines test in quadratic time, with the maximum length of their standards. */
const SHORT_FORMATS: ReadonlyMap<unknown, number> = new Map([
  ["idn-email", 320],
  ["idn-hostname", 255],
]);

/** Bounds the length of strings with a built-in format. */
function boundFormat(schema: Record<string, unknown>): void {
  const { format, maxLength = MAX_FORMATTED } = schema;
  // Custom formats of an engine keep their length: they may be for long texts.
  if (!ASSERTED_FORMATS.has(format as string)) return;
  schema["maxLength"] = Math.min(Number(maxLength), SHORT_FORMATS.get(format) ?? MAX_FORMATTED);
}

function shapeOf(keyword: string): KeywordShape {
  return KEYWORDS["2020-12"].get(keyword)?.shape ?? "any";
}

/** True for a keyword that has a meaning in 2020-12, but not in `dialect`. */
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
 * Rewrites one schema of an older draft with the keywords of 2020-12. The schemas that it holds,
 * and the text of its `$ref`, stay unchanged. Keywords that its draft ignores are omitted: keywords
 * of later drafts, and until draft-07 all next to a `$ref`.
 *
 * @param kept A keyword that stays, even next to a `$ref`.
 * @returns The rewritten schema, or the same object if there is nothing to change.
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
      // In draft-04 a flag next to the limit excludes the limit itself.
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

/** The flag of draft-04 that excludes a limit itself. */
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
