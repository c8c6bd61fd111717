/** The tools of a rule: patterns of ids, or criteria of a selection; the labels and rules of a tool. */

import { checkSelection, type SelectionCriteria, selectionSteps } from "../../select/mod.ts";
import * as check from "../../tool/mod.ts";
import { isObject, isWord, type Tool } from "../../tool/mod.ts";
import type { Rule, ToolRules } from "./rule.ts";

/** Tools by id or alias, in which `*` is any text, or by criteria: `{ tagsAny: ["write"] }`. */
export type ToolPattern = string | readonly string[] | SelectionCriteria;
type Matcher = (tool: Tool) => boolean;

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

const LABELS = { produces: checkLabels, reads: checkLabels, sends: check.checkFlag };

export function readLabels(action: string, labels: object): check.ToolLabels {
  return check.readFields(action, labels, LABELS);
}

export type LabelPattern = readonly [matches: Matcher, labels: check.ToolLabels];

export function rulesOf(
  tool: Tool,
  list: readonly Rule[],
  patterns: readonly LabelPattern[],
): ToolRules {
  const chain = check.toolsBehind(tool);
  const labels = labelsOf(chain, patterns);
  // A function that throws must not exempt a tool.
  const rulesFor = (concerns: (rule: Rule, one: Tool) => unknown) =>
    list.filter((rule) =>
      chain.some((one) => check.attemptOr<unknown>(true, () => concerns(rule, one)) !== false)
    );
  const applied = rulesFor((rule, one) => rule.appliesTo?.(one));
  const remembering = rulesFor((rule, one) => rule.remembers?.(one) ?? false);
  return {
    ...{ tool: toolBehind(tool), labels, applied },
    usesSession: applied.some(({ usesSession }) => usesSession),
    began: [
      ...[...labels.produces, ...labels.reads].map((label) => `label ${label}`),
      ...remembering.map(({ name }) => `began ${name}`),
    ],
    succeeded: remembering.map(({ name }) => `succeeded ${name}`),
  };
}

export function toolBehind(tool: Tool): Tool {
  return check.toolsBehind(tool).at(-1) ?? tool;
}

/**
 * Returns the labels of a tool: the fields of the operator's labels for the tool or a view of it, else
 * its own labels. The results of an imported tool are untrusted, and its arguments leave the system
 * unless its pinned annotations have `openWorldHint: false`.
 */
function labelsOf(
  chain: readonly Tool[],
  patterns: readonly LabelPattern[],
): Required<check.ToolLabels> {
  const original = chain.at(-1) as Tool;
  const { id, labels, meta, annotations } = original;
  const isImported = isObject(meta?.["provider"]) && "source" in meta["provider"];
  const sends = !(check.isPinned(original) && annotations.openWorldHint === false);
  const implied = isImported ? { produces: ["untrusted"], sends } : {};
  const own = readLabels(`use the labels of "${id}"`, labels ?? implied);
  const [, configured] = patterns.find(([matches]) => chain.some(matches)) ?? [];
  return { produces: [], reads: [], sends: false, ...own, ...configured };
}
