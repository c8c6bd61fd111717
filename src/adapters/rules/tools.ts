/** The tools of a rule: patterns of ids, or criteria of a selection; and the labels of tools. */

import { checkSelection, type SelectionCriteria, selectionSteps } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { isObject, isWord, type Tool } from "../../tool/mod.ts";

/** Tools by id or alias, in which `*` is any text, or by criteria: `{ tagsAny: ["write"] }`. */
export type ToolPattern = string | readonly string[] | SelectionCriteria;
type Matcher = (tool: Tool) => boolean;

/** Returns the predicate of a pattern. @throws {TypeError} If it is invalid. */
export function toolMatcher(action: string, pattern: unknown, place: string): Matcher {
  const ids: unknown = isWord(pattern) ? [pattern] : pattern;
  if (check.isListOf(ids, isWord) && ids.length > 0) {
    const escape = (text: string): string => text.replace(/\W/g, "\\$&");
    const globs = ids.map((glob) => new RegExp(`^${glob.split("*").map(escape).join(".*")}$`, "s"));
    return ({ id, aliases }) =>
      [id, ...aliases].some((name) => globs.some((one) => one.test(name)));
  }
  if (!isObject(pattern) || Object.keys(pattern).length === 0) {
    check.fail(action, `${place} must be an id such as "bank:*", or criteria of a selection`);
  }
  const { filters, policies, ...criteria } = checkSelection(pattern);
  if (filters ?? policies) check.fail(action, `${place} must have no filters and policies`);
  const steps = selectionSteps(criteria);
  return (tool) => steps.every(({ keeps }) => keeps(tool));
}

const checkLabels = check.createCheck(
  "a list of at most 16 labels of 1 to 64 characters",
  (value): value is readonly string[] =>
    check.isListOf(value, isWord) && value.length <= 16 &&
    value.every(({ length }) => length <= 64),
);

/** The operator's labels of the tools that match. */
export type LabelPattern = readonly [matches: Matcher, labels: check.ToolLabels];

export interface LabelledTool {
  readonly tool: Tool;
  readonly labels: Required<check.ToolLabels>;
}

const LABELS = { produces: checkLabels, reads: checkLabels, sends: check.checkFlag };

/** Checks labels. @throws {TypeError} */
export function readLabels(action: string, given: object): check.ToolLabels {
  return check.readFields(action, given, LABELS);
}

/**
 * Returns the labels of a tool, or of a view and its targets: the fields of the operator's
 * labels, else the own labels of the original. The results of an imported tool are untrusted, and its
 * arguments leave the system unless its pinned annotations have `openWorldHint: false`.
 */
export function labelsOf(
  tools: readonly Tool[],
  patterns: readonly LabelPattern[],
): LabelledTool["labels"] {
  const { id, labels, meta, annotations } = tools.at(-1) as Tool;
  const isImported = isObject(meta?.["provider"]) && "source" in meta["provider"];
  const sends = !(check.isPinned(tools.at(-1) as Tool) && annotations.openWorldHint === false);
  const implied = isImported ? { produces: ["untrusted"], sends } : {};
  const own = readLabels(`use the labels of "${id}"`, labels ?? implied);
  const [, given] = patterns.find(([matches]) => tools.some(matches)) ?? [];
  return { produces: [], reads: [], sends: false, ...own, ...given };
}
