/**
 * The port through which plue validates, and the cache of compiled schemas. An adapter implements
 * the port with one package.
 *
 * @module
 */

import { atOnce, type Issue, type JsonSchema, type JsonSchemaObject } from "../tool/mod.ts";
import { detectDialect, type Dialect } from "./keywords.ts";

/** How many issues one validation reports at most. */
export const MAX_ISSUES = 8;

/** A compiled schema. */
export interface SchemaValidator {
  /**
   * Whether the value fits. Never throws, never changes the value. A value that takes too many steps
   * to check does not fit.
   *
   * @param length How many characters it has as JSON, at most. Of a short value it need not be asked
   * how many steps it takes.
   */
  check(value: unknown, length?: number): boolean;
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

/**
 * What is wrong with a value; `undefined` if it fits. A promise in the place of a verdict is refused.
 * The two checks that every call passes do not use it: on Node that costs a call 45 ns of 430.
 */
export function issuesOf(
  validator: SchemaValidator,
  value: unknown,
  length?: number,
): readonly Issue[] | undefined {
  return atOnce(validator.check(value, length)) === true
    ? undefined
    : atOnce(validator.issues(value));
}

const caches = new WeakMap<SchemaEngine, WeakMap<JsonSchemaObject, SchemaValidator>>();

const NOTHING_FITS: readonly Issue[] = Object.freeze([
  Object.freeze({
    path: "",
    keyword: "false schema",
    expected: "to be absent",
    message: "The value must be absent: its schema accepts nothing",
  }),
]);

const ACCEPT_ALL: SchemaValidator = Object.freeze({ check: () => true, issues: () => [] });
const ACCEPT_NONE: SchemaValidator = Object.freeze({
  check: () => false,
  issues: () => NOTHING_FITS,
});

/**
 * The validator of `schema`, compiled by `engine` on the first call.
 *
 * @param engine Compiles it.
 * @param schema A schema that `checkSchema` accepted.
 * @param dialect What `checkSchema` answered; detected when it is absent.
 * @throws {SyntaxError} If the engine cannot compile it.
 */
export function compileOnce(
  engine: SchemaEngine,
  schema: JsonSchema,
  dialect?: Dialect,
): SchemaValidator {
  if (typeof schema === "boolean") return schema ? ACCEPT_ALL : ACCEPT_NONE;
  let cache = caches.get(engine);
  if (cache === undefined) caches.set(engine, cache = new WeakMap());
  let validator = cache.get(schema);
  if (validator === undefined) {
    validator = atOnce(engine.compile(schema, dialect ?? detectDialect(schema)));
    cache.set(schema, validator);
  }
  return validator;
}
