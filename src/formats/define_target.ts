/**
 * Makes custom targets, and checks each definition by a table of what each field must be.
 *
 * @module
 */

import type { NameRule } from "../select/mod.ts";
import {
  type Check,
  checkFlag,
  checkFunction,
  checkText,
  checkWord,
  clip,
  isListOf,
  isObject,
  must,
  readFields,
  refuse,
  refuseOthers,
} from "../tool/mod.ts";
import type { CallFormat, MediaFormat } from "./call_format.ts";
import { KEYWORD_FORMS, type KeywordRule } from "./form_rules.ts";
import {
  type CombinationRule,
  type ExtraRule,
  FEATURES,
  type Limit,
  LIMITS,
  makeTarget,
  type OutputRule,
  type Target,
  type TargetDefinition,
} from "./target.ts";
import { isTarget, isTargetName } from "./targets.ts";

/**
 * Defines a target for a provider that plue does not have, or a variant of a target. Functions that
 * take the name of a target take the returned target, too.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { decodeCalls, defineTarget, exportTools, targetOf } from "@plue/tools/formats";
 *
 * const openai = targetOf("openai.chat");
 * const shout = defineTarget({
 *   ...openai,
 *   id: "shout",
 *   names: { ...openai.names, case: "upper" },
 * });
 *
 * const weather = defineTool({ name: "getWeather", description: "Tells the weather." });
 * const { tools, names } = exportTools([weather], shout);
 * assert.equal(tools[0]?.function.name, "GETWEATHER");
 *
 * const response = { tool_calls: [{ id: "1", function: { name: "GETWEATHER", arguments: "{}" } }] };
 * assert.equal(decodeCalls(shout, response, names)[0]?.name, "getWeather");
 * ```
 *
 * @typeParam Id Its name.
 * @typeParam Wire One tool in its shape.
 * @typeParam Tools The tools of a request; by default a list.
 * @typeParam Part The answer to one call.
 * @typeParam Message A message of the conversation; by default one answer.
 * @param definition Its rules and functions; an omitted field has a default.
 * @returns The target, frozen.
 * @throws {TypeError} If something is missing, unknown or wrong.
 */
export function defineTarget<
  const Id extends string,
  Wire,
  Part,
  Tools = Wire[],
  Message = Part,
>(
  definition: TargetDefinition<Id, Wire, Tools, Part, Message>,
): Target<Id, Wire, Tools, Part, Message> {
  const fields: { readonly [field: string]: unknown } = Object(definition);
  const { id } = fields;
  const action = typeof id === "string"
    ? `define the target "${clip(id, 100)}"`
    : "define the target";
  // Only checked fields are left, which match the type.
  return makeTarget(
    readRecord(action, fields, TARGET, "") as unknown as typeof definition,
  );
}

/** The checks of an object's fields. The check of an optional field is in a list. */
type Fields<Of> = {
  readonly [Field in keyof Required<Of>]: Check | readonly [mayBeAbsent: Check];
};

function readRecord<Of>(
  action: string,
  object: { readonly [field: string]: unknown },
  fields: Fields<Of>,
  place: string,
): Record<string, unknown> {
  const of = place === "" ? action : `${action}: ${place}`;
  refuseOthers(of, object, Object.keys(fields));
  const checks: Record<string, Check> = {};
  for (const [field, check] of Object.entries<Check | readonly [Check]>(fields)) {
    const at = place === "" ? field : `${place}.${field}`;
    if (typeof check !== "function") [checks[field]] = check;
    else (checks[field] = check)(action, object[field], at);
  }
  return readFields(action, object, checks, (field) => place === "" ? field : `${place}.${field}`);
}

const checkObject = must("an object", isObject);

/** The check of an object with these fields. It returns the object itself. */
function record<Of>(fields: Fields<Of>): Check {
  return (action, value, place) => {
    readRecord(action, checkObject(action, value, place), fields, place);
    return value;
  };
}

function listOf(item: Check): Check {
  return (action, value, place) => {
    const list = must("a list", Array.isArray)(action, value, place);
    for (const [index, one] of list.entries()) item(action, one, `${place}[${index}]`);
    return value;
  };
}

