/**
 * The port through which plue validates. An adapter answers with one package.
 *
 * @module
 */

import type { Issue, JsonSchema } from "../tool/mod.ts";
import type { Dialect } from "./dialect.ts";

/** How many issues one validation reports at most. */
export const MAX_ISSUES = 8;

/** A compiled schema. */
export interface SchemaValidator {
  /** Whether the value fits. Never throws, never changes the value. */
  check(value: unknown): boolean;
  /** What is wrong with a value that does not fit: 1 to {@linkcode MAX_ISSUES} issues. */
  issues(value: unknown): readonly Issue[];
}

/**
 * Turns schemas into validators.
 *
 * Contract (`test/contract/schema_engine_contract.ts` checks it):
 * - The schema has passed `checkSchema`; `compile` may still throw a `SyntaxError` naming why.
 * - Compiling may be slow; checking is not. Validators share no state between calls.
 * - Nothing is fetched. No two engines differ in a verdict, except as `known_differences.ts` lists.
 */
export interface SchemaEngine {
  /** Names the engine in messages: `typebox`, `ajv`. */
  readonly name: string;
  compile(schema: JsonSchema, dialect: Dialect): SchemaValidator;
}
