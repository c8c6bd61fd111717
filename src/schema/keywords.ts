/**
 * The keywords of JSON Schema: the shape of their values, the part of a value that their schemas
 * check, and their drafts. The walk over the schemas in a schema. All walks read this table, so a
 * property named `definitions` or an `enum` of objects is never mistaken for a keyword.
 */

import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../tool/mod.ts";

/** The drafts that plue reads. */
export type Dialect = (typeof DIALECTS)[number];

/** True for drafts in which a `$ref` hides its sibling keywords, and `items` may be a list. */
export function isOldDraft(dialect: Dialect): boolean {
  return dialect.startsWith("draft");
}

const DIALECTS = ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"] as const;

/** Shape, role and names of keywords; the indexes of the first and the last draft with them. */
const ROWS = [
  ["schema", "value", "not"],
  ["schema", "value", "if then else", 2],
  ["schema", "items", "contains", 1],
  ["schema", "properties", "additionalProperties"],
  ["schema", "names", "propertyNames", 1],
  ["schemas", "value", "allOf anyOf oneOf"],
  ["map", "property", "properties"],
  ["map", "properties", "patternProperties"],
  ["map", "annotates", "definitions"],
  ["dependencies", "value", "dependencies"],
  ["any", "limits", "const", 1],
  ["types", "limits", "type"],
  ["strings", "limits", "required"],
  ["list", "limits", "enum"],
  ["text", "limits", "$ref format"],
  ["pattern", "limits", "pattern"],
  ["flag", "limits", "uniqueItems"],
  ["number", "limits", "maximum minimum"],
  ["flag", "limits", "exclusiveMaximum exclusiveMinimum", 0, 0],
  ["number", "limits", "exclusiveMaximum exclusiveMinimum", 1],
  ["positive", "limits", "multipleOf"],
  ["count", "limits", "maxLength minLength maxItems minItems maxProperties minProperties"],
  ["any", "annotates", "default"],
  ["list", "annotates", "examples"],
  ["text", "annotates", "$schema $comment title description contentEncoding contentMediaType"],
  ["flag", "annotates", "readOnly writeOnly"],
  ["text", "annotates", "id", 0, 0],
  ["text", "annotates", "$id", 1, 2],
  ["schema or schemas", "items", "items", 0, 3],
  ["schema", "items", "additionalItems", 0, 3],
  ["schema", "items", "unevaluatedItems", 3],
  ["schema", "properties", "unevaluatedProperties", 3],
  ["schema", "annotates", "contentSchema", 3],
  ["map", "value", "dependentSchemas", 3],
  ["map", "annotates", "$defs", 3],
  ["dependentRequired", "limits", "dependentRequired", 3],
  ["flag", "annotates", "deprecated", 3],
  ["count", "limits", "maxContains minContains", 3],
  ["id", "annotates", "$id", 3],
  ["anchor", "annotates", "$anchor", 3],
  ["vocabulary", "annotates", "$vocabulary", 3],
  ["text", "limits", "$recursiveRef", 3, 3],
  ["flag", "annotates", "$recursiveAnchor", 3, 3],
  ["schema", "items", "items", 4],
  ["schemas", "item", "prefixItems", 4],
  ["text", "limits", "$dynamicRef", 4],
  ["text", "annotates", "$recursiveRef", 4],
  ["anchor", "annotates", "$dynamicAnchor $recursiveAnchor", 4],
] as const;

type Row = (typeof ROWS)[number];

export type KeywordShape = Row[0];

export interface Keyword {
  readonly shape: KeywordShape;
  /**
   * The schemas in a keyword check the value itself, one or all of its items or properties, or the
   * names of properties. A keyword without schemas `limits` the value, or `annotates` the schema
   * without an effect on validity.
   */
  readonly role: Row[1];
}

export function holdsSchemas(shape: KeywordShape): boolean {
  return shape.startsWith("schema") || shape === "map" || shape === "dependencies";
}

/** The keywords of each draft. A keyword without an entry may have any value. */
export const KEYWORDS: { readonly [D in Dialect]: ReadonlyMap<string, Keyword> } = Object
  .fromEntries(DIALECTS.map((dialect, draft) => [dialect, keywordsOf(draft)])) as never;

function keywordsOf(draft: number): ReadonlyMap<string, Keyword> {
  const keywords = new Map<string, Keyword>();
  for (const [shape, role, names, first = 0, last = draft] of ROWS) {
    if (first > draft || last < draft) continue;
    for (const name of names.split(" ")) keywords.set(name, { shape, role });
  }
  return keywords;
}

export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "boolean" || isObject(value);
}

