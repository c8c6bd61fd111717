/**
 * The body of a request: which arguments it is made of, and how it is written.
 *
 * @module
 */

import { clip } from "../../../schema/mod.ts";
import { type JsonSchemaObject, pointerStep, type ToolExample } from "../../../tool/mod.ts";
import { isNode } from "../../transform/schema_walk.ts";
import { flagIn, isMembers, member, type Members, objectIn, textIn, wordsIn } from "../fields.ts";
import type { Located, OpenApiDocument } from "./document.ts";
import { flattenObject } from "./flatten_object.ts";
import { bodyKind, media, plain } from "./media.ts";
import type { BodyBinding, ParameterStyle, ValueStyle } from "./operation.ts";
import type { ReadSchema, SchemaReader } from "./schemas.ts";

/** The body of an operation. */
export interface ReadBody {
  /** How it is sent; absent if its media type cannot be written. */
  readonly binding: BodyBinding | undefined;
  /** The whole input, where the body is all of it. */
  readonly whole?: ReadSchema & { readonly schema: JsonSchemaObject };
  /** Else the properties that it adds to the input. */
  readonly properties: ReadonlyMap<string, unknown>;
  readonly required: Iterable<string>;
  readonly refs: ReadonlySet<string>;
  readonly examples: readonly ToolExample[];
}

/** What reading a body needs. */
export interface BodyReader {
  readonly document: OpenApiDocument;
  readonly schemas: SchemaReader;
  warn(path: string, rule: string, message: string): void;
}

/**
 * Reads a body.
 *
 * @param keys The properties that the parameters take.
 */
export function readBody(
  reader: BodyReader,
  { value: body, path }: Located,
  keys: ReadonlySet<string>,
): ReadBody | undefined {
  const content = objectIn(body, "content") ?? {};
  const [type] = media(content);
  if (type === undefined) return undefined;
  const how = bodyKind(plain(type));
  const at = `${path}/content${pointerStep(type)}`;
  const entry = content[type];
  const read = reader.schemas.read(member(entry, "schema"), `${at}/schema`, "input");
  const isRequired = flagIn(body, "required") === true;
  if (how === undefined) {
    reader.warn(at, "content", `A body of type "${clip(type)}" cannot be written`);
  }
  const form = how?.kind === "form" || how?.kind === "multipart";
  const encoding = form ? encodingOf(entry) : undefined;
  const binding = (from: BodyBinding["from"], key?: string): BodyBinding | undefined =>
    how === undefined ? undefined : {
      ...how,
      from,
      ...(key === undefined ? {} : { key }),
      ...(encoding === undefined ? {} : { encoding }),
    };
  const flat = how === undefined || how.kind === "text"
    ? undefined
    : flattenObject(read, reader.schemas);
  if (flat !== undefined && !isRequired && flat.required.size > 0) {
    reader.warn(
      path,
      "required",
      "The body is optional, but has required properties: they are taken for required",
    );
  }
  const none = { properties: new Map<string, unknown>(), required: [], refs: new Set<string>() };
  if (keys.size === 0 && how !== undefined && how.kind !== "text") {
    const whole = wholeOf(read, reader.schemas, flat !== undefined);
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
      isNode(schema) && description !== undefined && !Object.hasOwn(schema, "description")
        ? { ...schema, description }
        : schema,
    ]]),
    required: isRequired ? [key] : [],
    refs: read.refs,
    examples: [],
  };
}

/** The body's schema as the schema of all arguments, if its root is an object. */
function wholeOf(
  read: ReadSchema,
  schemas: SchemaReader,
  isObject: boolean,
): (ReadSchema & { readonly schema: JsonSchemaObject }) | undefined {
  const { schema, refs } = schemas.inlineRoot(read, "input");
  if (!isNode(schema)) return undefined;
  if (schema["type"] === "object") return { schema, refs };
  return schema["type"] === undefined && isObject
    ? { schema: { type: "object", ...schema }, refs }
    : undefined;
}

function examplesOf(entry: unknown): readonly ToolExample[] {
  const single = member(entry, "example");
  const named = Object.values(objectIn(entry, "examples") ?? {});
  return [
    ...(single === undefined ? [] : [{ input: single }]),
    ...named.filter((example) => member(example, "value") !== undefined).map((example) => {
      const description = textIn(example, "summary");
      return {
        ...(description === undefined ? {} : { description }),
        input: member(example, "value"),
      };
    }),
  ];
}

const FORM_STYLES: readonly ParameterStyle[] = [
  "form",
  "spaceDelimited",
  "pipeDelimited",
  "deepObject",
];

/** How the members of a form are written. */
function encodingOf(entry: unknown): { readonly [name: string]: ValueStyle } | undefined {
  const given = objectIn(entry, "encoding");
  if (given === undefined) return undefined;
  const styles = Object.keys(given).flatMap((name): [string, ValueStyle][] => {
    const one: unknown = given[name];
    if (!isMembers(one)) return [];
    return [[name, styleOf(one)]];
  });
  return styles.length === 0 ? undefined : Object.fromEntries(styles);
}

function styleOf(encoding: Members): ValueStyle {
  const style = FORM_STYLES.find((one) => one === encoding["style"]) ?? "form";
  const json = encoding["style"] === undefined &&
    textIn(encoding, "contentType") === "application/json";
  return {
    style,
    explode: flagIn(encoding, "explode") ?? (style === "form"),
    ...(flagIn(encoding, "allowReserved") === true ? { allowReserved: true } : {}),
    ...(json ? { json } : {}),
  };
}
