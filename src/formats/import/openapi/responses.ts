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
  const statuses = successes.length > 0
    ? successes
    : ["default"].filter((key) => Object.hasOwn(responses, key));
  const schemas: JsonSchema[] = [];
  const refs = new Set<string>();
  for (const status of statuses) {
    const at = `${path}/responses${pointerStep(status)}`;
    const response = reader.document.resolve(responses[status], at);
    if (response === undefined) {
      reader.warn(
        at,
        "responses",
        "The response leads nowhere in the document; results are not checked",
      );
      return undefined;
    }
    const content = objectIn(response.value, "content") ?? {};
    const types = media(content);
    if (types.length === 0) {
      schemas.push({ type: "null" });
      continue;
    }
    for (const type of types) {
      const where = `${response.path}/content${pointerStep(type)}`;
      if (!isJsonMedia(plain(type))) {
        // The request asks for JSON: where there is JSON too, it is what comes.
        if (types.some((other) => isJsonMedia(plain(other)))) continue;
        reader.warn(
          where,
          "responses",
          `The response is of type "${clip(type)}", not JSON; results are not checked`,
        );
        return undefined;
      }
      const raw = member(content[type], "schema");
      if (raw === undefined) return undefined;
      const read = reader.schemas.inlineRoot(
        reader.schemas.read(raw, `${where}/schema`, "output"),
        "output",
      );
      for (const ref of read.refs) refs.add(ref);
      schemas.push(read.schema);
    }
  }
  if (schemas.length > MAX_SCHEMAS) {
    reader.warn(
      `${path}/responses`,
      "responses",
      `The responses have more than ${MAX_SCHEMAS} schemas; results are not checked`,
    );
    return undefined;
  }
  const different = distinct(schemas);
  const [only] = different;
  // Only responses without a body: there is nothing to describe.
  if (
    only === undefined || different.every((schema) => isNode(schema) && schema["type"] === "null")
  ) {
    return undefined;
  }
  const schema = different.length === 1 ? only : { anyOf: different };
  return reader.schemas.withDefinitions(schema, refs, "output");
}
