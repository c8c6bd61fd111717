/**
 * The limits of a request, which no tool breaks alone: a running count over the tools of an export.
 *
 * @module
 */

import type { JsonSchema } from "../tool/mod.ts";
import { measureSchema, type SchemaSize } from "./measure_schema.ts";
import { type Limit, type LimitName, LIMITS } from "./profile.ts";

/** What a tool adds to a request. */
export interface Load {
  readonly parameters: JsonSchema;
  readonly description: string;
  readonly strict: boolean;
  readonly deferred: boolean;
}

/** A limit that a tool does not fit under. */
export interface Excess {
  readonly limit: Limit;
  readonly message: string;
}

/** Limits that count one schema. They hold for strict tools where the mode is a strict one. */
const PER_SCHEMA: { readonly [Name in LimitName]?: keyof SchemaSize } = {
  maxProperties: "properties",
  maxDepth: "depth",
  maxCharacters: "characters",
  maxEnumValues: "enumValues",
  maxEnumCharacters: "largeEnum",
};

/** Limits over all strict tools together. */
const PER_STRICT_REQUEST: { readonly [Name in LimitName]?: keyof SchemaSize } = {
  maxOptional: "optional",
  maxUnions: "unions",
};

/** Counts the tools of one request. */
export class RequestLimits {
  readonly #limits: readonly Limit[];
  readonly #measures: boolean;
  readonly #used = new Map<LimitName, number>();

  constructor(limits: readonly Limit[]) {
    this.#limits = limits;
    this.#measures = limits.some(({ name }) =>
      name in PER_SCHEMA || name in PER_STRICT_REQUEST || name === "maxFields" ||
      name === "minRequired"
    );
  }

  /** The limits that one more tool would not fit under. Counts nothing. */
  excess(load: Load): readonly Excess[] {
    if (this.#limits.length === 0) return [];
    const size = this.#measures ? measureSchema(load.parameters) : undefined;
    const found: Excess[] = [];
    for (const limit of this.#limits) {
      const { name, value } = limit;
      const adds = amount(name, load, size);
      if (adds === undefined) continue;
      const total = (this.#used.get(name) ?? 0) + adds;
      const broken = name === "minRequired" ? adds < value : total > value;
      if (!broken) continue;
      found.push({
        limit,
        message: name === "minRequired"
          ? `it has ${adds} of at least ${value} ${LIMITS[name]}`
          : `it would make ${total} of at most ${value} ${LIMITS[name]}`,
      });
    }
    return found;
  }

  /** Counts a tool that is sent. */
  add(load: Load): void {
    if (this.#limits.length === 0) return;
    const size = this.#measures ? measureSchema(load.parameters) : undefined;
    for (const { name } of this.#limits) {
      if (name in PER_SCHEMA || name === "maxDescription" || name === "minRequired") continue;
      const adds = amount(name, load, size);
      if (adds !== undefined) this.#used.set(name, (this.#used.get(name) ?? 0) + adds);
    }
  }
}

/** What a tool adds to a limit; `undefined`: the limit is not about it. */
function amount(name: LimitName, load: Load, size: SchemaSize | undefined): number | undefined {
  const perSchema = PER_SCHEMA[name];
  if (perSchema !== undefined) return load.strict ? size?.[perSchema] : undefined;
  const perRequest = PER_STRICT_REQUEST[name];
  if (perRequest !== undefined) return load.strict ? size?.[perRequest] : undefined;
  switch (name) {
    case "maxTools":
      return 1;
    case "maxStrictTools":
      return load.strict ? 1 : undefined;
    case "maxDeferredTools":
      return load.deferred ? 1 : undefined;
    case "maxFields":
      return size?.properties;
    case "maxDescription":
      return load.description.length;
    case "minRequired":
      return size?.required;
    default:
      return undefined;
  }
}
