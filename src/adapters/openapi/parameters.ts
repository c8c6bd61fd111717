/** Reads the parameters of an operation, and makes the schema of all arguments. */

import {
  flagIn,
  type JsonRecord,
  listIn,
  member,
  objectIn,
  quote,
  textIn,
  wordsIn,
} from "../../formats/provider_kit.ts";
import {
  clip,
  defined,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  pointerStep,
  setOwn,
} from "../../tool/mod.ts";
import type { ParameterBinding } from "./build_request.ts";
import type { Located } from "./document.ts";
import { mediaTypes, type ReadBody } from "./request_body.ts";
import type { ReadContext, ReadSchema } from "./schemas.ts";
import { type ParameterPlace, styleOf, STYLES } from "./serialize.ts";

export interface ReadParameter {
  readonly binding: ParameterBinding;
  readonly required: boolean;
  readonly read: ReadSchema;
}

const MAX_PARAMETERS = 1_000;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

/** Headers that the request itself determines. No argument may set them. */
const CLOSED_HEADERS: ReadonlySet<string> = new Set(
  ("accept content-type authorization host connection content-length cookie expect forwarded " +
    "keep-alive te trailer transfer-encoding upgrade").split(" "),
);

/** Returns the parameters of an operation and of its path, or the first problem. */
export function readParameters(
  context: ReadContext,
  item: Located,
  operation: Located,
): readonly ReadParameter[] | string {
  const found = new Map<string, Located>();
  const listed = [item, operation].flatMap(({ value, path }) =>
    (listIn(value, "parameters") ?? []).map((raw, at) => ({
      raw,
      path: `${path}/parameters/${at}`,
    }))
  );
  if (listed.length > MAX_PARAMETERS) return `it has more than ${MAX_PARAMETERS} parameters`;
  for (const { raw, path } of listed) {
    const value = context.document.resolve(raw, path)?.value;
    const name = textIn(value, "name");
    const place = textIn(value, "in");
    if (value === undefined || name === undefined || name === "" || place === undefined) {
      return 'a parameter must have a "name" and an "in"; references must stay in the document';
    }
    // A parameter of the operation replaces the parameter of its path with the same name.
    found.set(`${place} ${name}`, { value, path });
  }
  const result: ReadParameter[] = [];
  const keys = new Set<string>();
  for (const { value, path } of found.values()) {
    const name = textIn(value, "name") ?? "";
    const required = flagIn(value, "required") === true || value["in"] === "path";
    const hidden = hiddenReason(context, value, name);
    const problem = hidden ?? problemOf(context, value, name, path);
    if (problem !== undefined) {
      if (hidden === undefined && required) return problem;
      context.warn(path, "parameters", `${problem}; the parameter is omitted`);
      continue;
    }
    const place = value["in"] as ParameterPlace;
    let key = keys.has(name) ? `${place}_${name}` : name;
    for (let number = 2; keys.has(key); number++) key = `${place}_${name}_${number}`;
    keys.add(key);
    result.push({
      binding: { key, name, in: place, ...styleOf(value, place, isObject(value["content"])) },
      required,
      read: schemaOf(context, value, path),
    });
  }
  return result;
}

/** Returns the schema of all arguments, an object without other properties, which cannot be sent. */
export function inputOf(
  parameters: readonly ReadParameter[],
  body: ReadBody | undefined,
): ReadSchema & { readonly schema: JsonSchemaObject } {
  if (body?.whole !== undefined) return body.whole;
  const properties: Record<string, unknown> = {};
  const required: string[] = [];
  const refs = new Set<string>(body?.refs);
  for (const { binding: { key }, required: isRequired, read } of parameters) {
    setOwn(properties, key, read.schema);
    if (isRequired) required.push(key);
    for (const ref of read.refs) refs.add(ref);
  }
  for (const [name, schema] of body?.properties ?? []) setOwn(properties, name, schema);
  required.push(...body?.required ?? []);
  return {
    schema: {
      type: "object",
      properties,
      ...(required.length === 0 ? {} : { required }),
      additionalProperties: false,
    },
    refs,
  };
}

/** Returns the reason why callers must not set a parameter, even a required one. */
function hiddenReason(
  { credentials }: ReadContext,
  { in: place }: JsonRecord,
  name: string,
): string | undefined {
  const key = place === "header" ? name.toLowerCase() : name;
  if (credentials.has(`${place} ${key}`)) return `"${clip(name)}" is a credential`;
  return place === "header" && (CLOSED_HEADERS.has(key) || key.startsWith("proxy-"))
    ? `The header "${clip(name)}" cannot be set by callers`
    : undefined;
}

function problemOf(
  context: ReadContext,
  { in: place, style }: JsonRecord,
  name: string,
  path: string,
): string | undefined {
  const quoted = `"${clip(name)}"`;
  if (!isPlace(place)) {
    return `${quoted} must be in ${Object.keys(STYLES).join(", ")}, not in ${quote(place)}`;
  }
  if ((place === "header" || place === "cookie") && !TOKEN.test(name)) {
    return `${quoted} cannot be the name of a ${place}`;
  }
  const styles: readonly unknown[] = STYLES[place];
  if (style !== undefined && !styles.includes(style)) {
    const message = `must be ${styles.join(", ")}; "${styles[0]}" is used`;
    context.warn(path, "style", `The style of ${quoted} ${message}`);
  }
  return undefined;
}

function isPlace(place: unknown): place is ParameterPlace {
  return typeof place === "string" && Object.hasOwn(STYLES, place);
}

function schemaOf(context: ReadContext, parameter: JsonRecord, path: string): ReadSchema {
  const content = objectIn(parameter, "content") ?? {};
  const [type] = mediaTypes(content);
  const [holder, at] = type === undefined
    ? [parameter, path]
    : [content[type], `${path}/content${pointerStep(type)}`];
  const read = context.schemas.read(member(holder, "schema"), `${at}/schema`, "input");
  return { schema: describedBy(read.schema, parameter), refs: read.refs };
}

function describedBy(schema: JsonSchema, parameter: JsonRecord): JsonSchema {
  const description = wordsIn(parameter, "description");
  const deprecated = flagIn(parameter, "deprecated") === true;
  const example = parameter["example"];
  const base = schema === true ? {} : schema;
  if (!isObject(base)) return base;
  const examples = example === undefined ? base["examples"] : base["examples"] ?? [example];
  return { ...base, ...defined({ description, deprecated: deprecated || undefined, examples }) };
}