function tableOf(rows: object, what: string, cell: Check, all?: "all"): Check {
  return (action, value, place) => {
    const table = checkObject(action, value, place);
    for (const row of Object.keys(table)) {
      if (!Object.hasOwn(rows, row)) refuse(action, `${place} has no ${what} "${clip(row, 100)}"`);
    }
    for (const row of Object.keys(all === undefined ? table : rows)) {
      cell(action, table[row], `${place}["${row}"]`);
    }
    return value;
  };
}

function oneOf(...texts: readonly string[]): Check {
  const quoted = texts.map((text) => `"${text}"`);
  const wanted = `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
  return must(wanted, (value): value is string => texts.includes(value as string));
}

function number(wanted: string, least: number): Check {
  return must(
    wanted,
    (value): value is number => Number.isInteger(value) && (value as number) >= least,
  );
}

const checkTexts = must(
  "a list of strings",
  (value) => isListOf(value, (item) => typeof item === "string"),
);
const checkTrue = must("true, or absent", (value): value is true => value === true);
const checkOtherTarget = must(
  "the name of a target, or what defineTarget made",
  (value): value is string | Target => isTargetName(value) || isTarget(value),
);

const nameFields = record<NameRule>({
  also: checkText,
  max: number("a whole number of 16 or more", 16),
  separator: checkText,
  letterFirst: [checkFlag],
  case: [oneOf("upper", "lower")],
});

const checkNames: Check = (action, value, place) => {
  nameFields(action, value, place);
  const { also, separator } = value as NameRule;
  const illegal = (separator.match(/\W/gu) ?? []).find((character) => !also.includes(character));
  if (illegal !== undefined) {
    refuse(action, `${place}.separator has "${illegal}", which ${place}.also does not allow`);
  }
  return value;
};

const checkRule = record<KeywordRule>({
  action: oneOf("keep", "drop", "transform", "reject"),
  enforcement: oneOf("enforced", "advisory", "ignored"),
  into: [checkText],
  uncertain: [checkTrue],
});

const checkExtra = record<ExtraRule>({
  source: checkWord,
  surface: [checkWord],
  without: [checkTexts],
});

const checkLimit = record<Limit>({
  name: (action, value, place) =>
    typeof value === "string" && Object.hasOwn(LIMITS, value)
      ? value
      : refuse(action, `${place} must be one of ${Object.keys(LIMITS).join(", ")}`),
  value: number("a whole number of 0 or more", 0),
  uncertain: [checkTrue],
});

/** The check of each field of a definition. The check of an optional field is in a list. */
const TARGET: Fields<Target> = {
  id: checkWord,
  wire: checkFunction,
  calls: record<CallFormat>({
    read: checkFunction,
    write: checkFunction,
    gather: [checkFunction],
    media: [record<MediaFormat>({
      takes: [checkFunction],
      text: checkFunction,
      file: checkFunction,
    })],
    maxCharacters: [number("a whole number of 1 or more", 1)],
    stream: [checkFunction],
  }),
  title: [checkText],
  source: [checkText],
  names: [checkNames],
  namespaces: [
    record<NonNullable<Target["namespaces"]>>({ names: checkNames, tools: checkNames }),
  ],
  keys: [checkNames],
  features: [tableOf(FEATURES, "field", oneOf("native", "described", "none"))],
  extra: [(action, value, place) => value === "all" ? value : checkExtra(action, value, place)],
  input: [tableOf(KEYWORD_FORMS, "form", checkRule)],
  output: [
    record<OutputRule>({
      keywords: tableOf(KEYWORD_FORMS, "form", checkRule, "all"),
      root: oneOf("any", "object"),
    }),
  ],
  formats: [checkTexts],
  toolSearch: [oneOf("references", "definitions")],
  draft07: [checkTrue],
  typed: [checkTrue],
  limits: [listOf(checkLimit)],
  combinations: [
    listOf(record<CombinationRule>({
      name: checkWord,
      message: checkWord,
      effect: oneOf("warn", "not strict"),
      applies: checkFunction,
    })),
  ],
  strictMode: [checkOtherTarget],
  fallback: [checkOtherTarget],
  assemble: [checkFunction],
  choose: [checkFunction],
};
