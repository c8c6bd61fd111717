/** The texts of issues, written for a model to act on. Values in them are clipped. */

import {
  clip,
  type Issue,
  isThenable,
  isWithinEdits,
  pointerStep,
  type StandardIssue,
  type StandardResult,
  type StandardSchema,
} from "../tool/mod.ts";
import { MAX_ISSUES } from "./engine.ts";

const MAX_LISTED = 10;
const MAX_COMPARED = 40;

const MAX_WORDS = 300;

/** Creates an issue, with a message such as "/city must be a string". */
export function issue(
  path: string,
  keyword: string,
  expected: string,
  verb: string = "be",
  remark: string = "",
): Issue {
  const subject = path === "" ? "The value" : path;
  return {
    path,
    keyword,
    expected: verb === "be" ? expected : `${verb} ${expected}`,
    message: `${subject} must ${verb} ${expected}${remark}`,
  };
}

/** The issue of an invalid value if the reason is not known. */
export function vagueIssue(): Issue {
  return issue("", "schema", "a value that its schema accepts");
}

/** The maximum number of steps of a check. A step takes about 20 ns. */
export const MAX_STEPS = 2_500_000;

export function tooCostlyIssue(): Issue {
  const why = `: its check takes more than ${MAX_STEPS} steps`;
  return issue("", "schema", "fewer or shorter parts", "have", why);
}

/** Names types in an issue: `a string`, or for several types `a string or null`. */
export function typeWords(types: readonly string[]): string {
  return orList(
    types.map((type) =>
      /^(null|undefined)$/.test(type) ? type : `${/^[aio]/.test(type) ? "an" : "a"} ${type}`
    ),
  );
}

export function quote(value: unknown): string {
  // Clips a long string first, so that it is not copied in whole.
  if (typeof value === "string") return JSON.stringify(clip(value));
  return clip(JSON.stringify(value) ?? typeof value);
}

/** Quotes the first values of a list, and adds a remark about the number of further values. */
export function quoteList(values: readonly unknown[], others: (count: number) => string): string {
  const more = values.length - MAX_LISTED;
  return values.slice(0, MAX_LISTED).map(quote).join(", ") + (more > 0 ? others(more) : "");
}

/** Joins words as `a`, `a or b`, or `a, b or c`. */
function orList(words: readonly string[]): string {
  const different = [...new Set(words)];
  return different.length < 2
    ? different.join("")
    : `${different.slice(0, -1).join(", ")} or ${different.at(-1)}`;
}

