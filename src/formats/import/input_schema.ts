/**
 * The schemas of one tool in a list: what is missing, and what a root must be.
 *
 * @module
 */

import { clip } from "../../schema/mod.ts";
import { copyJson, type JsonSchema, type JsonSchemaObject } from "../../tool/mod.ts";
import { isMembers } from "./fields.ts";
import type { Draft } from "./draft.ts";
import type { Intake } from "./intake.ts";
import { readNullable } from "./nullable_flag.ts";

/** What providers take a function without parameters for. */
const NO_PARAMETERS: JsonSchemaObject = copyJson(
  { type: "object", properties: {}, additionalProperties: false },
  "the empty parameters",
);

/**
 * The schema of the arguments, with an object at the root.
 *
 * @param root What to do about a root without a type: MCP wants one, providers take it for `object`.
 * @returns The schema, or `undefined` if the tool was rejected.
 */
export function readParameters(
  intake: Intake,
  draft: Draft,
  raw: unknown,
  path: string,
  root: "typed" | "any" = "any",
): JsonSchemaObject | undefined {
  const name = clip(draft.sourceName);
  if (raw === undefined || raw === null) {
    if (root === "any") return NO_PARAMETERS;
    intake.reject(
      draft.sourceName,
      path,
      "parameters",
      `Cannot import "${name}": it must have a schema of its arguments`,
    );
    return undefined;
  }
  if (isMembers(raw)) {
    if (raw["type"] === "object") {
      return root === "any" ? withNull(intake, draft, raw, path) : raw;
    }
    if (root === "any" && raw["type"] === undefined) {
      intake.warn(
        draft,
        path,
        "type",
        `The schema of the arguments of "${name}" has no "type"; it is taken for "object"`,
      );
      return withNull(intake, draft, { type: "object", ...raw }, path);
    }
  }
  intake.reject(
    draft.sourceName,
    path,
    "parameters",
    `Cannot import "${name}": the schema of its arguments must be an object with "type": "object"`,
  );
  return undefined;
}

/** Providers are sent schemas that were written for OpenAPI 3.0; MCP's are JSON Schema. */
function withNull<Schema extends JsonSchema>(
  intake: Intake,
  draft: Draft,
  schema: Schema,
  path: string,
): Schema {
  const read = readNullable(schema);
  if (read === schema) return schema;
  intake.warn(
    draft,
    path,
    "nullable",
    `"nullable" in a schema of "${clip(draft.sourceName)}" is read as accepting null`,
  );
  // The root keeps its kind.
  return read as Schema;
}

/** The schema of the results; what is no schema is left out, with a warning. */
export function readReturns(
  intake: Intake,
  draft: Draft,
  raw: unknown,
  path: string,
): JsonSchema | undefined {
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw === "boolean" || isMembers(raw)) return raw;
  intake.warn(
    draft,
    path,
    "returns",
    `The result schema of "${clip(draft.sourceName)}" is no schema; results are not checked`,
  );
  return undefined;
}
