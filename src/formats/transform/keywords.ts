/** Passes that replace single keywords by other keywords, or move them to the description. */

import { isSchema, KEYWORDS } from "../../schema/mod.ts";
import {
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  type JsonValue,
  setOwn,
} from "../../tool/mod.ts";
import * as rewriting from "./rewrite.ts";
import { changed, type Spot } from "./rewrite.ts";
import type { Context, Report, SchemaLoss } from "./report.ts";

/** The keywords whose value may be a boolean in every target. */
const USUAL: ReadonlySet<string> = new Set(["additionalProperties", "unevaluatedProperties"]);

/** Rewrites `true` as `{}`, and `false` as `{ not: {} }` unless `false` can simply be omitted. */
export function booleansToObjects(root: JsonSchema, { trace }: Pick<Context, "trace">): JsonSchema {
  const result = rewriting.mapSchema(trace, root, { enter: (node) => writeBooleans(trace, node) });
  return typeof result === "boolean" ? plain(trace, result) : result;
}

/** Returns a boolean schema as an object, and records the slot of the boolean. */
function plain(trace: rewriting.Trace, schema: JsonSchema, slot?: rewriting.Slot): JsonSchema {
  if (typeof schema !== "boolean") return schema;
  const made: JsonSchemaObject = schema ? {} : { not: {} };
  if (slot !== undefined) trace.replacesBoolean(made, slot);
  return made;
}

function writeBooleans(trace: rewriting.Trace, node: JsonSchemaObject): JsonSchemaObject {
  let result = node;
  const set = (keyword: string, value: unknown): void => {
    result = changed(trace, result, { [keyword]: value });
  };
  for (const keyword of Object.keys(node)) {
    const value = node[keyword];
    const shape = rewriting.HOLDS.get(keyword)?.shape;
    if (Array.isArray(value) && shape === "schemas") {
      if (!value.some((item) => typeof item === "boolean")) continue;
      const skips = keyword === "anyOf" || keyword === "oneOf";
      const list = value.flatMap((item: JsonSchema, step) =>
        skips && item === false ? [] : [plain(trace, item, { node, keyword, step })]
      );
      set(keyword, list.length === 0 ? [plain(trace, false, { node, keyword })] : list);
    } else if (shape === "map") {
      if (!isObject(value) || !Object.values(value).some((item) => typeof item === "boolean")) {
        continue;
      }
      const closed = keyword === "properties" && node["additionalProperties"] === false &&
        !isObject(node["patternProperties"]);
      const required = rewriting.requiredBy(node);
      const map: Record<string, unknown> = {};
      for (const name of Object.keys(value)) {
        if (value[name] === false && closed && !required.has(name)) continue;
        setOwn(map, name, plain(trace, value[name] as JsonSchema, { node, keyword, step: name }));
      }
      set(keyword, map);
    } else if (keyword === "items" && typeof value === "boolean") {
      const tuple = Object.hasOwn(node, "prefixItems");
      if (value) set("items", tuple ? undefined : plain(trace, true, { node, keyword }));
      else if (!tuple) {
        set("items", plain(trace, true, { node, keyword }));
        result = changed(trace, result, { maxItems: 0 }, { maxItems: keyword });
      }
    } else if (typeof value === "boolean" && shape === "schema" && !USUAL.has(keyword)) {
      set(keyword, plain(trace, value, { node, keyword }));
    }
  }
  return result;
}

export function constToEnum(node: JsonSchemaObject, { trace }: Context): JsonSchema {
  if (!Object.hasOwn(node, "const")) return node;
  const values = node["enum"];
  // If `enum` does not have the constant, no value is valid.
  if (Array.isArray(values) && !values.some((value) => trace.isEqual(value, node["const"]))) {
    return false;
  }
  const renamed = Object.hasOwn(node, "enum") ? undefined : { enum: "const" };
  return changed(trace, node, { const: undefined, enum: [node["const"]] }, renamed);
}

/**
 * Rewrites an `enum` of numbers or booleans as an `enum` of texts, and records the original values.
 * Omits an `enum` with lists, objects, the empty text, or equal texts (of `1` and `"1"`).
 */
