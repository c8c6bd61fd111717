/**
 * What the place where tools would run offers and permits: is there a workspace, a terminal, an
 * editor, a git repository; which risk, which categories, which tools.
 *
 * @module
 */

import type { RiskLevel } from "../tool/mod.ts";
import {
  AVAILABILITY_FIELDS,
  type CompleteAvailabilityFields,
  DEFAULT_AVAILABILITY,
  readAvailabilityFields,
  type ToolAvailabilityFields,
} from "./availability_fields.ts";

/** Whatever is accepted as a context: the class, its builder, or its fields. */
export type ToolAvailabilityInput =
  | ToolAvailabilityContext
  | ToolAvailabilityContextBuilder
  | ToolAvailabilityFields;

/**
 * What a place offers and permits, as immutable data.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolAvailabilityContext } from "@plue/tools";
 *
 * const context = ToolAvailabilityContext.create()
 *   .withMaxRiskLevel("medium")
 *   .excludeCategories("network")
 *   .withTerminal(false)
 *   .build();
 *
 * assert.deepEqual(context.toJSON(), {
 *   hasTerminal: false,
 *   maxRiskLevel: "medium",
 *   excludedCategories: ["network"],
 * });
 * assert.equal(ToolAvailabilityContext.fromJSON(context.toJSON()).key, context.key);
 * ```
 */
export class ToolAvailabilityContext implements CompleteAvailabilityFields {
  /** Everything is there, nothing is forbidden. */
  static readonly default: ToolAvailabilityContext = new ToolAvailabilityContext();
  /** No workspace, and so no git repository. */
  static readonly noWorkspace: ToolAvailabilityContext = new ToolAvailabilityContext({
    hasWorkspace: false,
    hasGit: false,
  });
  /** Only tools of risk `safe`. */
  static readonly safeOnly: ToolAvailabilityContext = new ToolAvailabilityContext({
    maxRiskLevel: "safe",
  });
  /** Only tools of risk `safe` and `low`. */
  static readonly lowRiskOnly: ToolAvailabilityContext = new ToolAvailabilityContext({
    maxRiskLevel: "low",
  });
  /** Only tools of the category `filesystem`. */
  static readonly fileSystemOnly: ToolAvailabilityContext = new ToolAvailabilityContext({
    includedCategories: ["filesystem"],
  });
  /** Only tools that change nothing. */
  static readonly readOnly: ToolAvailabilityContext = new ToolAvailabilityContext({
    readOnly: true,
  });

  /** A folder is open. `false` removes the categories `workspace` and `filesystem`. */
  declare readonly hasWorkspace: boolean;
  /** Commands can be run. `false` removes the category `terminal`. */
  declare readonly hasTerminal: boolean;
  /** An editor is open. `false` removes the category `editor`. */
  declare readonly hasEditor: boolean;
  /** The workspace is a git repository. `false` removes the category `git`. */
  declare readonly hasGit: boolean;
  /** Keeps only the tools whose annotations say `readOnlyHint`. */
  declare readonly readOnly: boolean;
  /** The highest risk that is permitted. */
  declare readonly maxRiskLevel: RiskLevel;
  /** Only tools of these categories; `undefined` is whatever the category. */
  declare readonly includedCategories: readonly string[] | undefined;
  /** No tools of these categories. */
  declare readonly excludedCategories: readonly string[];
  /** Only these tools, by id; `undefined` is every tool. */
  declare readonly enabledTools: readonly string[] | undefined;
  /** Not these tools, by id. Wins over `enabledTools`. */
  declare readonly disabledTools: readonly string[];
  /** Only tools with at least one of these tags; `undefined` is whatever the tags. */
  declare readonly allowedTags: readonly string[] | undefined;
  #key: string | undefined;

  /** @throws {TypeError} If a field is unknown or wrong. */
  constructor(
    fields: ToolAvailabilityFields = {},
    base: CompleteAvailabilityFields = DEFAULT_AVAILABILITY,
  ) {
    Object.assign(this, readAvailabilityFields(fields, base));
    Object.freeze(this);
  }

  /** Starts a builder from the default context. */
  static create(): ToolAvailabilityContextBuilder {
    return new ToolAvailabilityContextBuilder();
  }

