/**
 * `plue native`: how to compile and link with libplue.
 *
 * @module
 */

import { findLibplue, findOrCompileLibplue } from "../adapters/native/find_libplue.ts";
import { EXIT, type Terminal } from "./terminal.ts";

/** The flags of `plue native`. */
export interface NativeFlags {
  readonly cflags?: boolean;
  readonly libs?: boolean;
  readonly static?: boolean;
  readonly target?: string;
}

/**
 * Prints the flags for a compiler, or where libplue is. Compiles it where npm has installed none.
 *
 * @returns The exit code.
 * @throws {Error} If there is no libplue for the platform.
 */
export function native(
  { cflags, libs, static: isStatic, target }: NativeFlags,
  terminal: Terminal,
): number {
  const found = target === undefined
    ? findOrCompileLibplue((line) => terminal.note(line))
    : findLibplue({ target });
  if (terminal.isJson) terminal.printJson(found);
  else if (cflags === true || libs === true) {
    terminal.print(
      [
        ...cflags === true ? found.cflags : [],
        ...libs === true ? (isStatic === true ? found.staticLibs : found.libs) : [],
      ].join(" "),
    );
  } else {
    const { library, archive, sidecar } = found;
    for (const path of [library, archive, sidecar]) if (path !== undefined) terminal.print(path);
  }
  return EXIT.ok;
}