export function enumToText(node: JsonSchemaObject, context: Context, spot: Spot): JsonSchema {
  const { trace } = context;
  const values = node["enum"];
  if (!Array.isArray(values)) return node;
  const texts = values.map((value) => typeof value === "object" ? null : String(value));
  const possible = texts.every((text) => text !== null && text !== "") &&
    new Set(texts).size === texts.length;
  if (!possible) {
    const message = '"enum" may only hold texts that are not empty';
    return leaveOut(context, node, "enum", spot, message);
  }
  const isText = values.every((value) => typeof value === "string") && node["type"] === "string";
  if (isText) return node;
  // Bounds of a number do not apply to its text.
  const bare = rewriting.without(trace, node, "minimum", "maximum", "multipleOf", "format");
  const copy = changed(trace, bare, { type: "string", enum: texts });
  const stands = new Map<string, JsonValue>();
  values.forEach((value: JsonValue, index) => {
    if (typeof value !== "string") stands.set(texts[index] as string, value);
  });
  if (stands.size > 0) trace.mark(copy, { values: stands });
  return copy;
}

/** Rewrites exclusive bounds as inclusive bounds. The meaning is the same for integers only. */
export function exclusiveToInclusive(
  node: JsonSchemaObject,
  { trace, report }: Context,
  spot: Spot,
): JsonSchema {
  const low = include(trace, node, spot, report, "exclusiveMinimum", "minimum", 1);
  return include(trace, low, spot, report, "exclusiveMaximum", "maximum", -1);
}

function include(
  trace: rewriting.Trace,
  node: JsonSchemaObject,
  spot: Spot,
  report: Report,
  exclusive: "exclusiveMinimum" | "exclusiveMaximum",
  inclusive: "minimum" | "maximum",
  step: 1 | -1,
): JsonSchemaObject {
  const bound = node[exclusive];
  if (typeof bound !== "number") return node;
  const whole = isWhole(node["type"]);
  // For bounds above 2^53, the next integer may not be representable.
  const next = step === 1 ? Math.floor(bound) + 1 : Math.ceil(bound) - 1;
  const exact = whole && Number.isSafeInteger(next);
  const value = exact ? next : bound;
  const other = node[inclusive];
  const otherWins = typeof other === "number" && (step === 1 ? other > bound : other < bound);
  if (!exact && !otherWins) {
    const message = `"${exclusive}" is sent as "${inclusive}": the bound itself is then accepted`;
    report.add(node, spot, exclusive, message);
  }
  if (typeof other !== "number") {
    const changes = { [exclusive]: undefined, [inclusive]: value };
    return changed(trace, node, changes, { [inclusive]: exclusive });
  }
  const tighter = step === 1 ? Math.max(other, value) : Math.min(other, value);
  return changed(trace, node, { [exclusive]: undefined, [inclusive]: tighter });
}

function isWhole(type: unknown): boolean {
  if (type === "integer") return true;
  return Array.isArray(type) && type.includes("integer") && !type.includes("number");
}

/** Rewrites `prefixItems` as `items`, and `items: false` as `maxItems`. */
export function tuplesToLists(
  node: JsonSchemaObject,
  { trace, report }: Context,
  spot: Spot,
): JsonSchema {
  const tuple = node["prefixItems"];
  if (!Array.isArray(tuple)) return node;
  const rest = isSchema(node["items"]) ? node["items"] : true;
  const closed = rest === false;
  // A branch `true` would accept everything, so that the items of the tuple had no effect.
  const isBranch = rest !== true && !closed;
  const branches = trace.distinct<unknown>(isBranch ? [...tuple, rest] : tuple);
  const message = "a tuple is sent as a list: the order of its items is lost";
  const widens = branches.length > 1 || !closed;
  report.add(node, spot, "prefixItems", message, { widens, narrows: rest === true });
  const union = { anyOf: branches };
  trace.cameFrom(union, node);
  const items = branches.length === 1 ? branches[0] : union;
  const max = node["maxItems"];
  const maxItems = Math.min(typeof max === "number" ? max : Infinity, tuple.length);
  return changed(trace, node, { prefixItems: undefined, items, ...(closed && { maxItems }) });
}

export function addItems(node: JsonSchemaObject, { trace }: Context): JsonSchema {
  return lacksItems(node) ? changed(trace, node, { items: {} }) : node;
}

