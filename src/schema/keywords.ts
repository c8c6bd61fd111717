/**
 * The keywords of JSON Schema as data: what each may hold, what its schemas look at, and which
 * draft knows it; and the walk over the schemas in a schema. All walks read this table, so that a property named
 * `definitions` or an `enum` of objects is never taken for a keyword.
 *
 * @module
 */

import { isObject, type JsonSchema, type JsonSchemaObject, setOwn } from "../tool/mod.ts";

/** The drafts that plue reads. */
export type Dialect = "draft-04" | "draft-06" | "draft-07" | "2019-09" | "2020-12";

/** Whether a draft is one in which a `$ref` hides what stands beside it, and `items` may be a list. */
export function isOldDraft(dialect: Dialect): boolean {
  return dialect.startsWith("draft");
}

const BOTH = [
  ["schema", "value", "not if then else"],
  ["schema", "items", "contains"],
  ["schema", "properties", "additionalProperties"],
  ["schema", "names", "propertyNames"],
  ["schemas", "value", "allOf anyOf oneOf"],
  ["map", "property", "properties"],
  ["map", "properties", "patternProperties"],
  ["map", "annotates", "definitions"],
  ["dependencies", "value", "dependencies"],
  ["any", "limits", "const"],
  ["types", "limits", "type"],
  ["strings", "limits", "required"],
  ["list", "limits", "enum"],
  ["text", "limits", "$ref format"],
  ["pattern", "limits", "pattern"],
  ["flag", "limits", "uniqueItems"],
  ["number", "limits", "maximum minimum exclusiveMaximum exclusiveMinimum"],
  ["positive", "limits", "multipleOf"],
  ["count", "limits", "maxLength minLength maxItems minItems maxProperties minProperties"],
  ["any", "annotates", "default"],
  ["list", "annotates", "examples"],
  ["text", "annotates", "$schema $comment title description contentEncoding contentMediaType"],
  ["flag", "annotates", "readOnly writeOnly"],
] as const;

const DRAFT_07 = [
  ["schema or schemas", "items", "items"],
  ["schema", "items", "additionalItems"],
  ["text", "annotates", "$id"],
] as const;

const SINCE_2019_09 = [
  ["schema", "items", "unevaluatedItems"],
  ["schema", "properties", "unevaluatedProperties"],
  ["schema", "annotates", "contentSchema"],
  ["map", "value", "dependentSchemas"],
  ["map", "annotates", "$defs"],
  ["dependentRequired", "limits", "dependentRequired"],
  ["flag", "annotates", "deprecated"],
  ["count", "limits", "maxContains minContains"],
  ["id", "annotates", "$id"],
  ["anchor", "annotates", "$anchor"],
  ["vocabulary", "annotates", "$vocabulary"],
] as const;

const DRAFT_2019_09 = [
  ["schema or schemas", "items", "items"],
  ["schema", "items", "additionalItems"],
  ["text", "limits", "$recursiveRef"],
  ["flag", "annotates", "$recursiveAnchor"],
] as const;

const DRAFT_2020_12 = [
  ["schema", "items", "items"],
  ["schemas", "item", "prefixItems"],
  ["text", "limits", "$dynamicRef"],
  ["text", "annotates", "$recursiveRef"],
  ["anchor", "annotates", "$dynamicAnchor $recursiveAnchor"],
] as const;

const DRAFT_04 = [
  ["text", "annotates", "id"],
  ["flag", "limits", "exclusiveMaximum exclusiveMinimum"],
] as const;

type Row = (
  | typeof BOTH
  | typeof DRAFT_07
  | typeof SINCE_2019_09
  | typeof DRAFT_2019_09
  | typeof DRAFT_2020_12
  | typeof DRAFT_04
)[number];

/** What a keyword's value must be. */
export type KeywordShape = Row[0];

/**
 * What a keyword is about. Its schemas check the value itself, one or all of its items or
 * properties, or the names of those; without schemas, it `limits` the value or `annotates` the
 * schema, which says nothing about what is valid.
 */
export type KeywordRole = Row[1];

export interface Keyword {
  readonly shape: KeywordShape;
  readonly role: KeywordRole;
}

/** Whether a keyword with a value of this shape holds schemas. */
export function holdsSchemas(shape: KeywordShape): boolean {
  return shape.startsWith("schema") || shape === "map" || shape === "dependencies";
}

