/** Rules as data: for JSON files, and for people who do not program. */

import * as schemas from "../../schema/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, isObject, isText, type JsonSchema, pointerStep } from "../../tool/mod.ts";
import {
  ask,
  type CallFacts,
  deny,
  describeEarlier,
  type Rule,
  type RuleCall,
  type Verdict,
} from "./rule.ts";
import { localTime } from "./sessions.ts";
import { toolMatcher, type ToolPattern } from "./tools.ts";

/** A rule as data. It allows the calls that meet all of its conditions. */
export interface RuleDocument {
  /**
   * Unique in a list of rules. By default its position: `rule 1`. The counts of a rule belong to its
   * name; without a name, to its tools and conditions.
   */
  readonly name?: string | undefined;
  /** The tools of the rule. */
  readonly tool: ToolPattern;
  /**
   * JSON Schemas of arguments, by JSON Pointer. A schema with `maximum` accepts only numbers, one
   * with `pattern` only texts. Keywords without an effect are rejected. An argument meets no
   * condition if it is absent, or if the schema of the tool has properties and lacks this one.
   */
  readonly when?: { readonly [pointer: string]: JsonSchema } | undefined;
  /** The verdict on other calls. @default {"deny"} */
  readonly else?: "deny" | "ask" | undefined;
  /** The maximum number of calls in a session. */
  readonly perSession?: number | undefined;
  /** The maximum number of a principal's calls in a day. */
  readonly perDay?: number | undefined;
  /** The time of day at which calls are allowed, without the end: `["08:00", "18:00"]`. */
  readonly between?: readonly [from: string, to: string] | undefined;
  /** True to allow no call that can send data out of a session with private and untrusted data. */
  readonly noTrifecta?: true | undefined;
  /** The time zone of `between` and `perDay`, such as `Europe/Rome`. @default {"UTC"} */
  readonly timeZone?: string | undefined;
}

const ACTION = "read rules";

const isTime = (value: unknown): value is string =>
  check.isText(value) && /^([01]\d|2[0-3]):[0-5]\d$/.test(value);

const CHECKS = {
  name: check.checkWord,
  tool: check.anyValue as check.Check<ToolPattern>,
  when: check.createCheck("an object", isObject),
  else: check.oneOf(["deny", "ask"] as const),
  perSession: check.wholeFrom(0),
  perDay: check.wholeFrom(0),
  between: check.createCheck(
    'two different times such as ["08:00", "18:00"]',
    (value): value is readonly [string, string] =>
      check.isListOf(value, isTime) && value.length === 2 && value[0] !== value[1],
  ),
  noTrifecta: check.oneOf([true] as const),
  timeZone: check.createCheck(
    'a time zone such as "Europe/Rome"',
    (value): value is string =>
      check.isWord(value) && check.attemptOr(false, () => localTime(0, value).length > 0),
  ),
};

/**
 * Reads rules from data, such as a part of a JSON file: `[{ "tool": "bank:*", "when": { "/euros":
 * { "maximum": 100 } }, "else": "ask" }]`.
 *
 * @returns The rules, for {@linkcode rules}.
 * @throws {TypeError | RangeError | SyntaxError} If a rule is invalid. The message has the JSON Pointer
 * of the problem.
 */
export function readRules(documents: readonly RuleDocument[]): readonly Rule[] {
  if (!Array.isArray(documents)) fail(ACTION, "the rules must be a list");
  const counted = new Set<string>();
  return documents.map((document: RuleDocument, index) => {
    const name = `rule ${index + 1}`;
    if (!isObject(document)) fail(ACTION, `"/${index}" must be an object`);
    check.rejectUnknownFields(`read ${name}`, document, Object.keys(CHECKS));
    const own = document.name === undefined ? counted : undefined;
    return ruleOf({ name, ...document }, [], `/${index}`, own);
  });
}

export type Condition = (call: CallFacts) => string | undefined | Promise<string | undefined>;