export function lacksItems(node: JsonSchemaObject): boolean {
  const { type } = node;
  return (type === "array" || (Array.isArray(type) && type.includes("array"))) &&
    !Object.hasOwn(node, "items");
}

/** The keywords whose values are 64-bit integers in the typed schema, and so texts in JSON. */
export const LENGTHS: ReadonlySet<string> = new Set(
  "minItems maxItems minLength maxLength minProperties maxProperties".split(" "),
);

export function asTypedSchema(node: JsonSchemaObject, { trace }: Context): JsonSchema {
  const copy = rewriting.copyNode(trace, node);
  if (typeof copy["type"] === "string") copy["type"] = copy["type"].toUpperCase();
  for (const keyword of LENGTHS) {
    if (typeof copy[keyword] === "number") copy[keyword] = String(copy[keyword]);
  }
  const examples = copy["examples"];
  delete copy["examples"];
  if (Array.isArray(examples) && examples.length > 0 && !Object.hasOwn(copy, "example")) {
    copy["example"] = examples[0];
  }
  return copy;
}
export function constrains(keyword: string): boolean {
  const known = KEYWORDS["2020-12"].get(keyword) ?? KEYWORDS["draft-07"].get(keyword);
  return known !== undefined && known.role !== "annotates";
}

/** Removes the keywords whose fate is `drop`. Reports the removed and the ignored keywords. */
export function dropKeywords(
  node: JsonSchemaObject,
  { trace, report, describe, fateOf }: Context,
  spot: Spot,
): JsonSchema {
  let copy: Record<string, unknown> | undefined;
  for (const keyword of Object.keys(node)) {
    const fate = fateOf(keyword, node, spot.root);
    if (fate === "keep") continue;
    if (fate === "ignored") {
      if (!constrains(keyword)) continue;
      const message = `"${keyword}" is sent, but not enforced`;
      report.add(node, spot, keyword, message, { action: "sent", widens: true });
      continue;
    }
    copy ??= rewriting.copyNode(trace, node);
    delete copy[keyword];
    const described = describe && addWords(copy, keyword, node[keyword]);
    const message = described
      ? `"${keyword}" is stated in the description`
      : keyword === "nullable"
      ? '"nullable" is not JSON Schema, and is omitted: null fits only where "type" has "null"'
      : `"${keyword}" cannot be sent`;
    const widens = constrains(keyword);
    const narrows = widens && opensAnother(keyword, node);
    report.add(node, spot, keyword, message, { ...omission(described), widens, narrows });
  }
  return copy ?? node;
}

function omission(described: boolean): Pick<SchemaLoss, "action" | "grade"> {
  return described ? { action: "described", grade: "moved" } : { action: "dropped", grade: "lost" };
}

export function leaveOut(
  { trace, report, describe }: Context,
  node: JsonSchemaObject,
  keyword: string,
  spot: Spot,
  message: string,
): JsonSchemaObject {
  report.add(node, spot, keyword, message, { ...omission(describe), widens: true });
  const copy = rewriting.copyNode(trace, node);
  delete copy[keyword];
  if (describe) addWords(copy, keyword, node[keyword]);
  return copy;
}

/** Returns true if, without this keyword, another keyword may reject values that were valid. */
function opensAnother(keyword: string, node: JsonSchemaObject): boolean {
  if (keyword === "patternProperties") {
    return Object.hasOwn(node, "additionalProperties") && node["additionalProperties"] !== true;
  }
  return keyword === "prefixItems" && Object.hasOwn(node, "items") && node["items"] !== true;
}

const MAX_WORDS = 400;

function json(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_WORDS ? `${text.slice(0, MAX_WORDS - 1)}…` : text;
}

function count(value: unknown, one: string, many: string): string {
  return `${json(value)} ${value === 1 ? one : many}`;
}

type Wording = (value: unknown) => string | undefined;

