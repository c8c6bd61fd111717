/**
 * What the keyword tables and feature tables of the profiles are written with.
 *
 * @module
 */

import type { JsonSchema } from "../../tool/mod.ts";
import { KEYWORD_FORMS, type KeywordForm } from "../keyword_forms.ts";
import {
  type Feature,
  FEATURES,
  type FeatureTable,
  type KeywordRule,
  type KeywordTable,
  type ToolView,
} from "../profile.ts";

/** Sent; the target holds the model to it. */
export const ENFORCED: KeywordRule = Object.freeze({ action: "keep", enforcement: "enforced" });
/** Sent; the model reads it. */
export const ADVISORY: KeywordRule = Object.freeze({ action: "keep", enforcement: "advisory" });
/** Sent; the target accepts it and looks away. */
export const IGNORED: KeywordRule = Object.freeze({ action: "keep", enforcement: "ignored" });
/** Left out: the target refuses it, or throws it away. */
export const DROPPED: KeywordRule = Object.freeze({ action: "drop", enforcement: "ignored" });
/** The tool cannot be sent. In a strict mode it is sent without. */
export const REJECTED: KeywordRule = Object.freeze({ action: "reject", enforcement: "ignored" });

/** Sent as something else. */
export function into(into: string): KeywordRule {
  return Object.freeze({ action: "transform", enforcement: "enforced", into });
}

/** A rule that the provider does not document. */
export function unsure(rule: KeywordRule): KeywordRule {
  return Object.freeze({ ...rule, uncertain: true });
}

/**
 * A table with one rule for every form. `nullable` goes nowhere: a schema that has it does not
 * accept `null` for it, and a model that reads it believes so.
 */
export function every(rule: KeywordRule): KeywordTable {
  const table: Partial<Record<KeywordForm, KeywordRule>> = {};
  for (const form of Object.keys(KEYWORD_FORMS)) table[form as KeywordForm] = rule;
  return { ...table as KeywordTable, nullable: DROPPED };
}

/** A table with other rules for some forms. */
export function table(
  base: KeywordTable,
  ...changes: readonly (readonly [rule: KeywordRule, forms: readonly KeywordForm[]])[]
): KeywordTable {
  const result: Record<KeywordForm, KeywordRule> = { ...base };
  for (const [rule, forms] of changes) for (const form of forms) result[form] = rule;
  return Object.freeze(result);
}

/** A feature table: what the target has of its own; descriptions can say that it is deprecated. */
export function features(native: readonly Feature[] = []): FeatureTable {
  const result: Partial<Record<Feature, FeatureTable[Feature]>> = {};
  for (const feature of Object.keys(FEATURES) as Feature[]) {
    result[feature] = native.includes(feature)
      ? "native"
      : feature === "deprecated"
      ? "described"
      : "none";
  }
  return Object.freeze(result as FeatureTable);
}

/**
 * A target that reads the schema to the model as text. Draft-07 forms are rewritten for every
 * target, and an object root is what every target wants.
 */
export const READ_BY_THE_MODEL: KeywordTable = every(ADVISORY);

/** The description, for targets where it may be left out. */
export function descriptionOf(view: ToolView): { description?: string } {
  return view.sendsDescription ? { description: view.description } : {};
}

/** A schema where only objects have a place. */
export function asObject(schema: JsonSchema): { [keyword: string]: unknown } {
  if (typeof schema === "boolean") return schema ? {} : { not: {} };
  return schema as { [keyword: string]: unknown };
}
