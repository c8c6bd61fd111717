/**
 * The parameters of an operation: how the value of each is written, and from which argument it
 * comes; and the schema of all arguments.
 *
 * @module
 */

import {
  flagIn,
  type JsonRecord,
  listIn,
  member,
  objectIn,
  quote,
  textIn,
  wordsIn,
} from "../../formats/importer_kit.ts";
import {
  clip,
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

/** A parameter of an operation. */
export interface ReadParameter {
  readonly binding: ParameterBinding;
  readonly required: boolean;
  readonly read: ReadSchema;
}

const MAX_PARAMETERS = 1_000;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

/** Headers that OpenAPI derives from the media types and the credentials. */
const DERIVED_HEADERS: ReadonlySet<string> = new Set(["accept", "content-type", "authorization"]);

/** Headers that decide where a request goes or how it is framed. No argument may set them. */
const FIXED_HEADERS: ReadonlySet<string> = new Set(
  ("host connection content-length cookie expect forwarded keep-alive te trailer " +
    "transfer-encoding upgrade").split(" "),
);

/**
 * Returns the parameters of an operation, including the parameters of its path, or the first
 * problem.
 */
export function readParameters(
  context: ReadContext,
  item: Located,
  operation: Located,
): readonly ReadParameter[] | string {
  const found = new Map<string, Located>();
  const given = [item, operation].reduce(
    (sum, holder) => sum + (listIn(holder.value, "parameters")?.length ?? 0),
    0,
  );
  if (given > MAX_PARAMETERS) return `it has more than ${MAX_PARAMETERS} parameters`;
  for (const holder of [item, operation]) {
    for (const [index, raw] of (listIn(holder.value, "parameters") ?? []).entries()) {
      const path = `${holder.path}/parameters/${index}`;
      const parameter = context.document.resolve(raw, path);
      const name = textIn(parameter?.value, "name");
      const place = textIn(parameter?.value, "in");
      if (parameter === undefined || name === undefined || name === "" || place === undefined) {
        return 'a parameter must have a "name" and an "in"; references must stay in the document';
      }
      // The operation's own parameter replaces the one of its path.
      found.set(`${place} ${name}`, { value: parameter.value, path });
    }
  }
  const result: ReadParameter[] = [];
  const keys = new Set<string>();
  for (const { value, path } of found.values()) {
    const name = textIn(value, "name") ?? "";
    const required = flagIn(value, "required") === true || value["in"] === "path";
    const problem = problemOf(context, value, name, path);
    if (problem !== undefined) {
      if (problem.skip || !required) {
        context.warn(path, "parameters", `${problem.message}; the parameter is left out`);
        continue;
      }
      return problem.message;
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

/** One object schema for all arguments. It is closed: other properties could not be sent. */
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

/** Why a parameter cannot be used; `skip`: because callers must not set it, required or not. */
function problemOf(
  context: ReadContext,
  parameter: JsonRecord,
  name: string,
  path: string,
): { readonly message: string; readonly skip: boolean } | undefined {
  const place = parameter["in"];
  const quoted = `"${clip(name)}"`;
  if (!isPlace(place)) {
    return {
      skip: false,
      message: `${quoted} must be in ${Object.keys(STYLES).join(", ")}, not in ${quote(place)}`,
    };
  }
  const lower = name.toLowerCase();
  if (context.credentials.has(`${place} ${place === "header" ? lower : name}`)) {
    return { skip: true, message: `${quoted} is a credential` };
  }
  if (place === "header" || place === "cookie") {
    if (
      place === "header" &&
      (DERIVED_HEADERS.has(lower) || FIXED_HEADERS.has(lower) || lower.startsWith("proxy-"))
    ) {
      return { skip: true, message: `The header ${quoted} cannot be set by callers` };
    }
    if (!TOKEN.test(name)) {
      return { skip: false, message: `${quoted} cannot be the name of a ${place}` };
    }
  }
  const style = parameter["style"];
  if (style !== undefined && !(STYLES[place] as readonly unknown[]).includes(style)) {
    context.warn(
      path,
      "style",
      `The style of ${quoted} must be ${STYLES[place].join(", ")}; "${STYLES[place][0]}" is used`,
    );
  }
  return undefined;
}

function isPlace(place: unknown): place is ParameterPlace {
  return typeof place === "string" && Object.hasOwn(STYLES, place);
}

function schemaOf(context: ReadContext, parameter: JsonRecord, path: string): ReadSchema {
  const content = objectIn(parameter, "content");
  const type = content === undefined ? undefined : mediaTypes(content)[0];
  const read = type === undefined
    ? context.schemas.read(parameter["schema"], `${path}/schema`, "input")
    : context.schemas.read(
      member(content?.[type], "schema"),
      `${path}/content${pointerStep(type)}/schema`,
      "input",
    );
  return { schema: describedBy(read.schema, parameter), refs: read.refs };
}

/** The schema of a parameter with the parameter's own description, deprecation and example. */
function describedBy(schema: JsonSchema, parameter: JsonRecord): JsonSchema {
  const description = wordsIn(parameter, "description");
  const deprecated = flagIn(parameter, "deprecated") === true;
  const example = parameter["example"];
  const base = schema === true ? {} : schema;
  if (!isObject(base)) return base;
  return {
    ...base,
    ...(description === undefined ? {} : { description }),
    ...(deprecated ? { deprecated } : {}),
    ...(example === undefined || Object.hasOwn(base, "examples") ? {} : { examples: [example] }),
  };
}
