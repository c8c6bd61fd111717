/**
 * Checks of a definition's fields. What is kept of data and schemas is a frozen copy, so that nobody
 * can change it later.
 *
 * @module
 */

import { type Check, isListOf, isObject, isWord, MAX_TIMEOUT_MS, must, refuse } from "./check.ts";
import { copyJson } from "./json_copy.ts";
import type { JsonSchema } from "./json.ts";
import { isStandardSchema, type StandardSchema } from "./standard_schema.ts";
import { describeThrown } from "./text.ts";
import type { ToolAnnotations } from "./tool_annotations.ts";
import type { Tool, ToolExample, ToolIcon } from "./tool.ts";

/** A schema of a definition, and the library schema that it came from. */
export interface SchemaPair {
  readonly json: JsonSchema;
  readonly standard: StandardSchema | undefined;
}

// https://semver.org, without its unbounded groups.
const SEMVER = /^\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$/;
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

const checkNameList = must(
  "a list of strings that are not empty",
  (value): value is readonly string[] => isListOf(value, isWord),
);

/** Checks a list of names, and keeps each once. */
export const checkNames: Check<readonly string[]> = (action, value, place) =>
  Object.freeze([...new Set(checkNameList(action, value, place))]);

export const checkDescription: Check<string> = must(
  "a string that says what it does",
  (value): value is string => typeof value === "string" && value.trim() !== "",
);

export const checkVersion: Check<string> = must(
  'a semantic version such as "1.2.0"',
  (value): value is string => typeof value === "string" && SEMVER.test(value),
);

export const checkAvailability: Check<Tool["isAvailable"]> = must(
  "true, false or a function",
  (value): value is Tool["isAvailable"] =>
    typeof value === "boolean" || typeof value === "function",
);

export const checkDeprecated: Check<boolean | string> = must(
  "true, false or a sentence",
  (value): value is boolean | string => typeof value === "boolean" || typeof value === "string",
);

export const checkTimeout: Check<number> = must(
  `a number of milliseconds from 1 to ${MAX_TIMEOUT_MS}`,
  (value): value is number => typeof value === "number" && value >= 1 && value <= MAX_TIMEOUT_MS,
);

export const checkMeta: Check<Record<string, unknown>> = dataOf("an object", isObject);

export const checkAnnotations: Check<ToolAnnotations> = dataOf(
  `an object in which ${HINTS.join(", ")} are true or false`,
  (value): value is ToolAnnotations =>
    isObject(value) &&
    HINTS.every((hint) => ["boolean", "undefined"].includes(typeof value[hint])),
);

export const checkExamples: Check<readonly ToolExample[]> = dataOf(
  'a list of objects, each with "input"',
  (value) =>
    isListOf(value, (item): item is ToolExample => isObject(item) && Object.hasOwn(item, "input")),
);

export const checkIcons: Check<readonly ToolIcon[]> = dataOf(
  'a list of objects, each with a "src" string',
  (value) =>
    isListOf(value, (item): item is ToolIcon => isObject(item) && typeof item["src"] === "string"),
);

function dataOf<T>(wanted: string, accepts: (value: unknown) => value is T): Check<T> {
  const check = must(wanted, accepts);
  return (action, value, place) => copyFor(action, check(action, value, place), place);
}

const checkSchemaForm = must(
  "a JSON Schema or a Standard Schema",
  (value): value is JsonSchema => typeof value === "boolean" || isObject(value),
);

/** A schema; of a library's schema the side that callers see: what goes in, or what comes out. */
export function schemaOf(side: "input" | "output"): Check<SchemaPair> {
  return (action, value, place) => {
    const standard = keepStandard(action, value);
    const json = standard === undefined
      ? checkSchemaForm(action, value, place)
      : standardJson(action, standard, place, side);
    return { json: copyFor(action, json, place), standard };
  };
}

/** A library's schema, if it is one. */
export function keepStandard(_action: string, value: unknown): StandardSchema | undefined {
  return isStandardSchema(value) ? value : undefined;
}

function standardJson(
  action: string,
  schema: StandardSchema,
  place: string,
  side: "input" | "output",
): JsonSchema {
  const { vendor, jsonSchema } = schema["~standard"];
  if (jsonSchema === undefined) {
    refuse(
      action,
      `${place} schema, made with ${vendor}, cannot give its JSON Schema: it needs ` +
        '"~standard".jsonSchema (Zod 4.2, ArkType 2.1.28, Valibot through toStandardJsonSchema)',
    );
  }
  try {
    return jsonSchema[side]({ target: "draft-2020-12" });
  } catch (cause) {
    refuse(action, `${vendor} cannot give the JSON Schema of ${place}: ${describeThrown(cause)}`);
  }
}

function copyFor<T>(action: string, value: T, place: string): T {
  try {
    return copyJson(value, place);
  } catch (cause) {
    refuse(action, describeThrown(cause).replace("Cannot copy ", ""));
  }
}
