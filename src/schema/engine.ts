/** The port for validation, which adapters implement, and the cache of compiled schemas. */

import {
  assertSync,
  type Issue,
  type JsonSchema,
  type JsonSchemaObject,
  once,
} from "../tool/mod.ts";
import type { Dialect } from "./keywords.ts";
import type { NormalizedSchema } from "./normalize.ts";

/** The maximum number of issues of one validation. */
export const MAX_ISSUES = 8;

/** A compiled schema. */
export interface SchemaValidator {
  /**
   * Returns true if the value fits. Never throws, never changes the value. A value that takes too many steps
   * to check does not fit.
   *
   * @param length The maximum length of the value as JSON. The steps of a short value need not be
   * estimated.
   */
  check(value: unknown, length?: number): boolean;
  /** Returns the issues of a value that does not fit: 1 to {@linkcode MAX_ISSUES}. */
  issues(value: unknown): readonly Issue[];
}

/** The facts about a schema that was admitted. */
export interface AdmittedSchema {
  /** The draft it was checked against. */
  readonly dialect: Dialect;
}

/**
 * Turns schemas into validators.
 *
 * Contract (`test/contract/schema_engine_contract.ts` checks it):
 * - `compile` gets schemas that `admit` has accepted. It can still throw a `SyntaxError`.
 * - Compiling may be slow; checking is not. Validators share no state between calls.
 * - Nothing is fetched. No two engines differ in a verdict, except as `known_differences.ts` lists.
 *
 * `withSchemaCheck` makes an engine of a function that compiles.
 */
export interface SchemaEngine {
  /** Names the engine in messages: `typebox`, `ajv`. */
  readonly name: string;
  /**
   * Rejects an invalid schema: a keyword is invalid, a reference has no target or refers to itself,
   * or the schema is too large.
   *
   * @param what The name of the schema in messages, such as `the parameters of tool "add"`; by
   * default `the schema`.
   * @param hardening The protections that it will be compiled with, if any.
   * @throws {TypeError | SyntaxError | RangeError} With the JSON Pointer of the cause.
   */
  admit(schema: JsonSchema, what?: string, hardening?: Hardening): AdmittedSchema;
  /** Compiles a schema, of a detected draft by default, and with these protections. */
  compile(schema: JsonSchema, dialect?: Dialect, hardening?: Hardening): SchemaValidator;
}

export function isSchemaEngine(value: unknown): value is SchemaEngine {
  const { admit, compile } = (value ?? {}) as Partial<SchemaEngine>;
  return typeof admit === "function" && typeof compile === "function";
}

/**
 * Protections against hostile schemas and values, which `hardened` passes to an engine.
 *
 * An engine uses the protections that fit its way of compiling; both engines of plue use all.
 */
export interface Hardening {
  /**
   * Compiles a pattern to a test that takes linear time. Only its `test` may be called, and only
   * in a check from `boundSteps`. It throws a `RangeError` when the check has used up its steps.
   *
   * @throws {SyntaxError} If there is no such test.
   */
  compilePattern(source: string, budget?: PatternBudget): CheckedPattern;
  /**
   * Returns true if a schema checks each part of a value more than once. Its check must then cache
   * the verdict of each schema on each part, as `CheckGenerator` and `SchemaInterpreter` can.
   */
  repeatsParts(form: NormalizedSchema): boolean;
  /**
   * Bounds the steps of a check. A value that takes more steps does not fit.
   *
   * @param caches True if the check caches verdicts.
   */
  boundSteps(form: NormalizedSchema, caches: boolean, validator: SchemaValidator): SchemaValidator;
}

export interface CheckedPattern extends RegExp {
  /** The maximum number of times that `RegExp` reads a character; `Infinity` for an automaton. */
  readonly looks: number;
}

/** The number of states that the patterns of one schema, or of one import, may still have. */
export interface PatternBudget {
  left: number;
}

/**
 * Returns the issues of a value; `undefined` if it fits. A promise is not accepted as a verdict.
 * The check of a call's arguments does not use this function, which takes 45 of 430 ns on Node.
 */
export function issuesOf(
  validator: SchemaValidator,
  value: unknown,
  length?: number,
): readonly Issue[] | undefined {
  return assertSync(validator.check(value, length)) === true
    ? undefined
    : assertSync(validator.issues(value));
}

const caches = new WeakMap<SchemaEngine, WeakMap<JsonSchemaObject, SchemaValidator>>();

/** The keys that represent the schemas `false` and `true` in a cache. */
const BOOLEANS = [{}, {}] as const;

const wrappers = new WeakMap<object, (engine: SchemaEngine) => SchemaEngine>();

/** Makes every registry wrap its engine for `schema`: imported schemas keep their protections. */
export function wrapEngineOf(
  schema: object | boolean | undefined,
  wrap: (engine: SchemaEngine) => SchemaEngine,
): void {
  if (typeof schema === "object") wrappers.set(schema, wrap);
}

/** Compiles `derived`, which was made from `schema`, with the same wrapper. */
export function inheritEngine(schema: JsonSchemaObject, derived: JsonSchemaObject): void {
  const wrap = wrappers.get(schema);
  if (wrap !== undefined) wrapEngineOf(derived, wrap);
}

function engineOf(engine: SchemaEngine, schema: JsonSchemaObject): SchemaEngine {
  return wrappers.get(schema)?.(engine) ?? engine;
}

/** Admits a schema with the engine, or with the engine's wrapper for this schema. */
export function admitSchema(engine: SchemaEngine, schema: JsonSchema, what?: string): void {
  // Anything else goes to the engine, which rejects values that are not schemas.
  if (typeof schema === "boolean") return;
  const admitted: Partial<AdmittedSchema> = assertSync(
    engineOf(engine, schema).admit(schema, what),
  );
  if (typeof admitted?.dialect !== "string") {
    throw new TypeError(`The engine "${engine.name}" must return a dialect`);
  }
}

/** Returns the validator of a schema, compiled at the first call. */
export function compileOnce(
  engine: SchemaEngine,
  schema: JsonSchema,
  dialect?: Dialect,
): SchemaValidator {
  const key = typeof schema === "boolean" ? BOOLEANS[schema ? 1 : 0] : schema;
  const compiler = engineOf(engine, key);
  const cache = once(caches, compiler, () => new WeakMap());
  let validator = cache.get(key);
  if (validator === undefined) {
    validator = assertSync(compiler.compile(schema, dialect));
    cache.set(key, validator);
  }
  return validator;
}