  /**
   * Reads a context that came as JSON: from an HTTP query, a header, a C host.
   *
   * @throws {TypeError} If a field is unknown or wrong. The message names its JSON Pointer.
   */
  static fromJSON(value: unknown): ToolAvailabilityContext {
    return new ToolAvailabilityContext(value as ToolAvailabilityFields);
  }

  /** The context that `input` is, builds or describes. */
  static from(input: ToolAvailabilityInput): ToolAvailabilityContext {
    if (input instanceof ToolAvailabilityContext) return input;
    if (input instanceof ToolAvailabilityContextBuilder) return input.build();
    // What another copy of plue made is known by its methods.
    const { build, toJSON } = input as Partial<ToolAvailabilityContextBuilder> & {
      toJSON?(): unknown;
    };
    if (typeof build === "function") return ToolAvailabilityContext.from(build.call(input));
    return ToolAvailabilityContext.fromJSON(
      typeof toJSON === "function" ? toJSON.call(input) : input,
    );
  }

  /** The same context with some fields changed. A field given as `undefined` becomes the default. */
  with(changes: ToolAvailabilityFields): ToolAvailabilityContext {
    return new ToolAvailabilityContext(changes, this);
  }

  /** The fields that differ from the default, in a fixed order. */
  toJSON(): ToolAvailabilityFields {
    const json: Record<string, unknown> = {};
    for (const field of AVAILABILITY_FIELDS) {
      const value = this[field];
      // An empty list is the default of what removes, and everything but the default of what keeps.
      const isDefault = Array.isArray(value) && value.length === 0
        ? DEFAULT_AVAILABILITY[field] !== undefined
        : value === DEFAULT_AVAILABILITY[field];
      if (!isDefault) json[field] = value;
    }
    return json;
  }

  /** The same string for contexts that say the same. For caches. */
  get key(): string {
    return this.#key ??= JSON.stringify(this.toJSON());
  }
}

/**
 * Builds a context step by step. Lists add up; flags and the risk level are set. It is accepted
 * wherever a context is.
 */
export class ToolAvailabilityContextBuilder {
  #context: ToolAvailabilityContext = ToolAvailabilityContext.default;

  /** Says whether a folder is open. */
  withWorkspace(has: boolean): this {
    return this.#with({ hasWorkspace: has });
  }

  /** Says whether commands can be run. */
  withTerminal(has: boolean): this {
    return this.#with({ hasTerminal: has });
  }

  /** Says whether an editor is open. */
  withEditor(has: boolean): this {
    return this.#with({ hasEditor: has });
  }

  /** Says whether there is a git repository. */
  withGit(has: boolean): this {
    return this.#with({ hasGit: has });
  }

  /** Permits only tools that change nothing. */
  withReadOnly(only = true): this {
    return this.#with({ readOnly: only });
  }

  /** Permits tools up to this risk. */
  withMaxRiskLevel(level: RiskLevel): this {
    return this.#with({ maxRiskLevel: level });
  }

  /** Permits only tools of these categories. */
  includeCategories(...categories: readonly string[]): this {
    return this.#add("includedCategories", categories);
  }

  /** Permits no tools of these categories. */
  excludeCategories(...categories: readonly string[]): this {
    return this.#add("excludedCategories", categories);
  }

  /** Permits only these tools, by id. */
  enableTools(...ids: readonly string[]): this {
    return this.#add("enabledTools", ids);
  }

  /** Does not permit these tools, by id. */
  disableTools(...ids: readonly string[]): this {
    return this.#add("disabledTools", ids);
  }

  /** Permits only tools with at least one of these tags. */
  allowTags(...tags: readonly string[]): this {
    return this.#add("allowedTags", tags);
  }

  /** The context as it stands. The builder can go on; what was built does not change. */
  build(): ToolAvailabilityContext {
    return this.#context;
  }

  #with(changes: ToolAvailabilityFields): this {
    this.#context = this.#context.with(changes);
    return this;
  }

  #add(
    field:
      | "includedCategories"
      | "excludedCategories"
      | "enabledTools"
      | "disabledTools"
      | "allowedTags",
    items: readonly string[],
  ): this {
    return this.#with({ [field]: [...this.#context[field] ?? [], ...items] });
  }
}
