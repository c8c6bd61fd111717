/**
 * A repair of arguments that changes their form and loses nothing.
 *
 * @module
 */

import type { RepairHook } from "../../execute/mod.ts";
import {
  detectDialect,
  indexSchemas,
  isOfType,
  ReferenceIndex,
  resolveAnywhere,
} from "../../schema/mod.ts";
import {
  type ArgumentRepair,
  isObject,
  type JsonSchemaObject,
  pointerStep,
  setOwn,
  type Tool,
} from "../../tool/mod.ts";

/** How many parts of the arguments are looked at. */
const MAX_PARTS = 10_000;
/** How deep. A reference is a level, too. */
const MAX_LEVELS = 64;

const references = new WeakMap<Tool, ReferenceIndex>();

/**
 * Makes a repair that reads arguments as the schema wants them where nothing is lost by it:
 *
 * - `"3"` where a number or an integer is wanted, if the number is written as JSON writes it;
 * - `"true"` and `"false"` where a boolean is wanted;
 * - JSON as text where a list or an object is wanted: `"[1,2]"`, also for all of the arguments;
 * - a single value where a list is wanted: a list of one.
 *
 * Nothing is changed where the schema allows the value as it is, or several forms that are no `null`,
 * nor where a text has digits that a number has no room for, or two members of one name.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { coerceArguments } from "@plue/tools/calls";
 *
 * const registry = new ToolRegistry({
 *   tools: [{
 *     name: "add",
 *     description: "Adds numbers.",
 *     parameters: {
 *       type: "object",
 *       properties: { numbers: { type: "array", items: { type: "integer" } } },
 *       required: ["numbers"],
 *     },
 *     execute: (args) =>
 *       (args as { numbers: number[] }).numbers.reduce((sum, number) => sum + number, 0),
 *   }],
 * });
 * const dispatcher = new ToolDispatcher(registry, { repair: coerceArguments() });
 *
 * const sum = await dispatcher.dispatch({ name: "add", arguments: { numbers: '["1",2]' } });
 * assert.equal(sum.ok && sum.content, 3);
 * assert.deepEqual(sum.repaired, [
 *   { path: "/numbers", message: "a text was read as a list" },
 *   { path: "/numbers/0", message: "a text was read as a number" },
 * ]);
 * ```
 *
 * @returns What the dispatcher's option `repair` takes.
 */
export function coerceArguments(): RepairHook {
  return ({ tool, arguments: given }, [issue]) => {
    // Text that is not JSON is for other repairs.
    if (issue?.keyword === "json") return undefined;
    const repairs: ArgumentRepair[] = [];
    const walk = new Coercion(tool, repairs);
    const args = walk.coerce(tool.parameters, given, "", 0);
    return repairs.length === 0 ? undefined : { arguments: args, repairs };
  };
}

/** One walk over arguments and their schema. */
class Coercion {
  readonly #tool: Tool;
  readonly #repairs: ArgumentRepair[];
  #parts = 0;

  constructor(tool: Tool, repairs: ArgumentRepair[]) {
    this.#tool = tool;
    this.#repairs = repairs;
  }

