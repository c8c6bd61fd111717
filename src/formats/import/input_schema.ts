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
    if (raw["type"] === "object") return raw;
    if (root === "any" && raw["type"] === undefined) {
      intake.warn(
        draft,
        path,
        "type",
        `The schema of the arguments of "${name}" has no "type"; it is taken for "object"`,
      );
      return { type: "object", ...raw };
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
