/** Makes custom targets, and checks each definition by a table of what each field must be. */

import type { NameRule } from "../select/mod.ts";
import {
  anyValue,
  type Check,
  checkFlag,
  checkFunction,
  checkText,
  checkWord,
  clip,
  createCheck,
  defined,
  fail,
  isListOf,
  isObject,
  oneOf,
  rejectUnknownFields,
  wholeFrom,
} from "../tool/mod.ts";
import type { CallFormat, MediaFormat } from "./call_format.ts";
import { KEYWORD_FORMS, type KeywordRule } from "./form_rules.ts";
import {
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
 * @typeParam Tools The tools of a request; by default a list.
 * @typeParam Message A message of the conversation; by default one answer.
 * @param definition Its rules and functions; an omitted field has a default.
 * @throws {TypeError | RangeError} If something is missing, unknown or wrong.
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
  const { id } = Object(definition);
  const action = typeof id === "string"
    ? `define the target "${clip(id, 100)}"`
    : "define the target";
  // A copy, which cannot change after the check.
  const fields = defined({ ...definition }) as typeof definition;
  checkTarget(action, fields, "");
  return makeTarget(fields);
}

/** The check of a field that may be absent. */
function maybe(check: Check): Check {
  return (action, value, place) => value === undefined ? value : check(action, value, place);
}

const checkObject = createCheck("an object", isObject);

/** The check of an object with these fields and no others. */
function record<Of>(fields: { readonly [Field in keyof Required<Of>]: Check }): Check {
  return (action, value, place) => {
    const object = checkObject(action, value, place);
    rejectUnknownFields(place === "" ? action : `${action}: ${place}`, object, Object.keys(fields));
    for (const [field, check] of Object.entries<Check>(fields)) {
      check(action, object[field], place === "" ? field : `${place}.${field}`);
    }
    return value;
  };
}

function listOf(item: Check): Check {
  return (action, value, place) => {
    const list = createCheck("a list", Array.isArray)(action, value, place);
    for (const [index, one] of list.entries()) item(action, one, `${place}[${index}]`);
    return value;
  };
}

function formsOf(cell: Check, all?: "all"): Check {
  return (action, value, place) => {
    const table = checkObject(action, value, place);
    for (const row of Object.keys(table)) {
      if (Object.hasOwn(KEYWORD_FORMS, row)) continue;
      fail(action, `${place} has no form "${clip(row, 100)}"`);
    }
    for (const row of Object.keys(all === undefined ? table : KEYWORD_FORMS)) {
      cell(action, table[row], `${place}["${row}"]`);
    }
    return value;
  };
}

const checkTexts = createCheck(
  "a list of strings",
  (value) => isListOf(value, (item) => typeof item === "string"),
);
const checkOtherTarget = createCheck(
  "the name of a target, or what defineTarget made",
  (value): value is string | Target => isTargetName(value) || isTarget(value),
);

const nameFields = record<NameRule>({
  also: checkText,
  max: wholeFrom(16),
  separator: checkText,
  letterFirst: maybe(checkFlag),
  case: maybe(oneOf(["upper", "lower"])),
});

const checkNames: Check = (action, value, place) => {
  nameFields(action, value, place);
  const { also, separator } = value as NameRule;
  const illegal = (separator.match(/\W/gu) ?? []).find((character) => !also.includes(character));
  if (illegal !== undefined) {
    fail(action, `${place}.separator has "${illegal}", which ${place}.also does not allow`);
  }
  return value;
};

const checkRule = record<KeywordRule>({
  action: oneOf(["keep", "drop", "transform", "reject"]),
  enforcement: oneOf(["enforced", "advisory", "ignored"]),
  into: maybe(checkText),
  uncertain: maybe(checkFlag),
});

const checkTarget = record<Target>({
  id: checkWord,
  wire: checkFunction,
  calls: record<CallFormat>({
    read: checkFunction,
    write: checkFunction,
    gather: maybe(checkFunction),
    media: maybe(record<MediaFormat>({
      takes: maybe(checkFunction),
      text: checkFunction,
      file: checkFunction,
    })),
    maxCharacters: maybe(wholeFrom(1)),
    stream: maybe(checkFunction),
  }),
  title: maybe(checkText),
  source: maybe(checkText),
  names: maybe(checkNames),
  namespaces: maybe(
    record<NonNullable<Target["namespaces"]>>({ names: checkNames, tools: checkNames }),
  ),
  keys: maybe(checkNames),
  features: maybe(listOf(oneOf(Object.keys(FEATURES)))),
  input: maybe(formsOf(checkRule)),
  output: maybe(record<OutputRule>({
    keywords: formsOf(checkRule, "all"),
    root: oneOf(["any", "object"]),
  })),
  formats: maybe(checkTexts),
  limits: maybe(listOf(record<Limit>({
    name: oneOf(Object.keys(LIMITS)),
    value: wholeFrom(0),
    uncertain: maybe(checkFlag),
  }))),
  strictMode: maybe(checkOtherTarget),
  fallback: maybe(checkOtherTarget),
  assemble: maybe(checkFunction),
  choose: maybe(checkFunction),
  // Set by the targets of plue, which others spread.
  extra: anyValue,
  toolSearch: anyValue,
  draft07: anyValue,
  typed: anyValue,
  combinations: anyValue,
});
