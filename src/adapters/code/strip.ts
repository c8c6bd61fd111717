/** Removes the types of a program of TypeScript. They are not checked. */

import { describeThrown, fail } from "../../tool/mod.ts";

/** Removes the types of a source text, and keeps its lines and its other code. */
export type TypeStripper = (source: string) => string;

const ACTION = "remove the types of the program";
/** The function around a program, which may use `await` and `return`. */
const [BEFORE, AFTER] = ["async()=>{", "\n}"];

/**
 * Removes the types of a program. All other code keeps its line, so errors of the program point to
 * the lines of its source.
 *
 * Node 24 and Deno have a function for it, which is the default; it rejects syntax that is not only
 * types, such as `enum`. Bun and workerd have none that keeps lines, so they need `strip`.
 *
 * Only for programs that you trust: these functions have no limits, and a short program with nested
 * brackets can occupy or end the process.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { stripTypes } from "@plue/tools/code";
 *
 * const strip = (source: string) => source.replace(": number", "");
 * assert.equal(stripTypes("const a: number = 1;\nreturn a;", strip), "const a = 1;\nreturn a;");
 * ```
 *
 * @param program The body of an `async` function.
 * @throws {SyntaxError} If the program is not valid TypeScript.
 * @throws {TypeError} If the runtime has no function for it.
 */
export function stripTypes(
  program: string,
  strip: TypeStripper | undefined = globalThis.process?.getBuiltinModule?.("node:module")
    ?.stripTypeScriptTypes,
): string {
  if (strip === undefined) {
    const advice = 'write JavaScript, or pass a function of a package, such as "sucrase"';
    fail(ACTION, `this runtime has no function for it; ${advice}`);
  }
  try {
    return strip(BEFORE + program + AFTER).slice(BEFORE.length, -AFTER.length);
  } catch (cause) {
    throw new SyntaxError(`Cannot ${ACTION}: ${describeThrown(cause)}`, { cause });
  }
}