  /** The value as `schema` wants it; the value itself where nothing can be done. */
  coerce(schema: unknown, value: unknown, path: string, level: number): unknown {
    if (!isObject(schema) || level > MAX_LEVELS || ++this.#parts > MAX_PARTS) return value;
    let result = value;
    const { $ref: ref, allOf, type } = schema;
    const go = (part: unknown): void => void (result = this.coerce(part, result, path, level + 1));
    if (typeof ref === "string") go(this.#target(ref));
    if (Array.isArray(allOf)) allOf.forEach(go);
    for (const branches of [schema["anyOf"], schema["oneOf"]]) {
      const others = Array.isArray(branches) ? branches.filter((branch) => !isNull(branch)) : [];
      if (others.length === 1 && result !== null) go(others[0]);
    }
    const types = [type].flat().filter((name) => typeof name === "string");
    if (types.length > 0 && !types.some((name) => isOfType(name, result))) {
      result = this.#read(types, schema, result, path);
    }
    return Array.isArray(result)
      ? this.#items(schema, result, path, level)
      : isObject(result)
      ? this.#properties(schema, result, path, level)
      : result;
  }

  /** A value of none of the types, as one of them. */
  #read(
    types: readonly string[],
    { items }: Record<string, unknown>,
    value: unknown,
    path: string,
  ): unknown {
    const said = (message: string, read: unknown): unknown => {
      this.#repairs.push({ path, message });
      return read;
    };
    const parsed = typeof value === "string" ? parse(value) : undefined;
    if (parsed === LOSSY) return value;
    for (const type of types) {
      if (parsed === undefined || !isOfType(type, parsed)) continue;
      if (type === "array") return said("a text was read as a list", parsed);
      if (type === "object") return said("a text was read as an object", parsed);
      if (type === "boolean") return said("a text was read as true or false", parsed);
      if (type !== "null" && String(parsed) === value) {
        return said("a text was read as a number", parsed);
      }
    }
    // A list of lists is not made, since it would be a guess which of them was meant.
    return types.includes("array") && value !== null && value !== undefined &&
        !(isObject(items) && items["type"] === "array")
      ? said("a single value was read as a list of one", [value])
      : value;
  }

  #items(schema: JsonSchemaObject, list: readonly unknown[], path: string, level: number): unknown {
    const { prefixItems, items } = schema;
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    const rest = Array.isArray(items) ? schema["additionalItems"] : items;
    return list.map((item, index) =>
      this.coerce(first[index] ?? rest, item, path + pointerStep(index), level + 1)
    );
  }

  #properties(
    { properties, additionalProperties }: JsonSchemaObject,
    value: Record<string, unknown>,
    path: string,
    level: number,
  ): unknown {
    const result: Record<string, unknown> = {};
    for (const [key, part] of Object.entries(value)) {
      const known = isObject(properties) && Object.hasOwn(properties, key);
      const schema = known ? properties[key] : additionalProperties;
      setOwn(result, key, this.coerce(schema, part, path + pointerStep(key), level + 1));
    }
    return result;
  }

  #target(ref: string): unknown {
    const { parameters } = this.#tool;
    let index = references.get(this.#tool);
    if (index === undefined) {
      index = new ReferenceIndex(parameters, detectDialect(parameters));
      indexSchemas(index, parameters);
      references.set(this.#tool, index);
    }
    return resolveAnywhere(index, ref)?.schema;
  }
}

function isNull(schema: unknown): boolean {
  return isObject(schema) && schema["type"] === "null";
}

/** Stands for JSON text with digits that a number has no room for, or with two members of one name. */
const LOSSY = Symbol();

/** The value of JSON text; `undefined` if it is none. */
function parse(text: string): unknown {
  // The reviver is told of the value itself, too.
  let members = -1;
  let value: unknown;
  try {
    value = JSON.parse(text, function (this: unknown, _, member) {
      if (!Array.isArray(this)) members++;
      return member;
    });
  } catch {
    return undefined;
  }
  for (let at = 0; at < text.length; at++) {
    const sign = text.charAt(at);
    if (sign === ":") members--;
    else if (sign === '"') { while (text[++at] !== '"') if (text[at] === "\\") at++; }
    else if (/[-\d]/.test(sign)) {
      NUMBER.lastIndex = at;
      const [number = ""] = NUMBER.exec(text) ?? [];
      if (exactly(number) !== exactly(String(Number(number)))) return LOSSY;
      at += number.length - 1;
    }
  }
  return members === 0 ? value : LOSSY;
}

const NUMBER = /-?\d[\d.eE+-]*/y;
/** The digits and the power of a number; longer ones than this lose some. */
const MAX_NUMBER = 400;

/** A number in one form: its digits without zeros around them, and their power of ten. */
function exactly(number: string): string | undefined {
  const parts = number.length > MAX_NUMBER ? null : PARTS.exec(number);
  if (parts === null) return undefined;
  const [, whole = "", fraction = "", power = "0"] = parts;
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  return kept && `${kept}e${Number(power) - fraction.length + digits.length - kept.length}`;
}

const PARTS = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
