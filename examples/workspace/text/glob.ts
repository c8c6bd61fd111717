/**
 * File name patterns: `*` and `?` within a name, `**` over folders. Matching takes at most pattern
 * length times path length steps; nothing is turned into a regular expression.
 *
 * @module
 */

/** Says whether a path, relative and with `/`, fits. */
export type PathMatcher = (path: string) => boolean;

/**
 * Makes a matcher. A pattern without `/` is matched against the last part of the path, at any
 * depth: `*.ts` finds `src/a.ts`.
 */
export function globMatcher(pattern: string): PathMatcher {
  const steps = pattern.replace(/^\.?\//, "").split("/");
  const only = steps[0];
  if (steps.length === 1 && only !== undefined && only !== "**") {
    return (path) => matchName(only, path.slice(path.lastIndexOf("/") + 1));
  }
  return (path) => matchSteps(steps, path.split("/"));
}

/** Two pointers, and one place to go back to: the last star seen. Linear but for that. */
function matchSteps(pattern: readonly string[], path: readonly string[]): boolean {
  return matchSequence(
    pattern.length,
    path.length,
    (index) => pattern[index] === "**",
    (index, at) => matchName(pattern[index] ?? "", path[at] ?? ""),
  );
}

function matchName(pattern: string, name: string): boolean {
  return matchSequence(
    pattern.length,
    name.length,
    (index) => pattern[index] === "*",
    (index, at) => pattern[index] === "?" || pattern[index] === name[at],
  );
}

function matchSequence(
  patternLength: number,
  length: number,
  isStar: (index: number) => boolean,
  fits: (index: number, at: number) => boolean,
): boolean {
  let index = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < length) {
    if (index < patternLength && isStar(index)) {
      star = index++;
      starAt = at;
    } else if (index < patternLength && fits(index, at)) {
      index++;
      at++;
    } else if (star !== -1) {
      index = star + 1;
      at = ++starAt;
    } else return false;
  }
  while (index < patternLength && isStar(index)) index++;
  return index === patternLength;
}
