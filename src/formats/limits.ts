/**
 * The limits of a request, counted over all tools of an export.
 *
 * @module
 */

import { isObject, type JsonSchema } from "../tool/mod.ts";
import { type Limit, type LimitName, LIMITS, type ToolView } from "./target.ts";
import { eachChild, requiredBy } from "./transform/rewrite.ts";

/** A limit that a tool would exceed. */
export interface Excess {
  readonly limit: Limit;
  readonly message: string;
}

/** How a limit is counted. */
interface Count {
  /** The amount that a tool adds: a number, or a part of its schema's size; `undefined`: it is not counted. */
  readonly of: keyof SchemaSize | ((tool: ToolView) => number | undefined);
  /** Only strict tools count. In a target without a strict mode, every tool is strict. */
  readonly strict?: true;
  /** The limit holds for each tool by itself. */
  readonly each?: true;
}

const COUNTS: { readonly [Name in LimitName]?: Count } = {
  maxTools: { of: () => 1 },
  maxDeferredTools: { of: ({ hints }) => hints.deferLoading === true ? 1 : undefined },
  maxStrictTools: { of: () => 1, strict: true },
  maxOptional: { of: "optional", strict: true },
  maxUnions: { of: "unions", strict: true },
  maxFields: { of: "properties" },
  maxProperties: { of: "properties", strict: true, each: true },
  maxDepth: { of: "depth", strict: true, each: true },
  maxCharacters: { of: "characters", strict: true, each: true },
  maxEnumValues: { of: "enumValues", strict: true, each: true },
  maxEnumCharacters: { of: "largeEnum", strict: true, each: true },
  maxDescription: { of: ({ description }) => description.length, each: true },
  minRequired: { of: "required", each: true },
};

/** Counts the tools of one request. */
export class RequestLimits {
  readonly #limits: readonly Limit[];
  readonly #allStrict: boolean;
  readonly #omitsDeferred: boolean;
  readonly #used = new Map<LimitName, number>();

  /**
   * @param allStrict The target has no strict mode: its limits on schemas hold for every tool.
   * @param omitsDeferred Deferred tools are not in the request: only limits on each concern them.
   */
  constructor(limits: readonly Limit[], allStrict: boolean, omitsDeferred: boolean) {
    this.#limits = limits;
    this.#allStrict = allStrict;
    this.#omitsDeferred = omitsDeferred;
  }

  /** The limits that one more tool would exceed. It is not counted. */
  excess(tool: ToolView): readonly Excess[] {
    return this.#amounts(tool).flatMap(([limit, adds]) => {
      const { name, value } = limit;
      if (name === "minRequired") {
        const message = `it has ${adds} of at least ${value} ${LIMITS[name]}`;
        return adds < value ? [{ limit, message }] : [];
      }
      const total = (this.#used.get(name) ?? 0) + adds;
      const message = `it would make ${total} of at most ${value} ${LIMITS[name]}`;
      return total > value ? [{ limit, message }] : [];
    });
  }

  /** Counts a tool that is sent. */
  add(tool: ToolView): void {
    for (const [{ name }, adds] of this.#amounts(tool)) {
      if (COUNTS[name]?.each !== true) this.#used.set(name, (this.#used.get(name) ?? 0) + adds);
    }
  }

  /** The amounts that a tool adds to the limits that apply to it. */
  #amounts(tool: ToolView): readonly (readonly [Limit, number])[] {
    let size: SchemaSize | undefined;
    return this.#limits.flatMap((limit): (readonly [Limit, number])[] => {
      const { of, strict, each } = COUNTS[limit.name] ?? {};
      if (of === undefined || (strict === true && !tool.strict && !this.#allStrict)) return [];
      if (this.#omitsDeferred && tool.hints.deferLoading === true && each !== true) return [];
      const adds = typeof of === "function"
        ? of(tool)
        : (size ??= measureSchema(tool.parameters))[of];
      return adds === undefined ? [] : [[limit, adds]];
    });
  }
}

/** The sizes of one schema that limits of providers count. */
export interface SchemaSize {
  /** Properties, at every level. */
  readonly properties: number;
  /** Properties that are not required, at every level. */
  readonly optional: number;
  /** Subschemas that are a union: `anyOf`, or a list of types. */
  readonly unions: number;
  /** Objects and arrays inside each other. */
  readonly depth: number;
  /** Values in all enums. */
  readonly enumValues: number;
  /** Characters of property names, definition names, enum texts and constants. */
  readonly characters: number;
  /** Characters of the texts of the largest enum that has more than 250 values. */
  readonly largeEnum: number;
  /** Required properties at the root. */
  readonly required: number;
}

/** From how many values on the characters of one enum count. */
const LARGE_ENUM = 250;

function measureSchema(schema: JsonSchema): SchemaSize {
  let properties = 0;
  let optional = 0;
  let unions = 0;
  let deepest = 0;
  let enumValues = 0;
  let characters = 0;
  let largeEnum = 0;

  function step(part: JsonSchema, depth: number): void {
    if (!isObject(part)) return;
    const { type, enum: values, properties: own } = part;
    const nests = type === "object" || type === "array" || own !== undefined ||
      (Array.isArray(type) && (type.includes("object") || type.includes("array")));
    const inner = nests ? depth + 1 : depth;
    deepest = Math.max(deepest, inner);
    if (isObject(own)) {
      const names = Object.keys(own);
      const required = requiredBy(part);
      properties += names.length;
      for (const name of names) {
        characters += name.length;
        if (!required.has(name)) optional++;
      }
    }
    if (Array.isArray(part["anyOf"]) || (Array.isArray(type) && type.length > 1)) unions++;
    if (Array.isArray(values)) {
      enumValues += values.length;
      const texts = values.reduce<number>((sum, value) => sum + textLength(value), 0);
      characters += texts;
      if (values.length > LARGE_ENUM) largeEnum = Math.max(largeEnum, texts);
    }
    if (Object.hasOwn(part, "const")) characters += textLength(part["const"]);
    if (isObject(part["$defs"])) {
      for (const name of Object.keys(part["$defs"])) characters += name.length;
    }
    eachChild(part, (child, keyword) => step(child, keyword === "$defs" ? 0 : inner));
  }

  step(schema, 0);
  const required = isObject(schema) && Array.isArray(schema["required"])
    ? schema["required"].length
    : 0;
  return {
    properties,
    optional,
    unions,
    depth: deepest,
    enumValues,
    characters,
    largeEnum,
    required,
  };
}

function textLength(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}