/** @param counted The keys of the counts of earlier rules, if the rule has no name of its own. */
export function ruleOf(
  document: RuleDocument,
  others: readonly Condition[],
  at = "",
  counted?: Set<string>,
): Rule {
  const place = (field: string): string => `"${at}${pointerStep(field)}"`;
  const fields = check.readFields(ACTION, document, CHECKS, place);
  const { name = "", tool, when = {}, between, noTrifecta, perSession, perDay, timeZone } = fields;
  if (timeZone !== undefined && (between ?? perDay) === undefined) {
    fail(ACTION, `${place("timeZone")} has no effect without "between" or "perDay"`);
  }
  const conditions = [...others];
  for (const [argument, schema] of Object.entries(when)) {
    const pointer = `${at}/when${pointerStep(argument)}`;
    conditions.push(schemaCondition(argument, schema as JsonSchema, pointer));
  }
  if (between !== undefined) conditions.push(timeCondition(between, timeZone));
  if (noTrifecta === true) conditions.push(theft);
  // A call counts only if it meets the other conditions.
  for (const [per, most] of [["session", perSession], ["day", perDay]] as const) {
    if (most === undefined) continue;
    // Edits of other rules change the position, and a new maximum continues the count.
    let key = name;
    if (counted !== undefined) {
      key = check.canonicalJson([per, tool, when, between, noTrifecta, timeZone]);
      // Equal rules count separately.
      while (counted.has(key)) key += "+";
      counted.add(key);
    }
    conditions.push(async (call) => {
      const scope = per === "day" ? localTime(call.now, timeZone)[0] : call.sessionId;
      const isWithin = await call.count([key, per, scope], most);
      return isWithin ? undefined : `it may run only ${most} times in a ${per}`;
    });
  }
  if (conditions.length === 0) conditions.push(() => "the rule has no conditions");
  const broken = fields.else === "ask" ? ask : deny;
  const decideFrom = (call: CallFacts, first: number): Verdict | Promise<Verdict> => {
    for (let index = first; index < conditions.length; index++) {
      const problem = conditions[index]?.(call);
      if (problem instanceof Promise) {
        return problem.then((late) =>
          late === undefined ? decideFrom(call, index + 1) : broken(late)
        );
      }
      if (problem !== undefined) return broken(problem);
    }
    return "allow";
  };
  return {
    name,
    appliesTo: toolMatcher(ACTION, tool, place("tool")),
    decide: (call) => decideFrom(call as CallFacts, 0),
    usesSession: noTrifecta === true,
  };
}

function theft({ labels, toolLabels, tool, callId }: RuleCall): string | undefined {
  const { reads = [], sends } = toolLabels;
  // A tool may read private data and send it in one call.
  const own = reads.includes("private") ? { tool: tool.id, callId } : undefined;
  const secret = labels.get("private") ?? own;
  const untrusted = labels.get("untrusted");
  if (sends !== true || untrusted === undefined || secret === undefined) return undefined;
  return "It can send data out of a session that has read private data by " +
    `${describeEarlier(secret)}, and untrusted data by ${describeEarlier(untrusted)}`;
}

function timeCondition([from, to]: readonly [string, string], timeZone = "UTC"): Condition {
  return ({ now }) => {
    const [, time = ""] = localTime(now, timeZone);
    const isWithin = from < to ? from <= time && time < to : from <= time || time < to;
    return isWithin ? undefined : `it may run only from ${from} to ${to} (${timeZone})`;
  };
}

function schemaCondition(argument: string, condition: JsonSchema, at: string): Condition {
  const { dialect } = schemas.checkSchema(condition, `the condition "${at}"`);
  if (dialect !== DIALECT) fail(ACTION, `"${at}" must be a schema of draft 2020-12`);
  const problem = `must fit ${JSON.stringify(condition).slice(0, 200)}`;
  const schema = withType(condition, at);
  return argumentCondition(argument, at, problem, (value, { engine }) => {
    // With the length, the steps of the check of a short value need not be estimated.
    const length = isText(value) ? 6 * value.length + 2 : typeof value === "object" ? Infinity : 25;
    return schemas.compileOnce(engine, schema, DIALECT).check(value, length);
  });
}

