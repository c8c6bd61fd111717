/**
 * Rewrites a checked schema into the one form that engines compile: 2020-12, self-contained, every
 * reference a plain `#` or `#/$defs/0`. So no engine has to know older drafts, to resolve URIs, or to
 * keep the `$id`s of two tools apart, and the engines cannot differ in how they do it.
 *
 * @module
 */

import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../tool/mod.ts";
import { asDraft2020 } from "./older_drafts.ts";
import { type Dialect, KEYWORDS, type KeywordShape, mapSchemasOf, uriOf } from "./keywords.ts";
import { indexSchemas, ReferenceIndex, ROOT_URI } from "./references.ts";
import { ASSERTED_FORMATS } from "./semantics.ts";

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
  /** Whether it names a property as something that every object inherits, such as `toString`. */
  readonly namesInherited: boolean;
}

/** Engines nest the code of a schema as deep as it has parts; up to here that is no trouble. */
const MANY_SCHEMAS = 200;

const PLAIN = { flat: true, mayExhaustStack: false, namesInherited: false };

/** Rewrites `root`, which `checkSchema` has accepted. */
export function normalizeSchema(
  root: JsonSchema,
  dialect: Dialect,
  { formats, keywords = [] }: NormalizeOptions,
): NormalizedSchema {
  if (typeof root === "boolean") {
    return { schema: root, targets: new Map(), ...PLAIN };
  }
  const kept = new Set(keywords);
  const index = new ReferenceIndex(root, dialect);
  const names = new Map<unknown, string>([[root, "#"]]);
  /** The places that references lead to, which are rewritten after the root. */
  const pending: { readonly source: JsonSchema; readonly base: string; readonly name: string }[] =
    [];
  const targets = new Map<string, JsonSchema>();
  let schemas = 0;
  const found = { ...PLAIN };

  // Every `$id` and anchor is known before the first reference is resolved.
  indexSchemas(index, root);
  const made = rewrite(root, ROOT_URI);
  for (const { source, base, name } of pending) targets.set(name, rewrite(source, base));
  if (!found.flat) {
    return { ...found, schema: verbatim(root), targets: new Map(), mayExhaustStack: true };
  }
  const definitions = [...targets.values()];
  targets.set("#", made);
  // Added to the root itself: references to it lead to this very object.
  const schema = typeof made === "boolean" ? made : Object.assign(made, {
    $schema: uriOf("2020-12"),
    ...(definitions.length > 0 && { $defs: { ...definitions } }),
  });
  return { ...found, schema, targets };

  function rewrite(source: JsonSchema, outer: string): JsonSchema {
    if (typeof source === "boolean") return source;
    if (++schemas > MANY_SCHEMAS) found.mayExhaustStack = true;
    const base = index.add(source, outer);
    const schema = dialect === "2020-12" ? source : asDraft2020(source, dialect);
    const choices = schema["enum"];
    // Ajv will not compile an empty enum.
    if (Array.isArray(choices) && choices.length === 0) return false;
    const result: Record<string, unknown> = {};
    for (const keyword of Object.keys(schema)) {
      if (!isKept(keyword, schema)) continue;
      const value = schema[keyword];
      result[keyword] = keyword === "$ref"
        ? refer(value as string, base)
        : mapSchemasOf(value, shapeOf(keyword), (child) => rewrite(child, base));
    }
    // Last, because it may have to join what `$ref` and `allOf` have become.
    const dynamic = schema["$dynamicRef"];
    if (typeof dynamic === "string") addDynamic(dynamic, base, result);
    found.namesInherited ||= namedProperties(result).some((name) => name in Object.prototype);
    boundFormat(result);
    return result;
  }

  /** Whether a keyword says which values are valid, once references are resolved. */
  function isKept(keyword: string, schema: JsonSchemaObject): boolean {
    const role = KEYWORDS["2020-12"].get(keyword)?.role;
    if (role === undefined) return kept.has(keyword);
    if (keyword === "format") return formats.has(schema[keyword] as string);
    return role !== "annotates" && keyword !== "dependencies" && keyword !== "$dynamicRef";
  }

  function addDynamic(ref: string, base: string, result: Record<string, unknown>): void {
    const target = index.resolve(ref, base)?.schema;
    const anchor = isObject(target) ? target["$dynamicAnchor"] : undefined;
    const byAnchor = typeof anchor === "string" && ref.endsWith(`#${anchor}`);
    if (byAnchor && (index.dynamicAnchors.get(anchor)?.length ?? 0) > 1) found.flat = false;
    const plain = refer(ref, base);
    if (result["$ref"] === undefined) result["$ref"] = plain;
    else {
      const others = result["allOf"] as JsonSchema[] | undefined;
      result["allOf"] = [...others ?? [], { $ref: plain }];
    }
  }

  /** The reference that stands for `ref` in the rewritten schema. */
  function refer(ref: string, base: string): string {
    found.mayExhaustStack = true;
    const target = index.resolve(ref, base);
    if (target === undefined) {
      throw new SyntaxError(
        `Cannot compile the schema: the reference ${JSON.stringify(ref)} leads nowhere in it`,
      );
    }
    const source = target.schema as JsonSchema;
    // All `true` are one target, and all `false`: booleans have no identity.
    let name = names.get(source);
    if (name === undefined) {
      name = `#/$defs/${pending.length}`;
      names.set(source, name);
      pending.push({ source, base: target.base, name });
    }
    return name;
  }

  /** The schema as it is, but for formats that are not to be asserted. */
  function verbatim(part: JsonSchema): JsonSchema {
    if (typeof part === "boolean") return part;
    const result: Record<string, unknown> = {};
    for (const keyword of Object.keys(part)) {
      if (keyword === "format" && !formats.has(String(part[keyword]))) continue;
      setOwn(result, keyword, mapSchemasOf(part[keyword], shapeOf(keyword), verbatim));
    }
    boundFormat(result);
    return result;
  }
}

/** Engines test formats in 20 to 700 ns a character, and give up on long strings, each elsewhere. */
const MAX_FORMATTED = 10_000;

/** Lets no string have a format that is longer than any address. */
function boundFormat(schema: Record<string, unknown>): void {
  const { format, maxLength = MAX_FORMATTED } = schema;
  // A format that an engine was given may be meant for long texts.
  if (!ASSERTED_FORMATS.has(format as string)) return;
  schema["maxLength"] = Math.min(Number(maxLength), MAX_FORMATTED);
}

function shapeOf(keyword: string): KeywordShape {
  return KEYWORDS["2020-12"].get(keyword)?.shape ?? "any";
}

/** The names in the keywords that are about certain properties. */
function namedProperties(
  { properties, required, dependentRequired, dependentSchemas }: JsonSchemaObject,
): readonly string[] {
  return [properties, dependentRequired, dependentSchemas].flatMap((map) => Object.keys(map ?? {}))
    .concat(required as string[] ?? [], ...Object.values(dependentRequired ?? {}) as string[][]);
}
