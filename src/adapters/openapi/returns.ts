/**
 * The responses of an operation as the schema of its results.
 *
 * @module
 */

import { distinct, member, objectIn } from "../../formats/importer_kit.ts";
import { clip, isObject, type JsonSchema, pointerStep } from "../../tool/mod.ts";
import type { Located } from "./document.ts";
import { acceptsJson, mediaTypes, plainType } from "./media_types.ts";
import type { ReadContext } from "./schemas.ts";

/** How many schemas a result may have. Each is compared with the others. */
const MAX_SCHEMAS = 16;

/** The schemas of the results, and the definitions that they refer to. */
interface Results {
  readonly schemas: JsonSchema[];
  readonly refs: Set<string>;
}

/**
 * The schema of an operation's results: the JSON of each response that is a success, and `null` for
 * one without a body. `default` counts only if no success is described.
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

/** Adds the schemas of one response, or says why it has none. */
function addResponse(
  context: ReadContext,
  raw: unknown,
  path: string,
  { schemas, refs }: Results,
): { readonly path: string; readonly message: string } | undefined {
  const response = context.document.resolve(raw, path);
  if (response === undefined) {
    return { path, message: "The reference to a response has no target in the document" };
  }
  const content = objectIn(response.value, "content") ?? {};
  const types = mediaTypes(content);
  if (types.length === 0) schemas.push({ type: "null" });
  // The request prefers JSON, so other types beside it do not matter.
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
    // Without a schema the response is any JSON, as an absent schema reads.
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
