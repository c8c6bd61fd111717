/**
 * The responses of an operation as the schema of its results.
 *
 * @module
 */

import { clip } from "../../../schema/mod.ts";
import { type JsonSchema, pointerStep } from "../../../tool/mod.ts";
import { distinct } from "../../transform/json_equal.ts";
import { isNode } from "../../transform/schema_walk.ts";
import { member, objectIn } from "../fields.ts";
import type { BodyReader } from "./body.ts";
import type { Located } from "./document.ts";
import { isJsonMedia, media, plain } from "./media.ts";

/** How many schemas a result may have. Each is compared with the others. */
const MAX_SCHEMAS = 16;

/** The schemas of the results, and what they refer to; `undefined` if results cannot be checked. */
interface Results {
  readonly schemas: JsonSchema[];
  readonly refs: Set<string>;
}

/**
 * The schema of what a call may answer: the JSON of each response that is a success, and `null` for
 * one without a body. `default` counts only where no success is written down.
 *
 * @returns The schema, or `undefined` if results cannot be checked.
 */
export function readResponses(
  reader: BodyReader,
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
    const problem = addResponse(reader, responses[status], at, results);
    if (problem === undefined) continue;
    reader.warn(problem.path, "responses", `${problem.message}; results are not checked`);
    return undefined;
  }
  const different = distinct(results.schemas);
  const [only] = different;
  // Only responses without a body: there is nothing to describe.
  if (only === undefined || different.every(isNull)) return undefined;
  const schema = different.length === 1 ? only : { anyOf: different };
  return reader.schemas.withDefinitions(schema, results.refs, "output");
}

/** Adds the schemas of one response, or says why it has none. */
function addResponse(
  reader: BodyReader,
  raw: unknown,
  path: string,
  { schemas, refs }: Results,
): { readonly path: string; readonly message: string } | undefined {
  const response = reader.document.resolve(raw, path);
  if (response === undefined) {
    return { path, message: "The response leads nowhere in the document" };
  }
  const content = objectIn(response.value, "content") ?? {};
  const types = media(content);
  if (types.length === 0) schemas.push({ type: "null" });
  // The request asks for JSON: where there is JSON too, it is what comes.
  const json = types.filter((type) => isJsonMedia(plain(type)));
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
    // Without a schema it is any JSON, which is what reading nothing gives.
    const read = reader.schemas.read(member(content[type], "schema"), where, "output");
    const { schema, refs: more } = reader.schemas.inlineRoot(read, "output");
    for (const ref of more) refs.add(ref);
    schemas.push(schema);
  }
  return undefined;
}

function isNull(schema: JsonSchema): boolean {
  return isNode(schema) && schema["type"] === "null";
}
