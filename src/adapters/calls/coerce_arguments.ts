/** Converts arguments to the type that the schema requires, if the conversion loses no data. */

import type { RepairHook } from "../../execute/mod.ts";
import * as schemas from "../../schema/mod.ts";
import {
  type ArgumentRepair,
  isObject,
  type JsonSchemaObject,
  once,
  pointerStep,
  setOwn,
  type Tool,
} from "../../tool/mod.ts";

const MAX_PARTS = 10_000;
/** The maximum depth. Following a reference adds one level. */
const MAX_LEVELS = 64;

const references = new WeakMap<Tool, schemas.ReferenceIndex>();

/**
 * Creates a repair that converts arguments to the types of the schema, without losing data:
 *
 * - `"3"` for a number or an integer, if the text is the number's canonical JSON;
 * - `"true"` and `"false"` for a boolean;
 * - JSON text for an array or an object: `"[1,2]"`. The arguments as a whole may be JSON text too;
 * - a single value for an array: an array of one item.
 *
 * A value stays unchanged if the schema allows it, if the schema allows several types besides
 * `null`, or if the text has more digits than a number can represent or duplicate members.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { coerceArguments } from "@plue/tools/calls";
 *
 * const tool = defineTool({
 *   name: "double",
 *   description: "Doubles a number.",
 *   parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
 *   execute: ({ n }) => 2 * n,
 * });
 * const registry = new ToolRegistry({ tools: [tool] });
 * const dispatcher = new ToolDispatcher(registry, { repair: coerceArguments() });
 *
 * const result = await dispatcher.dispatch({ name: "double", arguments: { n: "21" } });
 * assert.equal(result.ok && result.content, 42);
 * assert.deepEqual(result.repaired, [{ path: "/n", message: "a text was read as a number" }]);
 * ```
 *
 * @returns A value for the dispatcher's option `repair`.
 */
export function coerceArguments(): RepairHook {
  return ({ tool, arguments: input }, [issue]) => {
    // Other repairs handle text that is not JSON.
    if (issue?.keyword === "json") return undefined;
    const walk = new Coercion(tool);
    const args = walk.coerce(tool.parameters, input, "", 0);
    const { repairs } = walk;
    return repairs.length === 0 ? undefined : { arguments: args, repairs };
  };
}

class Coercion {
  readonly repairs: ArgumentRepair[] = [];
  readonly #tool: Tool;
  #parts = 0;

  constructor(tool: Tool) {
    this.#tool = tool;
  }

  coerce(schema: unknown, value: unknown, path: string, level: number): unknown {
    if (!isObject(schema) || level > MAX_LEVELS || ++this.#parts > MAX_PARTS) return value;
    let result = value;
    const { $ref: ref, allOf, type } = schema;
    const go = (part: unknown): void => void (result = this.coerce(part, result, path, level + 1));
    if (typeof ref === "string") go(this.#target(ref));
    if (Array.isArray(allOf)) allOf.forEach(go);
    for (const branches of [schema["anyOf"], schema["oneOf"]]) {
      const others = schemas.listOf(branches).filter((one) => Object(one).type !== "null");
      if (others.length === 1 && result !== null) go(others[0]);
    }
    const types = [type].flat().filter((name) => typeof name === "string");
    if (types.length > 0 && !types.some((name) => schemas.isOfType(name, result))) {
      result = this.#read(types, schema, result, path);
    }
    return Array.isArray(result)
      ? this.#items(schema, result, path, level)
      : isObject(result)
      ? this.#properties(schema, result, path, level)
      : result;
  }

  /** Converts a value to one of the types, none of which it has. */
  #read(
    types: readonly string[],
    { items }: Record<string, unknown>,
    value: unknown,
    path: string,
  ): unknown {
    const note = (message: string, read: unknown): unknown => {
      this.repairs.push({ path, message });
      return read;
    };
    const parsed = typeof value === "string" ? parse(value) : undefined;
    if (parsed === LOSSY) return value;
    for (const type of types) {
      if (parsed === undefined || !schemas.isOfType(type, parsed)) continue;
      if (type === "array") return note("a text was read as a list", parsed);
      if (type === "object") return note("a text was read as an object", parsed);
      if (type === "boolean") return note("a text was read as true or false", parsed);
      if (type !== "null" && String(parsed) === value) {
        return note("a text was read as a number", parsed);
      }
    }
    // In an array of arrays, it is unclear which level is missing.
    return types.includes("array") && value !== null && value !== undefined &&
        !(isObject(items) && items["type"] === "array")
      ? note("a single value was read as a list of one", [value])
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
    const index = once(references, this.#tool, () => {
      const made = new schemas.ReferenceIndex(parameters, schemas.detectDialect(parameters));
      schemas.indexSchemas(made, parameters);
      return made;
    });
    return schemas.resolveAnywhere(index, ref)?.schema;
  }
}

/** The result for JSON with more digits than a number can represent, or duplicate members. */
const LOSSY = Symbol();

function parse(text: string): unknown {
  // The reviver is called for the root value too.
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
const MAX_NUMBER = 400;

/** Returns a number in a normal form: digits without outer zeros, and a power of ten. */
function exactly(number: string): string | undefined {
  const parts = number.length > MAX_NUMBER ? null : PARTS.exec(number);
  if (parts === null) return undefined;
  const [, whole = "", fraction = "", power = "0"] = parts;
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  return kept && `${kept}e${Number(power) - fraction.length + digits.length - kept.length}`;
}

const PARTS = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
