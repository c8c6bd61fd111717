/**
 * Checks values without an engine, for what is imported, shown or made on the way: slow, and with
 * patterns in bounded time.
 *
 * @module
 */

import type { Issue, JsonSchema } from "../tool/mod.ts";
import { explain } from "./explain.ts";
import { detectDialect } from "./keywords.ts";
import { normalizeSchema } from "./normalize.ts";
import { compilePattern, resetSteps } from "./patterns.ts";

/**
 * Makes a check that needs no engine: slow, and with the engines' verdicts but for formats, which
 * all values have. A value that takes too long to check does not fit.
 *
 * @throws {SyntaxError} If a reference leads nowhere.
 */
export function checkWithoutEngine(schema: JsonSchema): (value: unknown) => boolean {
  const issuesOf = explainWithoutEngine(schema);
  return (value) => issuesOf(value).length === 0;
}

/** Makes the function that returns the issues of {@linkcode checkWithoutEngine}. */
export function explainWithoutEngine(schema: JsonSchema): (value: unknown) => readonly Issue[] {
  const normalized = normalizeSchema(schema, detectDialect(schema), { formats: new Set() });
  return (value) => {
    resetSteps();
    return explain(normalized, value, () => true, { compilePattern });
  };
}