const checkPointer = check.createCheck(
  'a JSON Pointer such as "/amount"',
  (value): value is string => isText(value) && /^(\/([^~/]|~[01])*)*$/.test(value),
);

/** Creates a condition on an argument, which no call meets without the argument. */
export function argumentCondition(
  argument: string,
  at: string,
  problem: string,
  accepts: (value: unknown, call: CallFacts) => boolean,
): Condition {
  const steps = schemas.pointerSteps(checkPointer(ACTION, argument, `"${at}"`));
  return (call) => {
    const value = argumentAt(call.sharedArguments, call.tool.parameters, steps);
    // The schema of a library may return NaN, which is within all limits.
    const isMet = value !== undefined && !Number.isNaN(value) && accepts(value, call);
    return isMet ? undefined : `its argument "${argument}" ${problem}`;
  };
}

/**
 * Returns the argument at these steps. `undefined` if there is none, or if the schema of the tool lists
 * properties and lacks this one: the tool does not read such an argument.
 */
function argumentAt(args: unknown, parameters: unknown, steps: readonly string[]): unknown {
  let value = args;
  let schema = parameters;
  for (const step of steps) {
    // Only own members: "constructor" is not an argument, and "ab" is not the list ["a", "b"].
    if (!schemas.isStructure(value) || !Object.hasOwn(value, step)) return undefined;
    value = value[step as never];
    const properties = isObject(schema) ? schema["properties"] : undefined;
    schema = undefined;
    if (!isObject(properties)) continue;
    if (!Object.hasOwn(properties, step)) return undefined;
    schema = properties[step];
  }
  return value;
}

/** The draft of conditions, and its keywords that limit values of only one type. */
const DIALECT = "2020-12";
const TYPES: { readonly [type: string]: RegExp } = {
  number: /^(exclusive)?(maximum|minimum)$|^multipleOf$/i,
  string: /Length$|^(pattern|format)$/,
  array: /(items|contains)$/i,
  object: /properties$|^required$|^depend|^propertyNames$/i,
};

/** Adds the type that the keywords imply: the text "5" must not satisfy `maximum`. */
function withType(condition: JsonSchema, at: string): JsonSchema {
  if (!isObject(condition)) return condition;
  const [type, ...others] = Object.keys(TYPES).filter((type) =>
    Object.keys(condition).some((keyword) => TYPES[type]?.test(keyword))
  );
  const schema = type === undefined || others.length > 0 ? condition : { type, ...condition };
  checkTyped(schema, at);
  return schema;
}

/**
 * Requires a type of a value and its parts. The schemas in `allOf`, `not` and so on may lack it. Rejects
 * keywords without an effect: with `max` instead of `maximum`, all numbers would pass.
 */
function checkTyped(schema: check.JsonSchemaObject, at: string, isPart = true): void {
  const { type: declared = Object.keys(TYPES), format } = schema;
  const types = [declared].flat().map((type) => type === "integer" ? "number" : type);
  const idle = Object.keys(schema).find((keyword) =>
    !schemas.KEYWORDS[DIALECT].has(keyword) ||
    Object.entries(TYPES).some(([type, of]) => of.test(keyword) && !types.includes(type)) ||
    keyword === "format" && !schemas.ASSERTED_FORMATS.has(format as string)
  );
  if (idle !== undefined) fail(ACTION, `"${idle}" in "${at}" has no effect`);
  const isTyped = ["type", "const", "enum"].some((keyword) => schema[keyword] !== undefined);
  if (isPart && !isTyped || schema["$ref"] !== undefined) {
    fail(ACTION, `"${at}", its items and its properties need a "type", and no "$ref"`);
  }
  // In a negation, a type would accept more.
  const { inPlace, below } = schemas.partsOf({ ...schema, not: undefined, if: undefined });
  for (const { child } of below) checkTyped(child, at);
  for (const one of inPlace.filter(isObject)) checkTyped(one, at, false);
}
