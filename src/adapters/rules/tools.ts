/** The tools of a rule: patterns of ids, or criteria of a selection; and the labels of tools. */

import { pointerSteps } from "../../schema/mod.ts";
import { checkSelection, type SelectionCriteria, selectionSteps } from "../../select/mod.ts";
import {
  checkFlag,
  createCheck,
  fail,
  isListOf,
  isObject,
  isPinned,
  isText,
  isWord,
  readFields,
  type Tool,
  type ToolLabels,
} from "../../tool/mod.ts";

/** Tools by id or alias, in which `*` is any text, or by criteria: `{ tagsAny: ["write"] }`. */
export type ToolPattern = string | readonly string[] | SelectionCriteria;
type Matcher = (tool: Tool) => boolean;

/** Returns the predicate of a pattern. @throws {TypeError} If it is invalid. */
export function toolMatcher(action: string, pattern: unknown, place: string): Matcher {
  const ids: unknown = isWord(pattern) ? [pattern] : pattern;
  if (isListOf(ids, isWord) && ids.length > 0) {
    return ({ id, aliases }) =>
      [id, ...aliases].some((name) => ids.some((glob) => matchesGlob(name, glob)));
  }
  if (!isObject(pattern) || Object.keys(pattern).length === 0) {
    fail(action, `${place} must be an id, in which "*" is any text, or criteria of a selection`);
  }
  const { filters, policies, ...criteria } = checkSelection(pattern);
  if (filters ?? policies) fail(action, `${place} must have no filters and policies`);
  const steps = selectionSteps(criteria);
  return (tool) => steps.every(({ keeps }) => keeps(tool));
}

function matchesGlob(text: string, glob: string): boolean {
  const [start = "", ...parts] = glob.split("*");
  const end = parts.pop();
  if (end === undefined) return text === glob;
  let at = start.length;
  for (const part of parts) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.startsWith(start) && text.endsWith(end) && at + end.length <= text.length;
}

/** Returns a tool and, for a view, the tools behind it. The original comes last. */
export function toolsBehind(tool: Tool): readonly Tool[] {
  return tool.view === undefined ? [tool] : [tool, ...toolsBehind(tool.view.tool)];
}

const checkLabels = createCheck(
  "a list of at most 16 labels of 1 to 64 characters",
  (value): value is readonly string[] =>
    isListOf(value, isWord) && value.length <= 16 && value.every(({ length }) => length <= 64),
);

/** The fields of labels that are present. */
export type GivenLabels = Partial<Required<ToolLabels>>;

/** Checks labels. @throws {TypeError} */
export function readLabels(action: string, given: object): GivenLabels {
  const checks = { produces: checkLabels, reads: checkLabels, sends: checkFlag };
  return readFields(action, given, checks) as GivenLabels;
}

/**
 * Returns the own labels of a tool. The results of an imported tool are untrusted, and its arguments
 * leave the system unless its pinned annotations have `openWorldHint: false`.
 */
export function ownLabels(tool: Tool): Required<ToolLabels> {
  const { id, labels, meta, annotations } = tool;
  const isImported = isObject(meta?.["provider"]) && "source" in meta["provider"];
  const sends = !(isPinned(tool) && annotations.openWorldHint === false);
  const implied = isImported ? { produces: ["untrusted"], sends } : {};
  const own = readLabels(`use the labels of "${id}"`, labels ?? implied);
  return { produces: [], reads: [], sends: false, ...own };
}

/** Checks a JSON Pointer, and returns the function that reads the argument there. */
export function pointerReader(action: string, pointer: unknown, place: string) {
  if (!isText(pointer) || !/^(\/([^~/]|~[01])*)*$/.test(pointer)) {
    fail(action, `${place} must be a JSON Pointer such as "/amount"`);
  }
  const steps = pointerSteps(pointer);
  return (args: unknown): unknown => {
    let value = args;
    for (const step of steps) {
      // Only own members: "constructor" is not an argument.
      const parent: Record<string, unknown> = Object(value);
      if (!Object.hasOwn(parent, step)) return undefined;
      value = parent[step];
    }
    return value;
  };
}
