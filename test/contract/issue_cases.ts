/** Invalid values, and the exact messages for the model. Every engine returns the same messages. */

import type { JsonSchema } from "../../src/tool/mod.ts";
import data from "./issue_cases.json" with { type: "json" };

/** A schema, a value, and the messages about it. */
export interface IssueCase {
  readonly what: string;
  readonly schema: JsonSchema;
  readonly value: unknown;
  readonly messages: readonly string[];
}

const SCHEMAS: Readonly<Record<string, JsonSchema>> = data.schemas as never;

/** The cases of the data file, whose schemas may be names of shared schemas. */
export const ISSUE_CASES: readonly IssueCase[] = data.cases.map(({ schema, ...rest }) => ({
  ...rest,
  schema: typeof schema === "string" ? SCHEMAS[schema] as JsonSchema : schema as JsonSchema,
}));