/** Calls `see` with each schema in `node`, its keyword, and its name or index in the keyword. */
export function eachSchemaIn(
  node: JsonSchemaObject,
  keywords: ReadonlyMap<string, Keyword>,
  see: (schema: JsonSchema, keyword: string, key: string | undefined) => void,
): void {
  for (const keyword of Object.keys(node)) {
    const shape = keywords.get(keyword)?.shape;
    if (shape === undefined) continue;
    eachSchemaOf(node[keyword], shape, (schema, key) => see(schema, keyword, key));
  }
}

/** Calls `see` with each schema in the value of one keyword. */
export function eachSchemaOf(
  value: unknown,
  shape: KeywordShape,
  see: (schema: JsonSchema, key: string | undefined) => void,
): void {
  if (!holdsSchemas(shape)) return;
  const isMap = shape === "map" || shape === "dependencies";
  if (!isMap && isSchema(value)) return see(value, undefined);
  if (!isStructure(value) || isMap === Array.isArray(value)) return;
  for (const key of Object.keys(value)) {
    const member: unknown = value[key as never];
    if (isSchema(member)) see(member, key);
  }
}

export interface MemberSchema {
  readonly child: JsonSchemaObject;
  /** `.name` or `[0` for one member, `.` for all properties, `[` for all items. */
  readonly position: string;
}

const POSITIONS = { item: "[", items: "[", property: ".", properties: "." } as const;

/** Returns the schemas in `schema` that check the same value, or a part of it. */
export function partsOf(
  schema: JsonSchemaObject,
  dialect: Dialect = "2020-12",
): { readonly inPlace: readonly unknown[]; readonly below: readonly MemberSchema[] } {
  const inPlace: unknown[] = [];
  const below: MemberSchema[] = [];
  eachSchemaIn(schema, KEYWORDS[dialect], (child, keyword, key) => {
    const role = KEYWORDS[dialect].get(keyword)?.role;
    if (role === "value") inPlace.push(child);
    else if (isObject(child) && role !== undefined && Object.hasOwn(POSITIONS, role)) {
      const all = POSITIONS[role as keyof typeof POSITIONS];
      const position = role === "item" || role === "property" ? `${all}${key}` : all;
      below.push({ child, position });
    }
  });
  return { inPlace, below };
}

/** Changes the schemas in the value of a keyword. Returns the same value if none has changed. */
export function mapSchemasOf(
  value: unknown,
  shape: KeywordShape,
  change: (schema: JsonSchema) => JsonSchema,
): unknown {
  let result = value;
  eachSchemaOf(value, shape, (schema, key) => {
    const changed = change(schema);
    if (changed === schema) return;
    if (key === undefined) result = changed;
    else {
      if (result === value) result = Array.isArray(value) ? [...value] : { ...value as object };
      setOwn(result as Record<string, unknown>, key, changed);
    }
  });
  return result;
}

export function uriOf(dialect: Dialect): string {
  return isOldDraft(dialect)
    ? `http://json-schema.org/${dialect}/schema`
    : `https://json-schema.org/draft/${dialect}/schema`;
}

/** Bounds of the search. `checkSchema` rejects larger schemas. */
const MAX_DEPTH = 64;
const MAX_SCHEMAS = 100_000;

/**
 * Returns the draft of a schema: the draft in `$schema`. Without `$schema`, it is draft-07 if the
 * schema has a keyword that 2020-12 does not have (`definitions`, `dependencies`, a list in
 * `items`), else 2020-12. Throws a `TypeError` if `$schema` names another draft.
 */
export function detectDialect(schema: JsonSchema): Dialect {
  return dialectOf(schema, "read the schema");
}

/** {@linkcode detectDialect} with another action in the message. */
export function dialectOf(schema: JsonSchema, action: string): Dialect {
  if (!isObject(schema)) return "2020-12";
  const uri = schema["$schema"];
  if (uri !== undefined) {
    const isText = typeof uri === "string";
    const dialect = DIALECTS.find((one) => isText && uri.replace(/#$/, "") === uriOf(one));
    if (dialect !== undefined) return dialect;
    const named = isText ? `"${uri.slice(0, 60)}"` : typeof uri;
    throw new TypeError(
      `Cannot ${action}: its "$schema" is ${named}, and must be absent or the URI of one of ` +
        `${DIALECTS.join(", ")}, such as "${uriOf("2020-12")}"`,
    );
  }
  let left = MAX_SCHEMAS;
  return usesDraft07(schema, MAX_DEPTH) ? "draft-07" : "2020-12";

  function usesDraft07(part: unknown, depth: number): boolean {
    if (!isObject(part) || depth < 0 || left-- <= 0) return false;
    const { items, definitions, dependencies } = part;
    if (Array.isArray(items) || isStructure(definitions) || isStructure(dependencies)) return true;
    let found = false;
    eachSchemaIn(part, KEYWORDS["2020-12"], (child) => {
      found ||= usesDraft07(child, depth - 1);
    });
    return found;
  }
}

export function isStructure(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}
