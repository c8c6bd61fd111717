/**
 * A selection says which tools a caller sees: data and predicates. Everything given must hold;
 * what is left out is not asked.
 *
 * @module
 */

import {
  type Check,
  checkRisk,
  describeThrown,
  isWord,
  must,
  refuse,
  type RiskLevel,
} from "../tool/mod.ts";
import { ToolAvailabilityContext, type ToolAvailabilityInput } from "./availability_context.ts";
import { checkFunctions, checkIds, checkWords, listOf, readPlain } from "./checks.ts";
import type { ToolFilter } from "./filters.ts";
import type { ToolPolicy } from "./policies.ts";

/** Which tools a caller sees. An empty list is a list: `allowIds: []` keeps nothing. */
export interface Selection {
  /** What the place offers and permits. */
  readonly context?: ToolAvailabilityInput | undefined;
  /**
   * The caller's role. `null` is a caller without one, who sees only tools that list no roles.
   * Absent: not asked, as for trusted local code.
   */
  readonly role?: string | null | undefined;
  /** The scopes that the caller holds; `[]` is none. Absent: not asked. */
  readonly scopes?: readonly string[] | undefined;
  /** Only tools of this namespace, or of one of these. */
  readonly namespace?: string | readonly string[] | undefined;
  /** Only these tools, by id. */
  readonly allowIds?: readonly string[] | undefined;
  /** Not these tools, by id. Wins over `allowIds`. */
  readonly denyIds?: readonly string[] | undefined;
  /** Only tools of this risk or less. */
  readonly maxRisk?: RiskLevel | undefined;
  /** Only tools of these categories. */
  readonly categories?: readonly string[] | undefined;
  /** No tools of these categories. */
  readonly excludeCategories?: readonly string[] | undefined;
  /** Only tools that carry at least one of these tags. */
  readonly tagsAny?: readonly string[] | undefined;
  /** Only tools that carry all of these tags. */
  readonly tagsAll?: readonly string[] | undefined;
  /** Only tools that every one of these keeps, asked in this order. */
  readonly filters?: readonly ToolFilter[] | undefined;
  /** Only tools that every one of these allows, asked last, in this order. */
  readonly policies?: readonly ToolPolicy[] | undefined;
}

/** A selection that was checked and copied: frozen, lists sorted, the context built. */
export interface CheckedSelection extends Selection {
  readonly context?: ToolAvailabilityContext;
  readonly namespace?: readonly string[];
}

const checkContext = must(
  "an availability context",
  (value) => typeof value === "object" && value !== null,
);

const CHECKS = {
  context: (action: string, value: unknown, place: string): ToolAvailabilityContext => {
    const input = checkContext(action, value, place);
    try {
      return ToolAvailabilityContext.from(input);
    } catch (cause) {
      refuse(action, `${place} is wrong. ${describeThrown(cause)}`, cause);
    }
  },
  role: must(
    "a string that is not empty, or null for a caller without a role",
    (value): value is string | null => value === null || isWord(value),
  ),
  scopes: checkWords,
  namespace: (action: string, value: unknown, place: string): readonly string[] =>
    checkWords(action, typeof value === "string" ? [value] : value, place),
  allowIds: checkIds,
  denyIds: checkIds,
  maxRisk: checkRisk,
  categories: checkWords,
  excludeCategories: checkWords,
  tagsAny: checkWords,
  tagsAll: checkWords,
  filters: checkFunctions as Check<readonly ToolFilter[]>,
  policies: listOf("a policy, with a name and an allow function", isPolicy),
} satisfies { readonly [Field in keyof Required<Selection>]: Check };

/**
 * Checks a selection and copies it, so that nobody can change it afterwards.
 *
 * @throws {TypeError} If a field is unknown or wrong. The message names its JSON Pointer.
 */
export function checkSelection(selection: Selection): CheckedSelection {
  return Object.freeze(readPlain("select tools", selection, CHECKS));
}

/**
 * A string that is the same for selections that say the same, in whatever order. `undefined` for a
 * selection with filters or policies: what a function does cannot be told from outside.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { selectionKey } from "@plue/tools";
 *
 * assert.equal(
 *   selectionKey({ tagsAny: ["web", "files"], maxRisk: "low" }),
 *   selectionKey({ maxRisk: "low", tagsAny: ["files", "web"] }),
 * );
 * assert.equal(selectionKey({ filters: [() => true] }), undefined);
 * ```
 *
 * @throws {TypeError} If a field is unknown or wrong.
 */
export function selectionKey(selection: Selection): string | undefined {
  const copy = checkSelection(selection);
  if (copy.filters?.length || copy.policies?.length) return undefined;
  const { filters: _filters, policies: _policies, ...data } = copy;
  return JSON.stringify(data);
}

function isPolicy(value: unknown): value is ToolPolicy {
  const { name, allow } = (value ?? {}) as Partial<ToolPolicy>;
  return typeof name === "string" && typeof allow === "function";
}
