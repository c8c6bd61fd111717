/** Reads the repository as text, for the tests of its own rules. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

/** Folders that npm, the builds and git create. */
const NOT_OURS = new Set("node_modules .git dist build coverage bin target .build".split(" "));

/** Returns the paths of the chosen files below `folder`, from the root, with `/`. */
export function filesBelow(folder: string, choose: (path: string) => boolean): readonly string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return [];
    const path = relative(ROOT, join(ROOT, folder, entry.name)).split(sep).join("/");
    if (entry.isDirectory()) return filesBelow(path, choose);
    return choose(path) ? [path] : [];
  }).sort();
}

/** The text of a file, by its path from the root. */
export function textOf(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** The JSON of a file, by its path from the root. */
export function jsonOf(path: string): Record<string, unknown> {
  return JSON.parse(textOf(path)) as Record<string, unknown>;
}

export function exists(path: string): boolean {
  return existsSync(join(ROOT, path));
}

/** A source without its comments, which may show imports in examples. */
export function withoutComments(source: string): string {
  return source.replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, "").replace(/^[ \t]*\/\/.*$/gm, "");
}

/** The specifiers that a source imports or exports from, types included. */
export function specifiersOf(source: string): readonly string[] {
  const code = withoutComments(source);
  return [
    // `deno fmt` leaves the specifier on a line that starts with one of these.
    ...code.matchAll(/^(?:import|export|\})[^"\n]*\bfrom "([^"]+)"/gm),
    ...code.matchAll(/^import "([^"]+)"/gm),
    ...code.matchAll(/\bimport\(\s*"([^"]+)"/g),
  ].map(([, specifier = ""]) => specifier);
}