/** The text in a description for each keyword that matters to models. */
const WORDS: ReadonlyMap<string, Wording> = new Map<string, Wording>([
  ["minLength", (value) => `At least ${count(value, "character", "characters")}.`],
  ["maxLength", (value) => `At most ${count(value, "character", "characters")}.`],
  ["pattern", (value) => `Matches the regular expression ${String(value).slice(0, MAX_WORDS)}`],
  ["format", (value) => `Format: ${String(value).slice(0, MAX_WORDS)}.`],
  ["minimum", (value) => `At least ${json(value)}.`],
  ["maximum", (value) => `At most ${json(value)}.`],
  ["exclusiveMinimum", (value) => `More than ${json(value)}.`],
  ["exclusiveMaximum", (value) => `Less than ${json(value)}.`],
  ["multipleOf", (value) => `A multiple of ${json(value)}.`],
  ["minItems", (value) => `At least ${count(value, "item", "items")}.`],
  ["maxItems", (value) => `At most ${count(value, "item", "items")}.`],
  ["uniqueItems", (value) => value === true ? "No two items are the same." : undefined],
  ["contains", (value) => `At least one item fits ${json(value)}`],
  ["minProperties", (value) => `At least ${count(value, "property", "properties")}.`],
  ["maxProperties", (value) => `At most ${count(value, "property", "properties")}.`],
  ["enum", (value) => `One of: ${json(value)}`],
  ["const", (value) => `Always ${json(value)}.`],
  ["default", (value) => `Default: ${json(value)}`],
  ["examples", (value) => `Examples: ${json(value)}`],
  ["example", (value) => `Example: ${json(value)}`],
  ["deprecated", (value) => value === true ? "Deprecated." : undefined],
  ["contentEncoding", (value) => `Encoded as ${String(value).slice(0, MAX_WORDS)}.`],
  ["contentMediaType", (value) => `Media type: ${String(value).slice(0, MAX_WORDS)}.`],
  ["additionalProperties", restWords],
  ["unevaluatedProperties", restWords],
  ["patternProperties", (value) => `Properties by pattern of their names: ${json(value)}`],
  ["propertyNames", (value) => `The property names fit ${json(value)}`],
  ["dependentRequired", dependentWords],
  ["dependentSchemas", (value) => `If a property is given, the whole fits: ${json(value)}`],
  ["not", (value) => `Must not fit ${json(value)}`],
  ["if", (value) => `If it fits ${json(value)}, more rules apply.`],
  ["then", (value) => `If so: ${json(value)}`],
  ["else", (value) => `If not: ${json(value)}`],
  ["anyOf", (value) => unionWords("At least one", value)],
  ["oneOf", (value) => unionWords("Exactly one", value)],
  ["allOf", (value) => `Also fits ${json(value)}`],
  ["prefixItems", (value) => `The first items fit, in this order: ${json(value)}`],
]);

function restWords(value: unknown): string | undefined {
  if (value === true) return undefined;
  return value === false ? "No other properties." : `Other properties fit ${json(value)}`;
}

function dependentWords(value: unknown): string {
  const lines = Object.entries(value as Record<string, unknown>).map(([name, needs]) =>
    `"${name}" needs ${Array.isArray(needs) ? needs.map((need) => `"${need}"`).join(", ") : ""}`
  );
  return `${lines.join("; ").slice(0, MAX_WORDS)}.`;
}

/** Describes a union of `required` lists by the names in the lists. */
function unionWords(how: string, value: unknown): string {
  const branches = Array.isArray(value) ? value : [];
  const names = branches.map((branch: { readonly required?: unknown } | null) => {
    const required = branch?.required;
    const only = typeof branch === "object" && branch !== null &&
      Object.keys(branch).every((keyword) => keyword === "required");
    return only && Array.isArray(required)
      ? required.map((name) => `"${name}"`).join(" and ")
      : undefined;
  });
  return names.every((name) => name !== undefined)
    ? `${how} of these must be given: ${names.join("; ").slice(0, MAX_WORDS)}.`
    : `${how} of these fits: ${json(value)}`;
}

export function addWords(node: Record<string, unknown>, keyword: string, value: unknown): boolean {
  const words = WORDS.get(keyword)?.(value);
  if (words === undefined) return false;
  const before = typeof node["description"] === "string" ? node["description"].trimEnd() : "";
  const gap = before === "" ? "" : /[.!?:…]$/.test(before) ? " " : ". ";
  node["description"] = before + gap + words;
  return true;
}
