/** Reads the bodies of requests and responses: their media types and schemas. */

import * as kit from "../../formats/provider_kit.ts";
import * as check from "../../tool/mod.ts";
import { clip, isObject, type JsonSchema, pointerStep } from "../../tool/mod.ts";
import type { BodyBinding } from "./build_request.ts";
import type { Located } from "./document.ts";
import type { ReadContext, SchemaReader } from "./schemas.ts";
import { styleOf, type ValueStyle } from "./serialize.ts";

const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]{1,100}\/[a-z0-9!#$&^_.+*-]{1,100}$/;

export function mediaTypes(content: kit.JsonRecord): readonly string[] {
  return Object.keys(content).map((key) => ({ key, rank: rankOf(plainType(key)) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ key }) => key);
}

export function plainType(type: string): string {
  return type.split(";", 1).join("").trim().toLowerCase();
}

export function isJson(type: string): boolean {
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

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
  readonly whole?: check.JsonSchemaObject;
  /** Otherwise, the properties that the body adds to the arguments. */
  readonly properties: ReadonlyMap<string, unknown>;
  readonly required: Iterable<string>;
  readonly examples: readonly check.ToolExample[];
}

/** Reads a body. `keys` are the names of the arguments that are parameters. */
export function readBody(
  context: ReadContext,
  { value: body, path }: Located,
  keys: ReadonlySet<string>,
): ReadBody | undefined {
  const content = kit.objectIn(body, "content") ?? {};
  const [type] = mediaTypes(content);
  if (type === undefined) return undefined;
  const how = bodyKind(plainType(type));
  const at = `${path}/content${pointerStep(type)}`;
  const entry = content[type];
  const read = context.schemas.read(kit.member(entry, "schema"), `${at}/schema`, "input");
  const isRequired = kit.flagIn(body, "required") === true;
  if (how === undefined) {
    context.warn(at, "content", `A body of type "${clip(type)}" cannot be written`);
  }
  const form = how?.kind === "form" || how?.kind === "multipart";
  const encoding = form ? encodingOf(entry) : undefined;
  const binding = (from: BodyBinding["from"], key?: string): BodyBinding | undefined =>
    how && { ...how, from, ...check.defined({ key, encoding }) };
  const flat = how === undefined || how.kind === "text"
    ? undefined
    : flattenObject(read, context.schemas);
  if (flat !== undefined && !isRequired && flat.required.size > 0) {
    const message =
      "The body is optional, but has required properties: these are required in all calls";
    context.warn(path, "required", message);
  }
  const none = { properties: new Map<string, unknown>(), required: [] };
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
  const description = kit.wordsIn(body, "description");
  const schema = read === true ? {} : read;
  return {
    binding: binding("one", key),
    properties: new Map([[
      key,
      isObject(schema) && description !== undefined && !Object.hasOwn(schema, "description")
        ? { ...schema, description }
        : schema,
    ]]),
    required: isRequired ? [key] : [],
    examples: [],
  };
}

/** Returns the body's schema as the schema of all arguments, if its root is an object. */
function wholeOf(
  read: JsonSchema,
  schemas: SchemaReader,
  isFlat: boolean,
): check.JsonSchemaObject | undefined {
  const schema = schemas.inlineRoot(read, "input");
  if (!isObject(schema)) return undefined;
  if (schema["type"] === "object") return schema;
  return schema["type"] === undefined && isFlat ? { type: "object", ...schema } : undefined;
}

function examplesOf(entry: unknown): readonly check.ToolExample[] {
  const single = kit.member(entry, "example");
  const named = Object.values(kit.objectIn(entry, "examples") ?? {});
  return [
    ...(single === undefined ? [] : [{ input: single }]),
    ...named.filter((example) => kit.member(example, "value") !== undefined).map((example) => ({
      ...check.defined({ description: kit.textIn(example, "summary") }),
      input: kit.member(example, "value"),
    })),
  ];
}

function encodingOf(entry: unknown): { readonly [name: string]: ValueStyle } | undefined {
  const styles = Object.entries(kit.objectIn(entry, "encoding") ?? {}).flatMap(([name, one]) => {
    if (!isObject(one)) return [];
    const json = one["style"] === undefined && one["contentType"] === "application/json";
    return [[name, styleOf(one, "query", json)] as const];
  });
  return styles.length === 0 ? undefined : Object.fromEntries(styles);
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
function flattenObject(read: JsonSchema, schemas: SchemaReader) {
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
            if (properties.has(name) && !check.jsonEqual(properties.get(name), value[name])) {
              return false;
            }
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
          if (!collect(definition, alone && Object.keys(schema).length === 1)) return false;
          break;
        }
        default:
          if (!ANNOTATIONS.has(keyword) && !keyword.startsWith("x-")) return false;
      }
    }
    return true;
  }

  if (!collect(read, true) || properties.size === 0) return undefined;
  return [...required].every((name) => properties.has(name)) ? { properties, required } : undefined;
}

/** The maximum number of schemas of a result. Each schema is compared with the other schemas. */
const MAX_SCHEMAS = 16;

/**
 * Returns the schema of an operation's results: the JSON of each successful response, and `null` for
 * a response without a body. `default` counts only if no successful response is described.
 */
export function readReturns(
  context: ReadContext,
  { value: operation, path }: Located,
): JsonSchema | undefined {
  const responses = kit.objectIn(operation, "responses") ?? {};
  const successes = Object.keys(responses).filter((status) => /^2(\d\d|XX)$/i.test(status)).sort();
  const statuses = successes.length > 0 || !Object.hasOwn(responses, "default")
    ? successes
    : ["default"];
  const schemas: JsonSchema[] = [];
  for (const status of statuses) {
    const at = `${path}/responses${pointerStep(status)}`;
    const problem = addResponse(context, responses[status], at, schemas);
    if (problem === undefined) continue;
    context.warn(problem.path, "responses", `${problem.message}; results are not checked`);
    return undefined;
  }
  const different = kit.distinct(schemas);
  const [only] = different;
  // Responses without a body need no schema.
  if (only === undefined || different.every((one) => Object(one).type === "null")) return undefined;
  const schema = different.length === 1 ? only : { anyOf: different };
  return context.schemas.withDefinitions(schema, "output");
}

function addResponse(
  context: ReadContext,
  raw: unknown,
  path: string,
  schemas: JsonSchema[],
): { readonly path: string; readonly message: string } | undefined {
  const response = context.document.resolve(raw, path);
  if (response === undefined) {
    return { path, message: "The document has no target for the reference to a response" };
  }
  const content = kit.objectIn(response.value, "content") ?? {};
  const types = mediaTypes(content);
  if (types.length === 0) schemas.push({ type: "null" });
  // The request prefers JSON, so other types in the list are ignored.
  const json = types.filter((type) => bodyKind(plainType(type))?.kind === "json");
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
    const read = context.schemas.read(kit.member(content[type], "schema"), where, "output");
    schemas.push(context.schemas.inlineRoot(read, "output"));
  }
  return undefined;
}
