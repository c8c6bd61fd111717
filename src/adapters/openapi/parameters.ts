/** Reads the parameters of an operation, and makes the schema of all arguments. */

import * as kit from "../../formats/provider_kit.ts";
import * as check from "../../tool/mod.ts";
import { clip, isObject, type JsonSchema } from "../../tool/mod.ts";
import type { ParameterBinding } from "./build_request.ts";
import type { Located } from "./document.ts";
import { mediaTypes, type ReadBody } from "./request_body.ts";
import type { ReadContext } from "./schemas.ts";
import { type ParameterPlace, styleOf, STYLES } from "./serialize.ts";

export interface ReadParameter {
  readonly binding: ParameterBinding;
  readonly required: boolean;
  readonly schema: JsonSchema;
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
    (kit.listIn(value, "parameters") ?? []).map((raw, at) => ({
      raw,
      path: `${path}/parameters/${at}`,
    }))
  );
  if (listed.length > MAX_PARAMETERS) return `it has more than ${MAX_PARAMETERS} parameters`;
  for (const { raw, path } of listed) {
    const value = context.document.resolve(raw, path)?.value;
    const name = kit.textIn(value, "name");
    const place = kit.textIn(value, "in");
    if (value === undefined || name === undefined || name === "" || place === undefined) {
      return 'a parameter must have a "name" and an "in"; references must stay in the document';
    }
    // A parameter of the operation replaces the parameter of its path with the same name.
    found.set(`${place} ${name}`, { value, path });
  }
  const result: ReadParameter[] = [];
  const keys = new Set<string>();
  for (const { value, path } of found.values()) {
    const name = kit.textIn(value, "name") ?? "";
    const required = kit.flagIn(value, "required") === true || value["in"] === "path";
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
      schema: schemaOf(context, value, path),
    });
  }
  return result;
}

/** Returns the schema of all arguments, an object without other properties, which cannot be sent. */
export function inputOf(
  parameters: readonly ReadParameter[],
  body: ReadBody | undefined,
): check.JsonSchemaObject {
  if (body?.whole !== undefined) return body.whole;
  const properties: Record<string, unknown> = {};
  const required: string[] = [];
  for (const { binding: { key }, required: isRequired, schema } of parameters) {
    check.setOwn(properties, key, schema);
    if (isRequired) required.push(key);
  }
  for (const [name, schema] of body?.properties ?? []) check.setOwn(properties, name, schema);
  required.push(...body?.required ?? []);
  return {
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

function hiddenReason(
  { credentials }: ReadContext,
  { in: place }: kit.JsonRecord,
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
  { in: place, style }: kit.JsonRecord,
  name: string,
  path: string,
): string | undefined {
  const quoted = `"${clip(name)}"`;
  if (!Object.hasOwn(STYLES, `${place}`)) {
    return `${quoted} must be in ${Object.keys(STYLES).join(", ")}, not in ${kit.quote(place)}`;
  }
  if ((place === "header" || place === "cookie") && !TOKEN.test(name)) {
    return `${quoted} cannot be the name of a ${place}`;
  }
  const styles: readonly unknown[] = STYLES[place as ParameterPlace];
  if (style !== undefined && !styles.includes(style)) {
    const message = `must be ${styles.join(", ")}; "${styles[0]}" is used`;
    context.warn(path, "style", `The style of ${quoted} ${message}`);
  }
  return undefined;
}

function schemaOf(context: ReadContext, parameter: kit.JsonRecord, path: string): JsonSchema {
  const content = kit.objectIn(parameter, "content") ?? {};
  const [type] = mediaTypes(content);
  const [holder, at] = type === undefined
    ? [parameter, path]
    : [content[type], `${path}/content${check.pointerStep(type)}`];
  const schema = context.schemas.read(kit.member(holder, "schema"), `${at}/schema`, "input");
  return describedBy(schema, parameter);
}

function describedBy(schema: JsonSchema, parameter: kit.JsonRecord): JsonSchema {
  const description = kit.wordsIn(parameter, "description");
  const deprecated = kit.flagIn(parameter, "deprecated") === true;
  const example = parameter["example"];
  const base = schema === true ? {} : schema;
  if (!isObject(base)) return base;
  const examples = example === undefined ? base["examples"] : base["examples"] ?? [example];
  return {
    ...base,
    ...check.defined({ description, deprecated: deprecated || undefined, examples }),
  };
}
