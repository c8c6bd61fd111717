/** The pinned definition of a tool, and the comparison of two definitions. */

import { type JsonRecord, mapSchema, member, objectIn } from "../../formats/provider_kit.ts";
import type { PinChange, PinGrade } from "../../formats/mod.ts";
import {
  canonicalJson,
  defined,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  pointerStep,
  type Tool,
} from "../../tool/mod.ts";

/** Returns the properties that the source has set, and not the operator. Sets are sorted. */
export function definitionOf(tool: Tool): JsonRecord {
  const { title, description, parameters, returns, annotations, deprecated, meta } = tool;
  const fields = {
    name: objectIn(meta, "provider")?.["name"] ?? tool.name,
    title,
    description,
    parameters: inOrder(parameters),
    returns: returns === undefined ? undefined : inOrder(returns),
    annotations,
    icons: sorted(tool.icons),
    examples: sorted(tool.examples),
    tags: sorted(tool.tags),
    deprecated,
    meta,
  };
  return defined(fields);
}

const SETS = ["required", "enum", "type", "anyOf", "oneOf", "allOf", "examples"] as const;

function inOrder(schema: JsonSchema): JsonSchema {
  return mapSchema(undefined, schema, {
    leave: (node) => {
      const changed: Record<string, unknown> = {};
      for (const keyword of SETS) {
        const list = node[keyword];
        if (Array.isArray(list)) changed[keyword] = sorted(list);
      }
      const dependent = node["dependentRequired"];
      if (isObject(dependent)) {
        const lists = Object.entries(dependent)
          .map(([name, list]) => [name, Array.isArray(list) ? sorted(list) : list]);
        changed["dependentRequired"] = Object.fromEntries(lists);
      }
      return { ...node, ...changed };
    },
  });
}

function sorted(list: readonly unknown[]): readonly unknown[] {
  return list.map((item) => [canonicalJson(item), item] as const)
    .sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0)
    .map(([, item]) => item);
}

const GRADES: readonly PinGrade[] = ["wording", "narrowed", "widened", "risk_raised"];

export function gravest(grades: readonly PinGrade[]): PinGrade {
  return GRADES.findLast((grade) => grades.includes(grade)) ?? "wording";
}

/** A field with more changes is one change, because each listed change must be complete. */
const MAX_PARTS = 100;

type Add = (path: string, grade: PinGrade) => void;

/** Returns the differences of two definitions, gravest first. An unclear effect is `widened`. */
export function differences(before: unknown, after: unknown): readonly PinChange[] {
  return changedMembers(before, after).flatMap(([field, old, now]) => {
    const path = pointerStep(field);
    const parts: PinChange[] = [];
    const add: Add = (path, grade) => void parts.push({ path, grade });
    if (field === "parameters" || field === "returns") compareSchemas(old, now, path, add);
    else if (field === "annotations") compareHints(old, now, path, add);
    else if (field === "meta") compareMeta(old, now, path, add);
    else add(path, field === "tags" || field === "name" ? "widened" : "wording");
    const whole = { path, grade: gravest(parts.map(({ grade }) => grade)) };
    return parts.length > MAX_PARTS ? [whole] : parts;
  }).sort((a, b) => GRADES.indexOf(b.grade) - GRADES.indexOf(a.grade));
}

function changedMembers(
  before: unknown,
  after: unknown,
): readonly (readonly [name: string, before: unknown, after: unknown])[] {
  const old = isObject(before) ? before : {};
  const now = isObject(after) ? after : {};
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .map((name) => [name, member(old, name), member(now, name)] as const)
    .filter(([, a, b]) => !same(a, b));
}

