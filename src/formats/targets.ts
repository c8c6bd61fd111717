/** The targets of plue, with their names and types, and custom targets. */

import type { NameRule } from "../select/mod.ts";
import * as check from "../tool/mod.ts";
import { clip, defined, fail, isObject } from "../tool/mod.ts";
import type { CallFormat, MediaFormat } from "./call_format.ts";
import { KEYWORD_FORMS, type KeywordRule } from "./form_rules.ts";
import { type KnownTarget, TARGETS } from "./providers/index.ts";
import {
  checkTarget,
  FEATURES,
  isTarget,
  type Limit,
  LIMITS,
  makeTarget,
  type OutputRule,
  type Target,
  type TargetDefinition,
} from "./target.ts";

/** Other names for targets. An alias may later be the name of a newer version. */
export const TARGET_ALIASES = {
  "mcp": "mcp@2026-07-28",
  "openai": "openai.chat",
  "openai.strict": "openai.chat.strict",
  "openapi": "openapi@3.1",
} as const;

/** The id of a target, which is one API of a provider, in one mode and version. */
export type TargetId = KnownTarget["id"];

/** The name of a target: its id, or an alias. */
export type TargetName = TargetId | keyof typeof TARGET_ALIASES;

type ResolveTarget<Name extends TargetName> = Name extends keyof typeof TARGET_ALIASES
  ? (typeof TARGET_ALIASES)[Name]
  : Name;

/** The name of a target, or a target that `defineTarget` returned. */
export type TargetLike = TargetName | Target;

/** The type of the record of a target, which is given by its name or as a record. */
export type TargetOf<Like extends TargetLike> = Like extends TargetName
  ? Extract<KnownTarget, { readonly id: ResolveTarget<Like> }>
  : Like extends Target ? Like
  : never;

/** The type of the tools of a request to a target. */
export type ToolsOf<Like extends TargetLike> = ReturnType<TargetOf<Like>["assemble"]>;

/** The type of the settings in a request to a target. */
export type RequestOf<Like extends TargetLike> = ReturnType<
  NonNullable<TargetOf<Like>["choose"]>
>;

/** The type of a target's answer to one call. */
export type AnswerOf<Like extends TargetLike> = ReturnType<TargetOf<Like>["calls"]["write"]>;

/** The type of a target's messages with answers. */
export type MessageOf<Like extends TargetLike> = ReturnType<
  NonNullable<TargetOf<Like>["calls"]["gather"]>
>[number];

/** Returns the targets of plue, in the order of their ids. */
export function listTargets(): readonly Target<TargetId>[] {
  return TARGETS as readonly Target<TargetId>[];
}

const BY_ID: ReadonlyMap<string, Target> = new Map(TARGETS.map((target) => [target.id, target]));

function targetNamed(name: unknown): Target | undefined {
  return typeof name === "string" ? BY_ID.get(Object(TARGET_ALIASES)[name] ?? name) : undefined;
}

/** Returns true if `value` is the id or an alias of a target. */
export function isTargetName(value: unknown): value is TargetName {
  return targetNamed(value) !== undefined;
}

/**
 * Returns the record of a target: its rules and functions. `defineTarget` can extend the record.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { targetOf } from "@plue/tools/formats";
 *
 * assert.equal(targetOf("openai").id, "openai.chat");
 * ```
 *
 * @param target The target's name. A custom target is returned unchanged.
 * @throws {RangeError} If there is no such target.
 */
export function targetOf<Like extends TargetLike>(target: Like): TargetOf<Like> {
  const names = () => [...BY_ID.keys(), ...Object.keys(TARGET_ALIASES)].map((name) => `"${name}"`);
  // The cast is safe: the map has the record of each name, and the types follow from the records.
  const found = targetNamed(target) ?? checkTarget(target, () => `one of ${names().join(", ")}`);
  return found as TargetOf<Like>;
}

/** `targetOf` without its types: the compiler takes seconds to compare them with the types of a call. */
export const recordOf: (target: TargetLike) => Target = targetOf;

// Custom targets

/**
 * Defines a target for another provider, or a variant of a target. Functions that accept the name
 * of a target also accept the returned target.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { defineTarget, exportTools, targetOf } from "@plue/tools/formats";
 *
 * const openai = targetOf("openai.chat");
 * const names = { ...openai.names, also: "-.", separator: "." };
 * const dotted = defineTarget({ ...openai, id: "dotted", names });
 *
 * const status = defineTool({ namespace: "chain", name: "status", description: "Tells its state." });
 * assert.equal(exportTools([status], dotted).tools[0]?.function.name, "chain.status");
 * ```
 *
 * @typeParam Tools The tools of a request. By default, a list of `Wire`.
 * @typeParam Message A message of the conversation. By default, the answer to one call.
 * @param definition The rules and functions of the target. An omitted field has a default.
 * @throws {TypeError | RangeError} If a field is missing, unknown or invalid.
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
  // The fields are copied, because the definition could change after the check.
  const fields = defined({ ...definition }) as typeof definition;
  // The checks are created here, so that bundles without this function do not contain them.
  targetCheck()(action, fields, "");
  return makeTarget(fields);
}

const checkObject = /* @__PURE__ */ check.createCheck("an object", isObject);

