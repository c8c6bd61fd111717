/**
 * The parameters of an operation: which there are, how their values are written, and which
 * property of the arguments each takes.
 *
 * @module
 */

import { clip } from "../../../schema/mod.ts";
import { type JsonSchema, pointerStep } from "../../../tool/mod.ts";
import { isNode } from "../../transform/schema_walk.ts";
import {
  flagIn,
  isMembers,
  listIn,
  member,
  type Members,
  objectIn,
  quote,
  textIn,
  wordsIn,
} from "../fields.ts";
import type { Located, OpenApiDocument } from "./document.ts";
import { media } from "./media.ts";
import type { ParameterBinding, ParameterPlace, ParameterStyle } from "./operation.ts";
import type { ReadSchema, SchemaReader } from "./schemas.ts";

/** A parameter of an operation. */
export interface ReadParameter {
  readonly binding: ParameterBinding;
  readonly required: boolean;
  readonly read: ReadSchema;
}

/** What reading parameters needs. */
export interface ParameterReader {
  readonly document: OpenApiDocument;
  readonly schemas: SchemaReader;
  /** The API's own keys (`apiKey`), as `in name`: they come with the credentials. */
  readonly secrets: ReadonlySet<string>;
  warn(path: string, rule: string, message: string): void;
}

const STYLES: { readonly [Place in ParameterPlace]: readonly ParameterStyle[] } = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"],
};

const MAX_PARAMETERS = 1_000;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

/** OpenAPI says that these are no parameters: the media types and the credentials make them. */
const NOT_PARAMETERS: ReadonlySet<string> = new Set(["accept", "content-type", "authorization"]);

/** Headers that decide where a request goes or how it is framed. No argument may. */
const FIXED: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "content-length",
  "cookie",
  "expect",
  "forwarded",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The parameters of an operation, those of its path included, or what is wrong with them. */
export function readParameters(
  reader: ParameterReader,
  item: Located,
  operation: Located,
): readonly ReadParameter[] | { readonly path: string; readonly message: string } {
  const found = new Map<string, Located>();
  const given = [item, operation].reduce(
    (sum, holder) => sum + (listIn(holder.value, "parameters")?.length ?? 0),
    0,
  );
  if (given > MAX_PARAMETERS) {
    return { path: operation.path, message: `it has more than ${MAX_PARAMETERS} parameters` };
  }
  for (const holder of [item, operation]) {
    for (const [index, raw] of (listIn(holder.value, "parameters") ?? []).entries()) {
      const path = `${holder.path}/parameters/${index}`;
      const parameter = reader.document.resolve(raw, path);
      const name = textIn(parameter?.value, "name");
      const place = textIn(parameter?.value, "in");
      if (parameter === undefined || name === undefined || name === "" || place === undefined) {
        return {
          path,
          message:
            'a parameter must have a "name" and an "in"; references must stay in the document',
        };
      }
      // The operation's own parameter takes the place of the path's.
      found.set(`${place} ${name}`, { value: parameter.value, path });
    }
  }
  const result: ReadParameter[] = [];
  const keys = new Set<string>();
  for (const { value, path } of found.values()) {
    const name = textIn(value, "name") ?? "";
    const required = flagIn(value, "required") === true || value["in"] === "path";
    const problem = problemOf(reader, value, name, path);
    if (problem !== undefined) {
      if (problem.skip || !required) {
        reader.warn(path, "parameters", `${problem.message}; the parameter is left out`);
        continue;
      }
      return { path, message: problem.message };
    }
    const place = value["in"] as ParameterPlace;
    let key = keys.has(name) ? `${place}_${name}` : name;
    for (let number = 2; keys.has(key); number++) key = `${place}_${name}_${number}`;
    keys.add(key);
    result.push({
      binding: bindingOf(value, key, name, place),
      required,
      read: schemaOf(reader, value, path),
    });
  }
  return result;
}

/** Why a parameter cannot be used; `skip`: because it is not the caller's to give. */
function problemOf(
  reader: ParameterReader,
  parameter: Members,
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
  if (reader.secrets.has(`${place} ${place === "header" ? lower : name}`)) {
    return { skip: true, message: `${quoted} is a credential` };
  }
  if (place === "header" || place === "cookie") {
    if (
      place === "header" &&
      (NOT_PARAMETERS.has(lower) || FIXED.has(lower) || lower.startsWith("proxy-"))
    ) {
      return { skip: true, message: `The header ${quoted} is not the caller's to set` };
    }
    if (!TOKEN.test(name)) return { skip: false, message: `${quoted} is no name of a ${place}` };
  }
  const style = parameter["style"];
  if (style !== undefined && !(STYLES[place] as readonly unknown[]).includes(style)) {
    reader.warn(
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

function bindingOf(
  parameter: Members,
  key: string,
  name: string,
  place: ParameterPlace,
): ParameterBinding {
  const styles = STYLES[place];
  const style = styles.find((one) => one === parameter["style"]) ?? styles[0] as ParameterStyle;
  return {
    key,
    name,
    in: place,
    style,
    explode: flagIn(parameter, "explode") ?? (style === "form"),
    ...(flagIn(parameter, "allowReserved") === true && place === "query"
      ? { allowReserved: true }
      : {}),
    ...(isMembers(parameter["content"]) ? { json: true } : {}),
  };
}

function schemaOf(reader: ParameterReader, parameter: Members, path: string): ReadSchema {
  const content = objectIn(parameter, "content");
  const type = content === undefined ? undefined : media(content)[0];
  const read = type === undefined
    ? reader.schemas.read(parameter["schema"], `${path}/schema`, "input")
    : reader.schemas.read(
      member(content?.[type], "schema"),
      `${path}/content${pointerStep(type)}/schema`,
      "input",
    );
  return { schema: describe(read.schema, parameter), refs: read.refs };
}

/** What is said of the parameter is said of its property. */
function describe(schema: JsonSchema, parameter: Members): JsonSchema {
  const description = wordsIn(parameter, "description");
  const deprecated = flagIn(parameter, "deprecated") === true;
  const example = parameter["example"];
  const base = schema === true ? {} : schema;
  if (!isNode(base)) return base;
  return {
    ...base,
    ...(description === undefined ? {} : { description }),
    ...(deprecated ? { deprecated } : {}),
    ...(example === undefined || Object.hasOwn(base, "examples") ? {} : { examples: [example] }),
  };
}
