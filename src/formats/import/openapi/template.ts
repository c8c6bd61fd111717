/**
 * Paths and addresses with `{parameters}`.
 *
 * @module
 */

import { clip } from "../../../schema/mod.ts";

/** A piece of a path: text, or the name of a parameter. */
export interface TemplatePiece {
  readonly text: string;
  readonly name?: string;
}

/** Splits a path at its `{parameters}`. A brace without its other half is text. */
export function splitTemplate(path: string): readonly TemplatePiece[] {
  const pieces: TemplatePiece[] = [];
  let at = 0;
  for (;;) {
    const open = path.indexOf("{", at);
    const close = open === -1 ? -1 : path.indexOf("}", open);
    if (close === -1) {
      pieces.push({ text: path.slice(at) });
      return pieces;
    }
    pieces.push({ text: path.slice(at, open) });
    pieces.push({ text: path.slice(open, close + 1), name: path.slice(open + 1, close) });
    at = close + 1;
  }
}

/** What URLs take for "here" and "one up", however it is written. */
const DOTS = /^(?:\.|%2e){1,2}$/i;

/** Whether a path would be shortened on its way, to that of something else. */
export function leadsUp(path: string): boolean {
  return path.split("/").some((segment) => DOTS.test(segment));
}

/** What would end a path, or be read as something else in it. */
const PATH_END = /[?#\\\s\p{Cc}]/u;

/** What is wrong with the path of an operation that has these parameters in it. */
export function pathProblem(path: string, parameters: ReadonlySet<string>): string | undefined {
  if (!path.startsWith("/")) return 'its path must begin with "/"';
  const names = new Set<string>();
  for (const { text, name } of splitTemplate(path)) {
    if (name !== undefined) names.add(name);
    else if (PATH_END.test(text)) return "its path has a character that does not belong in one";
  }
  if (leadsUp(path)) return 'its path has a segment "." or ".."';
  for (const name of names) {
    if (!parameters.has(name)) return `its path names "${clip(name)}", which is no parameter of it`;
  }
  for (const name of parameters) {
    if (!names.has(name)) return `its parameter "${clip(name)}" is not in its path`;
  }
  return undefined;
}
