/**
 * What the place where tools would run offers and permits: is there a workspace, a terminal, an
 * editor, a git repository; which risk, which categories, which tools.
 *
 * @module
 */

import { type Check, checkFlag, checkRisk, must, type RiskLevel } from "../tool/mod.ts";
import {
  checkCategories,
  checkIds,
  checkPlain,
  checkWords,
  type NameList,
  readPlain,
} from "./checks.ts";

/** What a place offers and permits, with every field decided. The defaults remove nothing. */
export interface CompleteAvailabilityFields {
  /**
   * A folder is open. `false` removes the category `workspace`.
   *
   * @default {true}
   */
  readonly hasWorkspace: boolean;
  /**
   * Commands can be run. `false` removes the category `terminal`.
   *
   * @default {true}
   */
  readonly hasTerminal: boolean;
  /**
   * An editor is open. `false` removes the category `editor`.
   *
   * @default {true}
   */
  readonly hasEditor: boolean;
  /**
   * The workspace is a git repository. `false` removes the category `git`.
   *
   * @default {true}
   */
  readonly hasGitRepository: boolean;
  /**
   * The highest risk that is permitted.
   *
   * @default {"critical"}
   */
  readonly maxRiskLevel: RiskLevel;
  /** Only tools of these categories. `undefined`: of every category, and of none. */
  readonly includedCategories: readonly string[] | undefined;
  /** No tools of these categories. */
  readonly excludedCategories: readonly string[];
  /** Only these tools, by id. `undefined`: every tool. */
  readonly enabledToolIds: readonly string[] | undefined;
  /** Not these tools, by id. Wins over `enabledToolIds`. */
  readonly disabledToolIds: readonly string[];
  /** Only tools that carry all of these tags. */
  readonly requiredTags: readonly string[];
  /** Only tools that carry at least one of these tags. `undefined`: whatever the tags. */
  readonly allowedTags: readonly string[] | undefined;
  /**
   * The model that reads the descriptions, as its provider names it. This and the next two remove
   * nothing: they are told to tools whose description is a function.
   */
  readonly model: string | undefined;
  /** The model's provider, such as `anthropic`. */
  readonly provider: string | undefined;
  /** The language of the descriptions, such as `de` or `pt-BR`. */
  readonly locale: string | undefined;
}

/** What a place offers and permits, as it is given. Every field may be left out. */
export type ToolAvailabilityFields = {
  readonly [Field in keyof CompleteAvailabilityFields]?:
    | (CompleteAvailabilityFields[Field] extends readonly string[] | undefined ? NameList
      : CompleteAvailabilityFields[Field])
    | undefined;
};

/** All that is accepted as a context: the class, its builder, or its fields. */
export type ToolAvailabilityInput =
  | ToolAvailabilityContext
  | ToolAvailabilityContextBuilder
  | ToolAvailabilityFields;

const checkReaderField: Check<string> = must(
  "1 to 128 letters, digits or signs of ASCII",
  (value): value is string => typeof value === "string" && /^[!-~]{1,128}$/.test(value),
);

const CHECKS = {
  hasWorkspace: checkFlag,
  hasTerminal: checkFlag,
  hasEditor: checkFlag,
  hasGitRepository: checkFlag,
  maxRiskLevel: checkRisk,
  includedCategories: checkCategories,
  excludedCategories: checkCategories,
  enabledToolIds: checkIds,
  disabledToolIds: checkIds,
  requiredTags: checkWords,
  allowedTags: checkWords,
  model: checkReaderField,
  provider: checkReaderField,
  locale: checkReaderField,
} satisfies { readonly [Field in keyof CompleteAvailabilityFields]: Check };

const ACTION = "read an availability context";

/** The context that removes nothing. */
const DEFAULTS: CompleteAvailabilityFields = Object.freeze({
  hasWorkspace: true,
  hasTerminal: true,
  hasEditor: true,
  hasGitRepository: true,
  maxRiskLevel: "critical",
  includedCategories: undefined,
  excludedCategories: Object.freeze([]),
  enabledToolIds: undefined,
  disabledToolIds: Object.freeze([]),
  requiredTags: Object.freeze([]),
  allowedTags: undefined,
  model: undefined,
  provider: undefined,
  locale: undefined,
});

const FIELDS = Object.keys(CHECKS) as readonly (keyof CompleteAvailabilityFields)[];

