/**
 * The fields of a definition: what each must be, and what is kept of it. Data is copied and frozen.
 *
 * @module
 */

import {
  type Check,
  checkFlag,
  checkFunction,
  checkText,
  checkWord,
  isListOf,
  isObject,
  isWord,
  MAX_TIMEOUT_MS,
  must,
  refuse,
} from "./check.ts";
import { copyJson } from "./json_copy.ts";
import type { JsonSchema } from "./json.ts";
import { checkRisk } from "./risk_level.ts";
import { isStandardSchema, type StandardSchema } from "./standard_schema.ts";
import { describeThrown } from "./text.ts";
import type { ToolAnnotations } from "./tool_annotations.ts";
import type { ToolDefinition } from "./tool_definition.ts";
import type { Tool, ToolExample, ToolIcon } from "./tool.ts";

/** A schema of a definition, and the library schema that it came from. */
interface SchemaPair {
  readonly json: JsonSchema;
  readonly standard: StandardSchema | undefined;
}

// https://semver.org, without its unbounded groups.
const SEMVER = /^\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$/;
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

const keep: Check = (_action, value) => value;

/** A name, and a list of names, each once. */
const checkNames: Check<readonly string[]> = (action, value, place) =>
  Object.freeze([...new Set(checkNameList(action, value, place))]);
const checkNameList = must(
  "a list of strings that are not empty",
  (value): value is readonly string[] => isListOf(value, isWord),
);

const checkSchemaForm = must(
  "a JSON Schema or a Standard Schema",
  (value): value is JsonSchema => typeof value === "boolean" || isObject(value),
);

/** Must say something: a blank one is none. */
export const checkDescription: Check<string> = must(
  "a string that says what it does",
  (value): value is string => typeof value === "string" && value.trim() !== "",
);

/** Every field that a definition may have; `satisfies` keeps the table complete. */
export const DEFINITION_FIELDS = {
  // These make the id, and are checked before anything else.
  name: keep,
  namespace: keep,
  title: checkText,
  // Must be there, so it is checked apart.
  description: keep as Check,
  version: must(
    'a semantic version such as "1.2.0"',
    (value): value is string => typeof value === "string" && SEMVER.test(value),
  ),
  parameters: schemaOf("input"),
  returns: schemaOf("output"),
  category: checkWord,
  risk: checkRisk,
  tags: checkNames,
  roles: checkNames,
  scopes: checkNames,
  requiresTransaction: checkFlag,
  requiresApproval: checkFlag,
  isAvailable: must(
    "true, false or a function",
    (value): value is Tool["isAvailable"] =>
      typeof value === "boolean" || typeof value === "function",
  ),
  annotations: dataOf(must(
    `an object in which ${HINTS.join(", ")} are true or false`,
    (value): value is ToolAnnotations =>
      isObject(value) &&
      HINTS.every((hint) => ["boolean", "undefined"].includes(typeof value[hint])),
  )),
  examples: dataOf(must(
    'a list of objects, each with "input"',
    (value): value is readonly ToolExample[] =>
      isListOf(
        value,
        (item): item is ToolExample => isObject(item) && Object.hasOwn(item, "input"),
      ),
  )),
  icons: dataOf(must(
    'a list of objects, each with a "src" string',
    (value): value is readonly ToolIcon[] =>
      isListOf(
        value,
        (item): item is ToolIcon => isObject(item) && typeof item["src"] === "string",
      ),
  )),
  deprecated: must(
    "true, false or a sentence",
    (value): value is boolean | string => typeof value === "boolean" || typeof value === "string",
  ),
  timeoutMs: must(
    `a number of milliseconds from 1 to ${MAX_TIMEOUT_MS}`,
    (value): value is number => typeof value === "number" && value >= 1 && value <= MAX_TIMEOUT_MS,
  ),
  idempotent: checkFlag,
  config: schemaOf("input"),
  meta: dataOf(must("an object", isObject)),
  init: checkFunction,
  dispose: checkFunction,
  validate: checkFunction,
  execute: checkFunction,
} satisfies { readonly [Field in keyof Required<ToolDefinition>]: Check };

/** Fields that tools have and definitions do not: another copy of plue may hand its tools over. */
export const CARRIED_FIELDS = {
  id: keep,
  parametersStandard: keepStandard,
  returnsStandard: keepStandard,
};

/** Data is copied, so that nobody can change it later. */
function dataOf<T>(check: Check<T>): Check<T> {
  return (action, value, place) => copyFor(action, check(action, value, place), place);
}

/** A schema; of a library's schema the side that callers see: what goes in, or what comes out. */
function schemaOf(side: "input" | "output"): Check<SchemaPair> {
  return (action, value, place) => {
    const standard = keepStandard(action, value);
    const json = standard === undefined
      ? checkSchemaForm(action, value, place)
      : standardJson(action, standard, place, side);
    return { json: copyFor(action, json, place), standard };
  };
}

function keepStandard(_action: string, value: unknown): StandardSchema | undefined {
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
