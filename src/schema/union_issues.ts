/**
 * What to say when a value fits none of the forms of an `anyOf` or `oneOf`. All that is wrong with
 * all of them would bury the one thing to change, so the closest form speaks, or the forms are
 * named in one sentence.
 *
 * @module
 */

import { clip, type Issue } from "../tool/mod.ts";
import { issue, orList } from "./issues.ts";

/** Issues that tell one form from another. */
const TELLING: ReadonlySet<string> = new Set(["type", "const", "enum", "anyOf", "oneOf"]);
const MAX_WORDS = 300;

/**
 * Reduces what is wrong with each form to what a model should read.
 *
 * @param keyword `anyOf` or `oneOf`.
 * @param path Where the value is.
 * @param forms The issues of each form, each at least one.
 */
export function unionIssues(
  keyword: string,
  path: string,
  forms: readonly (readonly Issue[])[],
): readonly Issue[] {
  const [first] = forms;
  if (first === undefined || forms.length === 1) return first ?? [];

  // "kind" is neither "circle" nor "square": every form says so, at the same place.
  for (const { path: place, keyword: kind } of first) {
    if (!TELLING.has(kind)) continue;
    const told = forms.map((form) =>
      form.find((one) => one.path === place && TELLING.has(one.keyword))
    );
    if (told.every((one) => one !== undefined)) {
      return [issue(place, keyword, clip(orList(told.map((one) => one.expected)), MAX_WORDS))];
    }
  }

  // The forms that the value could have been meant as: right type, right "kind".
  const distance = (form: readonly Issue[]): number =>
    form.some((one) => one.path === path && TELLING.has(one.keyword))
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

/** What the message says after "must". */
function toVerb(one: Issue): string {
  return one.message.slice(one.message.indexOf(" must ") + " must ".length);
}