export function isContextField(field: string): boolean {
  return Object.hasOwn(CHECKS, field);
}

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
  /**
   * Only tools with the tag `read-only`. A `readOnlyHint` is not enough: a foreign server can claim
   * it.
   */
  static readonly readOnly: ToolAvailabilityContext = new ToolAvailabilityContext({
    requiredTags: ["read-only"],
  });

  declare readonly hasWorkspace: boolean;
  declare readonly hasTerminal: boolean;
  declare readonly hasEditor: boolean;
  declare readonly hasGitRepository: boolean;
  declare readonly maxRiskLevel: RiskLevel;
  declare readonly includedCategories: readonly string[] | undefined;
  declare readonly excludedCategories: readonly string[];
  declare readonly enabledToolIds: readonly string[] | undefined;
  declare readonly disabledToolIds: readonly string[];
  declare readonly requiredTags: readonly string[];
  declare readonly allowedTags: readonly string[] | undefined;
  declare readonly model: string | undefined;
  declare readonly provider: string | undefined;
  declare readonly locale: string | undefined;
  #key: string | undefined;

  /**
   * Lists come out sorted, each item once. A field that is `undefined` has the value of `base`.
   *
   * @throws {TypeError} If a field is unknown or wrong. The message names its JSON Pointer.
   */
  constructor(
    fields: ToolAvailabilityFields = {},
    base: CompleteAvailabilityFields = DEFAULTS,
  ) {
    Object.assign(this, base, readPlain(ACTION, fields, CHECKS));
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
    return new ToolAvailabilityContext(checkPlain(ACTION, value, "it"));
  }

  /** The context that `input` is, builds or describes. */
  static from(input: ToolAvailabilityInput): ToolAvailabilityContext {
    if (input instanceof ToolAvailabilityContext) return input;
    if (input instanceof ToolAvailabilityContextBuilder) return input.build();
    // What another copy of plue made is known by its methods.
    const { build, toJSON } = Object(input) as Partial<ToolAvailabilityContextBuilder> & {
      toJSON?(): unknown;
    };
    if (typeof build === "function") return ToolAvailabilityContext.from(build.call(input));
    return ToolAvailabilityContext.fromJSON(
      typeof toJSON === "function" ? toJSON.call(input) : input,
    );
  }

  /**
   * The same context with some fields changed. A field given as `undefined` or `null` keeps its
   * value, so that an optional that is passed on lifts no limit. In JSON, `null` is an error.
   *
   * @throws {TypeError} If a field is unknown or wrong.
   */
  with(
    changes: {
      readonly [Field in keyof ToolAvailabilityFields]: ToolAvailabilityFields[Field] | null;
    },
  ): ToolAvailabilityContext {
    const given = Object.entries(checkPlain("change an availability context", changes, "it"));
    return new ToolAvailabilityContext(
      Object.fromEntries(given.filter(([, value]) => value !== null)),
      this,
    );
  }

  /** The fields that differ from the default, in a fixed order. */
  toJSON(): ToolAvailabilityFields {
    const json: Record<string, unknown> = {};
    for (const field of FIELDS) {
      const value = this[field];
      // An empty list is the default of what removes, and everything but the default of what keeps.
      const isDefault = Array.isArray(value) && value.length === 0
        ? DEFAULTS[field] !== undefined
        : value === DEFAULTS[field];
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
  withGitRepository(has: boolean): this {
    return this.#with({ hasGitRepository: has });
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
    return this.#add("enabledToolIds", ids);
  }

  /** Does not permit these tools, by id. */
  disableTools(...ids: readonly string[]): this {
    return this.#add("disabledToolIds", ids);
  }

  /** Permits only tools with all of these tags. */
  requireTags(...tags: readonly string[]): this {
    return this.#add("requiredTags", tags);
  }

  /** Permits only tools with at least one of these tags. */
  allowTags(...tags: readonly string[]): this {
    return this.#add("allowedTags", tags);
  }

  /** Says which model reads the descriptions. */
  withModel(model: string): this {
    return this.#with({ model });
  }

  /** Says whose model reads the descriptions, such as `anthropic`. */
  withProvider(provider: string): this {
    return this.#with({ provider });
  }

  /** Says in which language the descriptions are, such as `de`. */
  withLocale(locale: string): this {
    return this.#with({ locale });
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
      | "enabledToolIds"
      | "disabledToolIds"
      | "requiredTags"
      | "allowedTags",
    items: readonly string[],
  ): this {
    return this.#with({ [field]: [...this.#context[field] ?? [], ...items] });
  }
}
