/**
 * The fields of an availability context, and how untrusted data becomes them.
 *
 * @module
 */

import { type Check, checkFlag, checkRisk, type RiskLevel } from "../tool/mod.ts";
import { checkIds, checkWords, readPlain } from "./checks.ts";

/** What a place offers and permits. Every field may be left out; the default removes nothing. */
export interface ToolAvailabilityFields {
  /**
   * A folder is open. `false` removes the categories `workspace` and `filesystem`.
   *
   * @default {true}
   */
  readonly hasWorkspace?: boolean | undefined;
  /**
   * Commands can be run. `false` removes the category `terminal`.
   *
   * @default {true}
   */
  readonly hasTerminal?: boolean | undefined;
  /**
   * An editor is open. `false` removes the category `editor`.
   *
   * @default {true}
   */
  readonly hasEditor?: boolean | undefined;
  /**
   * The workspace is a git repository. `false` removes the category `git`.
   *
   * @default {true}
   */
  readonly hasGit?: boolean | undefined;
  /**
   * Keeps only the tools whose annotations say `readOnlyHint`.
   *
   * @default {false}
   */
  readonly readOnly?: boolean | undefined;
  /**
   * The highest risk that is permitted.
   *
   * @default {"critical"}
   */
  readonly maxRiskLevel?: RiskLevel | undefined;
  /** Only tools of these categories. Absent: of every category, and of none. */
  readonly includedCategories?: readonly string[] | undefined;
  /** No tools of these categories. */
  readonly excludedCategories?: readonly string[] | undefined;
  /** Only these tools, by id. Absent: every tool. */
  readonly enabledTools?: readonly string[] | undefined;
  /** Not these tools, by id. Wins over `enabledTools`. */
  readonly disabledTools?: readonly string[] | undefined;
  /** Only tools that carry at least one of these tags. Absent: whatever the tags. */
  readonly allowedTags?: readonly string[] | undefined;
}

/** The same with every field decided: what a context holds. */
export interface CompleteAvailabilityFields {
  readonly hasWorkspace: boolean;
  readonly hasTerminal: boolean;
  readonly hasEditor: boolean;
  readonly hasGit: boolean;
  readonly readOnly: boolean;
  readonly maxRiskLevel: RiskLevel;
  readonly includedCategories: readonly string[] | undefined;
  readonly excludedCategories: readonly string[];
  readonly enabledTools: readonly string[] | undefined;
  readonly disabledTools: readonly string[];
  readonly allowedTags: readonly string[] | undefined;
}

const CHECKS = {
  hasWorkspace: checkFlag,
  hasTerminal: checkFlag,
  hasEditor: checkFlag,
  hasGit: checkFlag,
  readOnly: checkFlag,
  maxRiskLevel: checkRisk,
  includedCategories: checkWords,
  excludedCategories: checkWords,
  enabledTools: checkIds,
  disabledTools: checkIds,
  allowedTags: checkWords,
} satisfies { readonly [Field in keyof CompleteAvailabilityFields]: Check };

/** The context that removes nothing. */
export const DEFAULT_AVAILABILITY: CompleteAvailabilityFields = Object.freeze({
  hasWorkspace: true,
  hasTerminal: true,
  hasEditor: true,
  hasGit: true,
  readOnly: false,
  maxRiskLevel: "critical",
  includedCategories: undefined,
  excludedCategories: Object.freeze([]),
  enabledTools: undefined,
  disabledTools: Object.freeze([]),
  allowedTags: undefined,
});

/** The names of the fields, in the order in which they are written. */
export const AVAILABILITY_FIELDS: readonly (keyof CompleteAvailabilityFields)[] = Object.freeze(
  Object.keys(CHECKS) as (keyof CompleteAvailabilityFields)[],
);

/**
 * Checks fields that came from anywhere, and completes them from `base`. Lists come out sorted,
 * each item once. A field that is there and `undefined` returns to its default.
 *
 * @throws {TypeError} If a field is unknown or wrong. The message names its JSON Pointer.
 */
export function readAvailabilityFields(
  value: ToolAvailabilityFields,
  base: CompleteAvailabilityFields,
): CompleteAvailabilityFields {
  const read: { -readonly [Field in keyof CompleteAvailabilityFields]?: unknown } = readPlain(
    "read an availability context",
    value,
    CHECKS,
  );
  for (const field of AVAILABILITY_FIELDS) {
    if (read[field] === undefined) {
      read[field] = (field in value ? DEFAULT_AVAILABILITY : base)[field];
    }
  }
  // CHECKS has every field, and each check answers with the field's type.
  return read as CompleteAvailabilityFields;
}
