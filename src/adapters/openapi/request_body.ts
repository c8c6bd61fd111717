/** Reads the bodies of requests and responses: their media types and schemas. */

import {
  distinct,
  flagIn,
  type JsonRecord,
  member,
  objectIn,
  textIn,
  wordsIn,
} from "../../formats/provider_kit.ts";
import { isSchema } from "../../schema/mod.ts";
import {
  clip,
  defined,
  isObject,
  jsonEqual,
  type JsonSchema,
  type JsonSchemaObject,
  pointerStep,
  type ToolExample,
} from "../../tool/mod.ts";
import type { BodyBinding } from "./build_request.ts";
import type { Located } from "./document.ts";
import type { ReadContext, ReadSchema, SchemaReader } from "./schemas.ts";
import { styleOf, type ValueStyle } from "./serialize.ts";

const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,100}\/[a-z0-9!#$&^_.+*-]{1,100}$/;

/** Returns the media types of a `content` map unchanged, the preferred ones first. */
export function mediaTypes(content: JsonRecord): readonly string[] {
  return Object.keys(content).map((key) => ({ key, rank: rankOf(plainType(key)) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ key }) => key);
}

/** A media type in lower case, without parameters. */
export function plainType(type: string): string {
  return type.split(";", 1).join("").trim().toLowerCase();
}

export function isJson(type: string): boolean {
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

function acceptsJson(type: string): boolean {
  return isJson(type) || isWildcard(type);
}

/** Returns the encoding of a plain media type; `undefined` if the type is not supported. */
function bodyKind(type: string): Pick<BodyBinding, "kind" | "mediaType"> | undefined {
  if (isWildcard(type)) return { kind: "json", mediaType: "application/json" };
  if (!MEDIA_TYPE.test(type) || type.includes("*")) return undefined;
  if (isJson(type)) return { kind: "json", mediaType: type };
  if (type === "application/x-www-form-urlencoded") return { kind: "form", mediaType: type };
  if (type === "multipart/form-data") return { kind: "multipart", mediaType: type };
  return type.startsWith("text/") ? { kind: "text", mediaType: type } : undefined;
}

function isWildcard(type: string): boolean {
  return type === "*/*" || type === "application/*";
}

const RANKS = { json: 1, form: 2, multipart: 3, text: 4 } as const;

function rankOf(type: string): number {
  if (type === "application/json") return 0;
  const kind = bodyKind(type)?.kind;
  return kind === undefined ? 5 : RANKS[kind];
}

export interface ReadBody {
  /** The encoding of the body; `undefined` if its media type is not supported. */
  readonly binding: BodyBinding | undefined;
  /** The schema of all arguments, if they are the body as a whole. */
  readonly whole?: ReadSchema & { readonly schema: JsonSchemaObject };
  /** Otherwise, the properties that the body adds to the arguments. */
  readonly properties: ReadonlyMap<string, unknown>;
  readonly required: Iterable<string>;
  readonly refs: ReadonlySet<string>;
  readonly examples: readonly ToolExample[];
}

/** Reads a body. `keys` are the names of the arguments that are parameters. */
export function readBody(
  context: ReadContext,
  { value: body, path }: Located,
  keys: ReadonlySet<string>,
): ReadBody | undefined {
  const content = objectIn(body, "content") ?? {};
  const [type] = mediaTypes(content);
  if (type === undefined) return undefined;
  const how = bodyKind(plainType(type));
  const at = `${path}/content${pointerStep(type)}`;
  const entry = content[type];
  const read = context.schemas.read(member(entry, "schema"), `${at}/schema`, "input");
  const isRequired = flagIn(body, "required") === true;
  if (how === undefined) {
    context.warn(at, "content", `A body of type "${clip(type)}" cannot be written`);
  }
  const form = how?.kind === "form" || how?.kind === "multipart";
  const encoding = form ? encodingOf(entry) : undefined;
  const binding = (from: BodyBinding["from"], key?: string): BodyBinding | undefined =>
    how && { ...how, from, ...defined({ key, encoding }) };
  const flat = how === undefined || how.kind === "text"
    ? undefined
    : flattenObject(read, context.schemas);
  if (flat !== undefined && !isRequired && flat.required.size > 0) {
    const message =
      "The body is optional, but has required properties: these are required in all calls";
    context.warn(path, "required", message);
  }
  const none = { properties: new Map<string, unknown>(), required: [], refs: new Set<string>() };
  if (keys.size === 0 && how !== undefined && how.kind !== "text") {
    const whole = wholeOf(read, context.schemas, flat !== undefined);
    if (whole !== undefined) {
      return { binding: binding("all"), whole, ...none, examples: examplesOf(entry) };
    }
  }
  if (flat !== undefined && ![...flat.properties.keys()].some((name) => keys.has(name))) {
    return { binding: binding("rest"), ...flat, examples: [] };
  }
  let key = "body";
  for (let number = 2; keys.has(key); number++) key = `body_${number}`;
  const description = wordsIn(body, "description");
  const schema = read.schema === true ? {} : read.schema;
  return {
    binding: binding("one", key),
    properties: new Map([[
      key,
      isObject(schema) && description !== undefined && !Object.hasOwn(schema, "description")
        ? { ...schema, description }
        : schema,
    ]]),
    required: isRequired ? [key] : [],
    refs: read.refs,
    examples: [],
  };
}

/** Returns the body's schema as the schema of all arguments, if its root is an object. */
function wholeOf(
  read: ReadSchema,
  schemas: SchemaReader,
  isFlat: boolean,
): (ReadSchema & { readonly schema: JsonSchemaObject }) | undefined {
  const { schema, refs } = schemas.inlineRoot(read, "input");
  if (!isObject(schema)) return undefined;
  if (schema["type"] === "object") return { schema, refs };
  return schema["type"] === undefined && isFlat
    ? { schema: { type: "object", ...schema }, refs }
    : undefined;
}

function examplesOf(entry: unknown): readonly ToolExample[] {
  const single = member(entry, "example");
  const named = Object.values(objectIn(entry, "examples") ?? {});
  return [
    ...(single === undefined ? [] : [{ input: single }]),
    ...named.filter((example) => member(example, "value") !== undefined).map((example) => ({
      ...defined({ description: textIn(example, "summary") }),
      input: member(example, "value"),
    })),
  ];
}

/** The styles of a form's members, if the document defines them. */
function encodingOf(entry: unknown): { readonly [name: string]: ValueStyle } | undefined {
  const styles = Object.entries(objectIn(entry, "encoding") ?? {}).flatMap(([name, one]) => {
    if (!isObject(one)) return [];
    const json = one["style"] === undefined && one["contentType"] === "application/json";
    return [[name, styleOf(one, "query", json)] as const];
  });
  return styles.length === 0 ? undefined : Object.fromEntries(styles);
}

interface FlatObject {
  readonly properties: ReadonlyMap<string, unknown>;
  readonly required: ReadonlySet<string>;
  readonly refs: ReadonlySet<string>;
}

/** Keywords that do not restrict which objects are valid. */
const ANNOTATIONS: ReadonlySet<string> = new Set(
  ("title description default example examples deprecated discriminator xml externalDocs " +
    "$comment $defs readOnly writeOnly").split(" "),
);

/**
 * The properties of an object schema that is composed with `allOf` and references, as one list;
 * `undefined` if a list of properties cannot express the schema.
 */
function flattenObject(read: ReadSchema, schemas: SchemaReader): FlatObject | undefined {
  const properties = new Map<string, unknown>();
  const required = new Set<string>();
  const seen = new Set<JsonSchema>();

  /** `alone`: no other schema adds properties, so `additionalProperties: false` may stay. */
  function collect(schema: JsonSchema, alone: boolean): boolean {
    if (!isObject(schema)) return schema === true;
    if (seen.has(schema)) return true;
    seen.add(schema);
    const { $ref, allOf } = schema;
    for (const keyword of Object.keys(schema)) {
      const value = schema[keyword];
      switch (keyword) {
        case "type":
          if (value !== "object") return false;
          break;
        case "additionalProperties":
          if (value !== false || !alone || allOf !== undefined || $ref !== undefined) return false;
          break;
        case "properties":
          if (!isObject(value)) return false;
          for (const name of Object.keys(value)) {
            if (properties.has(name) && !jsonEqual(properties.get(name), value[name])) return false;
            properties.set(name, value[name]);
          }
          break;
        case "required":
          if (!Array.isArray(value)) return false;
          for (const name of value) required.add(name);
          break;
        case "allOf":
          if (!Array.isArray(value) || !value.every((branch) => collect(branch, false))) {
            return false;
          }
          break;
        case "$ref": {
          const definition = schemas.definition(value, "input");
          if (definition === undefined) return false;
          if (!collect(definition.schema, alone && Object.keys(schema).length === 1)) return false;
          break;
        }
        default:
          if (!ANNOTATIONS.has(keyword) && !keyword.startsWith("x-")) return false;
      }
    }
    return true;
  }

  if (!collect(read.schema, true) || properties.size === 0) return undefined;
  if (![...required].every((name) => properties.has(name))) return undefined;
  const refs = new Set<string>();
  for (const property of properties.values()) {
    for (const ref of isSchema(property) ? schemas.refsOf(property) : []) refs.add(ref);
  }
  return { properties, required, refs };
}

/** The maximum number of schemas of a result. Each schema is compared with the other schemas. */
const MAX_SCHEMAS = 16;

interface Results {
  readonly schemas: JsonSchema[];
  readonly refs: Set<string>;
}

/**
 * Returns the schema of an operation's results: the JSON of each successful response, and `null` for
 * a response without a body. `default` counts only if no successful response is described.
 *
 * @returns The schema, or `undefined` if results cannot be checked.
 */
export function readReturns(
  context: ReadContext,
  { value: operation, path }: Located,
): JsonSchema | undefined {
  const responses = objectIn(operation, "responses") ?? {};
  const successes = Object.keys(responses).filter((status) => /^2(\d\d|XX)$/i.test(status)).sort();
  const statuses = successes.length > 0 || !Object.hasOwn(responses, "default")
    ? successes
    : ["default"];
  const results: Results = { schemas: [], refs: new Set() };
  for (const status of statuses) {
    const at = `${path}/responses${pointerStep(status)}`;
    const problem = addResponse(context, responses[status], at, results);
    if (problem === undefined) continue;
    context.warn(problem.path, "responses", `${problem.message}; results are not checked`);
    return undefined;
  }
  const different = distinct(results.schemas);
  const [only] = different;
  // Responses without a body need no schema.
  if (only === undefined || different.every(isNull)) return undefined;
  const schema = different.length === 1 ? only : { anyOf: different };
  return context.schemas.withDefinitions(schema, results.refs, "output");
}

/** Adds the schemas of one response, or returns the reason why it has none. */
function addResponse(
  context: ReadContext,
  raw: unknown,
  path: string,
  { schemas, refs }: Results,
): { readonly path: string; readonly message: string } | undefined {
  const response = context.document.resolve(raw, path);
  if (response === undefined) {
    return { path, message: "The document has no target for the reference to a response" };
  }
  const content = objectIn(response.value, "content") ?? {};
  const types = mediaTypes(content);
  if (types.length === 0) schemas.push({ type: "null" });
  // The request prefers JSON, so other types in the list are ignored.
  const json = types.filter((type) => acceptsJson(plainType(type)));
  if (json.length === 0 && types.length > 0) {
    const [type = ""] = types;
    return {
      path: `${response.path}/content${pointerStep(type)}`,
      message: `The response is of type "${clip(type)}", not JSON`,
    };
  }
  for (const type of json) {
    if (schemas.length >= MAX_SCHEMAS) {
      return { path, message: `The responses have more than ${MAX_SCHEMAS} schemas` };
    }
    const where = `${response.path}/content${pointerStep(type)}/schema`;
    // An absent schema means any JSON value.
    const read = context.schemas.read(member(content[type], "schema"), where, "output");
    const { schema, refs: more } = context.schemas.inlineRoot(read, "output");
    for (const ref of more) refs.add(ref);
    schemas.push(schema);
  }
  return undefined;
}

function isNull(schema: JsonSchema): boolean {
  return isObject(schema) && schema["type"] === "null";
}