/** Returns a count with its noun, such as `1 item` or `2 properties`. */
export function counted(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : `${noun.replace(/ty$/, "tie")}s`}`;
}

/** The remark about an unknown property: the name that was probably meant, or the known names. */
export function nameHint(name: string, known: readonly string[]): string {
  const letters = lettersOf(name);
  const meant = known.find((candidate) => lettersOf(candidate) === letters) ??
    known.slice(0, 100).find((candidate) => isMisspelt(name, candidate));
  if (meant !== undefined) return `: did you mean ${quote(meant)}?`;
  return known.length === 0
    ? ": it has no properties"
    : `: it may have ${quoteList(known, () => " and others")}`;
}

/** Removes the differences between spellings: `filePath` and `file_path` become equal. */
function lettersOf(name: string): string {
  return clip(name, MAX_COMPARED).toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

function isMisspelt(name: string, candidate: string): boolean {
  const longest = Math.max(name.length, candidate.length);
  // A short name with two changed letters is probably another name.
  return longest > 2 && longest <= MAX_COMPARED &&
    isWithinEdits(name, candidate, longest < 6 ? 1 : 2);
}

/** The keywords whose issues distinguish the branches of a union. */
const DISTINCTIVE: ReadonlySet<string> = new Set(["type", "const", "enum", "anyOf", "oneOf"]);

/**
 * Returns the issues of a value that fits no branch of an `anyOf` or `oneOf`. The issues of all
 * branches would hide the necessary change. So the result has only the issues of the closest
 * branch, or one issue that names the branches. Each branch has at least one issue.
 */
export function unionIssues(
  keyword: string,
  path: string,
  forms: readonly (readonly Issue[])[],
): readonly Issue[] {
  const [first] = forms;
  if (first === undefined || forms.length === 1) return first ?? [];

  // Every branch has an issue at one pointer: a "kind" that is neither "circle" nor "square".
  for (const { path: place, keyword: kind } of first) {
    if (!DISTINCTIVE.has(kind)) continue;
    const shared = forms.map((form) =>
      form.find((one) => one.path === place && DISTINCTIVE.has(one.keyword))
    );
    if (shared.every((one) => one !== undefined)) {
      return [issue(place, keyword, clip(orList(shared.map((one) => one.expected)), MAX_WORDS))];
    }
  }

  // Prefers branches whose type matches the value, and among these a matching "kind".
  const distance = (form: readonly Issue[]): number =>
    form.some((one) => one.path === path && DISTINCTIVE.has(one.keyword))
      ? 2
      : form.some((one) => one.keyword === "const" || one.keyword === "enum")
      ? 1
      : 0;
  const least = Math.min(...forms.map(distance));
  const close = forms.filter((form) => distance(form) === least);
  const [only] = close;
  if (close.length === 1 && only !== undefined) return only;

  const words = close.map((form) =>
    form.slice(0, 3).map((one) =>
      one.path === path ? toVerb(one) : `${one.path} must ${toVerb(one)}`
    ).join(" and ")
  );
  const sentence = clip([...new Set(words)].join("; or "), MAX_WORDS);
  return [issue(path, keyword, `one of ${forms.length} forms: ${sentence}`, "fit")];
}

function toVerb(one: Issue): string {
  return one.message.slice(one.message.indexOf(" must ") + " must ".length);
}

// Standard Schemas: the library's own `validate` decides, because a library's schema may have rules
// that JSON Schema cannot express, fill in defaults and transform values.

const MAX_MESSAGE = 200;
const MAX_PATH = 64;

export type StandardOutcome =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly value?: undefined; readonly issues: readonly Issue[] };

/** Returns the library's value, or 1 to 8 issues, even if `validate` throws or rejects. */
export function validateStandard(
  schema: StandardSchema,
  value: unknown,
): StandardOutcome | Promise<StandardOutcome> {
  try {
    const result = schema["~standard"].validate(value);
    return isThenable(result)
      ? Promise.resolve(result).then(outcome, failedIssue)
      : outcome(result);
  } catch {
    return failedIssue();
  }
}

function outcome(result: StandardResult<unknown>): StandardOutcome {
  try {
    // A result of a validation has issues or a value.
    if (result.issues === undefined) {
      return "value" in result ? { value: result.value } : failedIssue();
    }
    const issues: Issue[] = [];
    for (const issue of result.issues) {
      if (issues.push(toIssue(issue)) === MAX_ISSUES) break;
    }
    // A list of issues makes a value invalid, even if the list is empty.
    return issues.length === 0 ? failedIssue() : { issues };
  } catch {
    return failedIssue();
  }
}

function toIssue(issue: StandardIssue): Issue {
  let path = "";
  for (const step of (issue.path ?? []).slice(0, MAX_PATH)) {
    const key = typeof step === "object" ? step.key : step;
    path += pointerStep(clip(String(key)));
  }
  const words = clip(String(issue.message), MAX_MESSAGE);
  return {
    path,
    keyword: "standard",
    expected: words,
    message: path === "" ? words : `${path}: ${words}`,
  };
}

function failedIssue(): StandardOutcome {
  return {
    issues: [{
      path: "",
      keyword: "standard",
      expected: "a value that its schema can validate",
      message: "The value could not be validated: the validate function of its schema failed",
    }],
  };
}
