/** The criteria as texts for people: the flag and the effect of each. The core omits them. */

import { type Check, checkFlag, checkRisk } from "../tool/mod.ts";
import * as criteria from "./criteria.ts";
import type { Selection } from "./selection.ts";

export type VocabularyName = criteria.CriterionName | (typeof criteria.READER_FIELDS)[number];

export const VOCABULARY: {
  readonly [Name in VocabularyName]: { readonly flag: string; readonly text: string };
} = {
  allowIds: { flag: "--only <id>", text: "only these tools, by id" },
  denyIds: { flag: "--without <id>", text: "not these tools, by id or alias" },
  maxRisk: { flag: "--max-risk <level>", text: "only tools of this risk or lower" },
  categories: { flag: "--category <name>", text: "only tools of one of these categories" },
  excludeCategories: { flag: "--not-category <name>", text: "no tools of these categories" },
  tagsAny: { flag: "--any-tag <tag>", text: "only tools with one of these tags" },
  tagsAll: { flag: "--tag <tag>", text: "only tools with all of these tags" },
  hasWorkspace: { flag: "--no-workspace", text: "no tools that need a workspace" },
  hasTerminal: { flag: "--no-terminal", text: "no tools that need a terminal" },
  hasEditor: { flag: "--no-editor", text: "no tools that need an editor" },
  hasGitRepository: { flag: "--no-git", text: "no tools that need a git repository" },
  role: { flag: "--role <role>", text: "only tools that a caller with this role may use" },
  scopes: { flag: "--scope <scope>", text: "only tools for which these scopes are enough" },
  namespace: { flag: "--namespace <name>", text: "only tools of one of these namespaces" },
  model: { flag: "--model <name>", text: "the model that reads the descriptions" },
  provider: { flag: "--provider <name>", text: "the provider of that model" },
  locale: { flag: "--locale <tag>", text: "the language of the descriptions, such as de or pt-BR" },
};

export interface ValueKind {
  /** How a text is parsed: a list is separated by commas, a flag is `true` or `false`. */
  readonly shape: "list" | "flag" | "text";
  readonly check: Check;
}

/** The checks of values that are one text. Other values are lists or flags. */
const OF_TEXTS: readonly Check[] = [checkRisk, criteria.checkRole, criteria.checkReader];

export function valueKind(name: VocabularyName): ValueKind {
  const check = isReaderField(name) ? criteria.checkReader : criteria.CRITERIA[name].check;
  const shape = check === checkFlag ? "flag" : OF_TEXTS.includes(check) ? "text" : "list";
  return { shape, check };
}

export function isReaderField(
  name: VocabularyName,
): name is (typeof criteria.READER_FIELDS)[number] {
  return (criteria.READER_FIELDS as readonly string[]).includes(name);
}

/** Returns the selection with these values, some in its context; `undefined` without values. */
export function selectionFrom(
  values: { readonly [Name in VocabularyName]?: unknown },
): Selection | undefined {
  const selection: Record<string, unknown> = {};
  const context: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const isInContext = isReaderField(name as VocabularyName) ||
      criteria.CRITERIA[name as criteria.ContextFlag].step === "context";
    (isInContext ? context : selection)[name] = value;
  }
  if (Object.keys(context).length > 0) selection["context"] = context;
  return Object.keys(selection).length > 0 ? selection : undefined;
}
