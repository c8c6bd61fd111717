/** The environment in which tools would run: its features, and the tools that it permits. */

import type { RiskLevel } from "../tool/mod.ts";
import {
  checkPlain,
  type CompleteAvailabilityFields,
  CONTEXT_CHECKS,
  CRITERIA,
  isOpen,
  type NameList,
  readContext,
} from "./criteria.ts";

type ContextField = keyof CompleteAvailabilityFields;

/** The fields of an environment. An omitted or `null` field has its default. */
export type ToolAvailabilityFields = {
  readonly [Field in ContextField]?:
    | (CompleteAvailabilityFields[Field] extends readonly string[] | undefined ? NameList
      : CompleteAvailabilityFields[Field])
    | undefined
    | null;
};

/** Anything that is accepted as a context: the class, its builder, or its fields. */
export type ToolAvailabilityInput =
  | ToolAvailabilityContext
  | ToolAvailabilityContextBuilder
  | ToolAvailabilityFields;

/** For each field, the value that removes no tool. */
const DEFAULTS = Object.fromEntries(
  Object.keys(CONTEXT_CHECKS).map((field) => [
    field,
    Object.values(CRITERIA).find(({ context }) => context === field)?.open,
  ]),
);

/** The fields. The constructor assigns them from the table of criteria. */
export interface ToolAvailabilityContext extends CompleteAvailabilityFields {}

/**
 * The features of an environment, and the tools that it permits, as immutable data.
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
 * assert.equal(context.hasTerminal, false);
 * assert.equal(ToolAvailabilityContext.fromJSON(context.toJSON()).key, context.key);
 * ```
 */
export class ToolAvailabilityContext {
  /** The full environment without restrictions. */
  static readonly default: ToolAvailabilityContext = new ToolAvailabilityContext();
  /** An environment without a workspace, and so without a git repository. */
  static readonly noWorkspace: ToolAvailabilityContext = new ToolAvailabilityContext({
    hasWorkspace: false,
    hasGitRepository: false,
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
  /** Only tools with the tag `read-only`, not with `readOnlyHint`, which any server can claim. */
  static readonly readOnly: ToolAvailabilityContext = new ToolAvailabilityContext({
    requiredTags: ["read-only"],
  });

  #key: string | undefined;

  /**
   * Lists are sorted, without duplicates. A field that is `undefined` or `null` has the value of
   * `base`.
   *
   * @throws {TypeError} If a field is unknown or invalid. The message contains its JSON Pointer.
   */
  constructor(
    fields: ToolAvailabilityFields = {},
    base: CompleteAvailabilityFields = DEFAULTS as never,
  ) {
    Object.assign(this, base, readContext(fields));
    Object.freeze(this);
  }

  /** Starts a builder from the default context. */
  static create(): ToolAvailabilityContextBuilder {
    return new ToolAvailabilityContextBuilder();
  }

  /**
   * Reads a context from JSON, for example from an HTTP query, a header or a C host. A field that
   * is `null` has its default.
   *
   * @throws {TypeError} If a field is unknown or invalid. The message contains its JSON Pointer.
   */
  static fromJSON(value: unknown): ToolAvailabilityContext {
    return new ToolAvailabilityContext(readContext(value));
  }

  /** Returns `input` if it is a context; else creates a context from a builder or from fields. */
  static from(input: ToolAvailabilityInput): ToolAvailabilityContext {
    return input instanceof ToolAvailabilityContext
      ? input
      : ToolAvailabilityContext.fromJSON(input);
  }

  /**
   * Returns a copy with some fields changed. A field that is `undefined` or `null` in `changes`
   * keeps its value, so that an omitted option of a caller removes no limit.
   *
   * @throws {TypeError} If a field is unknown or invalid.
   */
  with(changes: ToolAvailabilityFields): ToolAvailabilityContext {
    checkPlain("change an availability context", changes, "the argument");
    return new ToolAvailabilityContext(changes, this);
  }

  /** Returns the fields that differ from the default, in a fixed order. */
  toJSON(): ToolAvailabilityFields {
    const json: Record<string, unknown> = {};
    for (const [field, open] of Object.entries(DEFAULTS)) {
      const value = this[field as ContextField];
      if (!isOpen(value, open)) json[field] = value;
    }
    return json;
  }

  /** Returns a string for caches that is equal for equal contexts. */
  get key(): string {
    return this.#key ??= JSON.stringify(this.toJSON());
  }
}

/**
 * The methods that add a condition, created from the table of criteria. A method extends a list, and
 * replaces a flag or the risk.
 */
export interface ToolAvailabilityContextBuilder {
  /** Permits only these tools, by id. */
  enableTools(...ids: readonly string[]): this;
  /** Forbids these tools, by id. */
  disableTools(...ids: readonly string[]): this;
  /** Permits tools up to this risk. */
  withMaxRiskLevel(level: RiskLevel): this;
  /** Permits only tools of these categories. */
  includeCategories(...categories: readonly string[]): this;
  /** Forbids tools of these categories. */
  excludeCategories(...categories: readonly string[]): this;
  /** Permits only tools with all of these tags. */
  requireTags(...tags: readonly string[]): this;
  /** Sets whether a folder is open. */
  withWorkspace(isOpen: boolean): this;
  /** Sets whether commands can be run. */
  withTerminal(isThere: boolean): this;
  /** Sets whether an editor is open. */
  withEditor(isOpen: boolean): this;
  /** Sets whether there is a git repository. */
  withGitRepository(isThere: boolean): this;
  /** Sets the model that reads the descriptions. */
  withModel(model: string): this;
  /** Sets the model's provider, such as `anthropic`. */
  withProvider(provider: string): this;
  /** Sets the language of the descriptions. */
  withLocale(locale: string): this;
}

const METHODS = {
  enabledToolIds: "enableTools",
  disabledToolIds: "disableTools",
  maxRiskLevel: "withMaxRiskLevel",
  includedCategories: "includeCategories",
  excludedCategories: "excludeCategories",
  requiredTags: "requireTags",
  hasWorkspace: "withWorkspace",
  hasTerminal: "withTerminal",
  hasEditor: "withEditor",
  hasGitRepository: "withGitRepository",
  model: "withModel",
  provider: "withProvider",
  locale: "withLocale",
} satisfies { readonly [Field in ContextField]: keyof ToolAvailabilityContextBuilder };

/** Builds a context step by step. A builder is accepted instead of a context. */
export class ToolAvailabilityContextBuilder {
  #context: ToolAvailabilityContext = ToolAvailabilityContext.default;

  static {
    for (const [field, method] of Object.entries(METHODS)) {
      const isList = !method.startsWith("with");
      const add = function (this: ToolAvailabilityContextBuilder, ...args: unknown[]): unknown {
        const before = (this.#context[field as ContextField] ?? []) as readonly unknown[];
        this.#context = this.#context.with({ [field]: isList ? [...before, ...args] : args[0] });
        return this;
      };
      Object.defineProperty(this.prototype, method, { value: add });
    }
  }

  /** Returns the current context. Later changes of the builder do not change this context. */
  build(): ToolAvailabilityContext {
    return this.#context;
  }
}