function same(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

/** The hints of a tool with the highest risk. */
const RISKY: ReadonlyMap<string, boolean> = new Map([
  ["readOnlyHint", false],
  ["destructiveHint", true],
  ["idempotentHint", false],
  ["openWorldHint", true],
]);

/** Compares hints. With a more lenient hint, clients may call the tool without approval. */
function compareHints(before: unknown, after: unknown, path: string, add: Add): void {
  for (const [hint, , now] of changedMembers(before, after)) {
    add(path + pointerStep(hint), RISKY.get(hint) === now ? "risk_raised" : "widened");
  }
}

/** The grades of changed provider fields. `operation` is the destination of calls. */
const PROVIDER_GRADES: ReadonlyMap<string, PinGrade> = new Map([
  ["operation", "risk_raised"],
  ["annotations", "wording"],
]);

function compareMeta(before: unknown, after: unknown, path: string, add: Add): void {
  for (const [key, old, now] of changedMembers(before, after)) {
    const at = path + pointerStep(key);
    if (key !== "provider") add(at, "widened");
    else {
      for (const [hint] of changedMembers(old, now)) {
        add(at + pointerStep(hint), PROVIDER_GRADES.get(hint) ?? "widened");
      }
    }
  }
}

/**
 * The effect of keywords. `wording`: annotations. `upper`: maxima. `lower`: minima. `limit`: other
 * limits. `along`: subschemas that widen the whole schema when they are widened.
 */
const EFFECTS: ReadonlyMap<string, "wording" | "upper" | "lower" | "limit" | "along"> = new Map(
  ([
    ["wording", "title description $comment examples deprecated readOnly writeOnly"],
    ["upper", "maximum exclusiveMaximum maxLength maxItems maxProperties"],
    ["lower", "minimum exclusiveMinimum minLength minItems minProperties"],
    ["limit", "required enum type const pattern format multipleOf uniqueItems"],
    ["limit", "not allOf anyOf oneOf"],
    ["along", "items additionalItems additionalProperties unevaluatedItems"],
    ["along", "unevaluatedProperties propertyNames"],
  ] as const).flatMap(([effect, keywords]) =>
    keywords.split(" ").map((keyword) => [keyword, effect] as const)
  ),
);

function compareSchemas(before: unknown, after: unknown, path: string, add: Add): void {
  if (!isObject(before) || !isObject(after)) {
    const accepts = (schema: unknown): boolean => schema === true || schema === undefined;
    return add(path, accepts(before) || after === false ? "narrowed" : "widened");
  }
  for (const [keyword, old, now] of changedMembers(before, after)) {
    const at = path + pointerStep(keyword);
    if (keyword === "properties" && isObject(old) && isObject(now)) {
      for (const [name, was, is] of changedMembers(old, now)) {
        const step = at + pointerStep(name);
        // A model will pass a new parameter, even if the schema allowed it before.
        if (was === undefined) add(step, "widened");
        else if (is === undefined) add(step, "narrowed");
        else compareSchemas(was, is, step, add);
      }
    } else if (EFFECTS.get(keyword) === "along" && old !== undefined && now !== undefined) {
      compareSchemas(old, now, at, add);
    } else add(at, gradeOf(keyword, old, now));
  }
}

function gradeOf(keyword: string, before: unknown, after: unknown): PinGrade {
  const effect = EFFECTS.get(keyword);
  if (effect === "wording") return "wording";
  // Lists of schemas cannot be compared by position. They are equal if only annotations differ.
  if (same(bare(keyword, before), bare(keyword, after))) return "wording";
  if (before === undefined) return effect === undefined ? "widened" : "narrowed";
  if (typeof before === "number" && typeof after === "number") {
    const isLess = effect === "upper" ? after < before : effect === "lower" && after > before;
    return isLess ? "narrowed" : "widened";
  }
  if (keyword === "required" || keyword === "allOf") return gradePart(before, after);
  if (keyword === "enum" || keyword === "type" || keyword === "anyOf") {
    return gradePart(after, before);
  }
  return "widened";
}

/** Returns `narrowed` if `whole` contains every item of `part`, and `widened` otherwise. */
function gradePart(part: unknown, whole: unknown): PinGrade {
  const items = new Set(listOf(whole).map((item) => canonicalJson(item)));
  return listOf(part).every((item) => items.has(canonicalJson(item))) ? "narrowed" : "widened";
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

function bare(keyword: string, value: unknown): unknown {
  if (value === undefined) return undefined;
  const withoutTexts = (node: JsonSchemaObject): JsonSchemaObject =>
    Object.fromEntries(Object.entries(node).filter(([word]) => EFFECTS.get(word) !== "wording"));
  const holder = mapSchema(undefined, { [keyword]: value }, { leave: withoutTexts });
  return inOrder(holder);
}