function table(rows: readonly Row[], without: readonly string[] = []): Map<string, Keyword> {
  const keywords = rows.flatMap(([shape, role, names]) =>
    names.split(" ").map((name) => [name, { shape, role }] as const)
  );
  return new Map(keywords.filter(([name]) => !without.includes(name)));
}

/** What is a keyword since draft-07 and since draft-06: where it is none, it says nothing. */
const SINCE_DRAFT_07 = ["if", "then", "else"];
const SINCE_DRAFT_06 = [...SINCE_DRAFT_07, "const", "contains", "propertyNames", "$id"];

/** The keywords of each draft. A keyword that is not here holds anything. */
export const KEYWORDS: { readonly [D in Dialect]: ReadonlyMap<string, Keyword> } = {
  "draft-04": table([...BOTH, ...DRAFT_07, ...DRAFT_04], SINCE_DRAFT_06),
  "draft-06": table([...BOTH, ...DRAFT_07], SINCE_DRAFT_07),
  "draft-07": table([...BOTH, ...DRAFT_07]),
  "2019-09": table([...BOTH, ...SINCE_2019_09, ...DRAFT_2019_09]),
  "2020-12": table([...BOTH, ...SINCE_2019_09, ...DRAFT_2020_12]),
};

export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "boolean" || isObject(value);
}

/** Calls `see` with each schema in `node`, the keyword that holds it, and its name or index there. */
export function eachSchemaIn(
  node: JsonSchemaObject,
  keywords: ReadonlyMap<string, Keyword>,
  see: (schema: JsonSchema, keyword: string, key: string | number | undefined) => void,
): void {
  for (const keyword of Object.keys(node)) {
    const shape = keywords.get(keyword)?.shape;
    if (shape === undefined) continue;
    eachSchemaOf(node[keyword], shape, (schema, key) => see(schema, keyword, key));
  }
}

/** Calls `see` with each schema that the value of one keyword is or holds. */
export function eachSchemaOf(
  value: unknown,
  shape: KeywordShape,
  see: (schema: JsonSchema, key: string | number | undefined) => void,
): void {
  if (!holdsSchemas(shape)) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      if (isSchema(value[index])) see(value[index], index);
    }
  } else if (shape !== "map" && shape !== "dependencies") {
    if (isSchema(value)) see(value, undefined);
  } else if (isObject(value)) {
    for (const name of Object.keys(value)) {
      const member = value[name];
      if (isSchema(member)) see(member, name);
    }
  }
}

/** The value of one keyword with its schemas changed; the same value if none has changed. */
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
    else if (Array.isArray(value)) {
      if (result === value) result = [...value];
      (result as unknown[])[Number(key)] = changed;
    } else {
      if (result === value) result = { ...value as object };
      setOwn(result as Record<string, unknown>, String(key), changed);
    }
  });
  return result;
}

const BY_URI: ReadonlyMap<unknown, Dialect> = new Map(
  (Object.keys(KEYWORDS) as Dialect[]).map((dialect) => [
    isOldDraft(dialect)
      ? `http://json-schema.org/${dialect}/schema`
      : `https://json-schema.org/draft/${dialect}/schema`,
    dialect,
  ]),
);

/** Bounds of the search. `checkSchema` refuses what is larger. */
const MAX_DEPTH = 64;
const MAX_SCHEMAS = 100_000;

/**
 * Which draft `schema` is written in: what `$schema` names; without it draft-07 if a form is used
 * that 2020-12 does not have (`definitions`, `dependencies`, a list of schemas in `items`), else 2020-12.
 *
 * @param schema The schema. It need not be a valid one.
 * @returns The draft.
 * @throws {TypeError} If `$schema` names another draft.
 */
export function detectDialect(schema: JsonSchema): Dialect {
  return dialectOf(schema, "read the schema");
}

/** {@linkcode detectDialect} for a caller that wants to do something else with the schema. */
export function dialectOf(schema: JsonSchema, action: string): Dialect {
  if (!isObject(schema)) return "2020-12";
  const uri = schema["$schema"];
  if (uri !== undefined) {
    const dialect = BY_URI.get(typeof uri === "string" ? uri.replace(/#$/, "") : uri);
    if (dialect !== undefined) return dialect;
    const named = typeof uri === "string" ? `"${uri.slice(0, 60)}"` : typeof uri;
    throw new TypeError(
      `Cannot ${action}: its "$schema" is ${named}, and must be absent or the URI of one of ` +
        `${Object.keys(KEYWORDS).join(", ")}, such as "${[...BY_URI.keys()].at(-1)}"`,
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
