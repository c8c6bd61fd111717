/** The limits of a request, counted over all tools of an export. */

import { isObject, type JsonSchema } from "../tool/mod.ts";
import { type Limit, type LimitName, LIMITS, type ToolView } from "./target.ts";
import { eachChild, requiredBy } from "./transform/rewrite.ts";

export interface Excess {
  readonly limit: Limit;
  readonly message: string;
}

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

  add(tool: ToolView): void {
    for (const [{ name }, adds] of this.#amounts(tool)) {
      if (COUNTS[name]?.each !== true) this.#used.set(name, (this.#used.get(name) ?? 0) + adds);
    }
  }

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

interface SchemaSize {
  /** At every level. */
  properties: number;
  /** Properties that are not required, at every level. */
  optional: number;
  /** Subschemas that are a union: `anyOf`, or a list of types. */
  unions: number;
  /** Objects and arrays inside each other. */
  depth: number;
  enumValues: number;
  /** Characters of property names, definition names, enum texts and constants. */
  characters: number;
  /** Characters of the texts of the largest enum that has more than 250 values. */
  largeEnum: number;
  /** Required properties at the root. */
  required: number;
}

/** From how many values on the characters of one enum count. */
const LARGE_ENUM = 250;

function measureSchema(schema: JsonSchema): SchemaSize {
  const required = isObject(schema) && Array.isArray(schema["required"])
    ? schema["required"].length
    : 0;
  const zero = { properties: 0, optional: 0, unions: 0, depth: 0, enumValues: 0, characters: 0 };
  const size: SchemaSize = { ...zero, largeEnum: 0, required };

  function step(part: JsonSchema, depth: number): void {
    if (!isObject(part)) return;
    const { type, enum: values, properties: own } = part;
    const nests = type === "object" || type === "array" || own !== undefined ||
      (Array.isArray(type) && (type.includes("object") || type.includes("array")));
    const inner = nests ? depth + 1 : depth;
    size.depth = Math.max(size.depth, inner);
    if (isObject(own)) {
      const named = requiredBy(part);
      for (const name of Object.keys(own)) {
        size.properties++;
        size.characters += name.length;
        if (!named.has(name)) size.optional++;
      }
    }
    if (Array.isArray(part["anyOf"]) || (Array.isArray(type) && type.length > 1)) size.unions++;
    if (Array.isArray(values)) {
      size.enumValues += values.length;
      const texts = values.reduce<number>((sum, value) => sum + textLength(value), 0);
      size.characters += texts;
      if (values.length > LARGE_ENUM) size.largeEnum = Math.max(size.largeEnum, texts);
    }
    if (Object.hasOwn(part, "const")) size.characters += textLength(part["const"]);
    if (isObject(part["$defs"])) {
      for (const name of Object.keys(part["$defs"])) size.characters += name.length;
    }
    eachChild(part, (child, keyword) => step(child, keyword === "$defs" ? 0 : inner));
  }
  step(schema, 0);
  return size;
}

function textLength(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}