/** Creates the check of an object with these fields and no other fields. */
function record<Of>(
  fields: { readonly [Field in keyof Required<Of>]: check.Check },
  required: readonly (keyof Of)[] = Object.keys(fields) as (keyof Of)[],
): check.Check {
  return (action, value, place) => {
    const object = checkObject(action, value, place);
    check.rejectUnknownFields(
      place === "" ? action : `${action}: ${place}`,
      object,
      Object.keys(fields),
    );
    for (const [field, checkField] of Object.entries<check.Check>(fields)) {
      if (object[field] === undefined && !required.includes(field as keyof Of)) continue;
      checkField(action, object[field], place === "" ? field : `${place}.${field}`);
    }
    return value;
  };
}

function listOf(item: check.Check): check.Check {
  return (action, value, place) => {
    const list = check.createCheck("a list", Array.isArray)(action, value, place);
    for (const [index, one] of list.entries()) item(action, one, `${place}[${index}]`);
    return value;
  };
}

function formsOf(cell: check.Check, all?: "all"): check.Check {
  return (action, value, place) => {
    const table = checkObject(action, value, place);
    for (const row of Object.keys(table)) {
      if (Object.hasOwn(KEYWORD_FORMS, row)) continue;
      fail(action, `${place}: "${clip(row, 100)}" is not a form`);
    }
    for (const row of Object.keys(all === undefined ? table : KEYWORD_FORMS)) {
      cell(action, table[row], `${place}["${row}"]`);
    }
    return value;
  };
}

const checkNames: check.Check = (action, value, place) => {
  record<NameRule>({
    also: check.checkText,
    max: check.wholeFrom(16),
    separator: check.checkText,
    letterFirst: check.checkFlag,
  }, ["also", "max", "separator"])(action, value, place);
  const { also, separator } = value as NameRule;
  const illegal = (separator.match(/\W/gu) ?? []).find((character) => !also.includes(character));
  if (illegal !== undefined) {
    fail(action, `${place}.separator has "${illegal}", which ${place}.also does not allow`);
  }
  return value;
};

function targetCheck(): check.Check {
  const checkRule = record<KeywordRule>({
    action: check.oneOf(["keep", "drop", "transform", "reject"]),
    enforcement: check.oneOf(["enforced", "advisory", "ignored"]),
    into: check.checkText,
    uncertain: check.checkFlag,
  }, ["action", "enforcement"]);

  return record<Target>({
    id: check.checkWord,
    wire: check.checkFunction,
    calls: record<CallFormat>({
      read: check.checkFunction,
      write: check.checkFunction,
      gather: check.checkFunction,
      media: record<MediaFormat>({
        takes: check.checkFunction,
        text: check.checkFunction,
        file: check.checkFunction,
      }, ["text", "file"]),
      maxCharacters: check.wholeFrom(1),
      stream: check.checkFunction,
    }, ["read", "write"]),
    title: check.checkText,
    source: check.checkText,
    names: checkNames,
    namespaces: record<NonNullable<Target["namespaces"]>>({ names: checkNames, tools: checkNames }),
    keys: checkNames,
    features: listOf(check.oneOf(Object.keys(FEATURES))),
    input: formsOf(checkRule),
    output: record<OutputRule>({
      keywords: formsOf(checkRule, "all"),
      root: check.oneOf(["any", "object"]),
    }),
    formats: check.checkTexts,
    limits: listOf(record<Limit>({
      name: check.oneOf(Object.keys(LIMITS)),
      value: check.wholeFrom(0),
      uncertain: check.checkFlag,
    }, ["name", "value"])),
    strictMode: check.checkFunction,
    fallback: check.createCheck("a target's record, or made by defineTarget", isTarget),
    assemble: check.checkFunction,
    choose: check.checkFunction,
    // Definitions may spread targets of plue, which have these fields.
    extra: check.anyValue,
    toolSearch: check.anyValue,
    draft07: check.anyValue,
    typed: check.anyValue,
    combinations: check.anyValue,
  }, ["id", "wire", "calls"]);
}
