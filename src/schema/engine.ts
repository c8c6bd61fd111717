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
   * Returns true if the value is valid. Never throws, and never changes the value. A value whose
   * check takes too many steps is invalid.
   *
   * @param length The maximum length of the value as JSON. The steps of a short value are not
   * estimated.
   */
  check(value: unknown, length?: number): boolean;
  /** Returns 1 to {@linkcode MAX_ISSUES} issues of an invalid value. */
  issues(value: unknown): readonly Issue[];
}

/** The facts about a schema that was admitted. */
export interface AdmittedSchema {
  /** The draft of the schema. */
  readonly dialect: Dialect;
}

/**
 * Turns schemas into validators.
 *
 * Contract (`test/contract/schema_engine_contract.ts` checks it):
 * - `compile` gets schemas that `admit` has accepted. It can still throw a `SyntaxError`.
 * - Compiling may be slow; checking is not. Validators share no state between calls.
 * - Nothing is fetched. All engines accept the same values, except in `known_differences.ts`.
 *
 * `withSchemaCheck` makes an engine of a function that compiles.
 */
export interface SchemaEngine {
  /** Names the engine in messages: `typebox`, `ajv`. */
  readonly name: string;
  /**
   * Rejects a schema with an invalid keyword or a reference without a target or to itself, and a
   * schema that is too large.
   *
   * @param what The name of the schema in messages, such as `the parameters of tool "add"`; by
   * default `the schema`.
   * @param hardening The protections that the schema will be compiled with, if any.
   * @throws {TypeError | SyntaxError | RangeError} With the JSON Pointer of the cause.
   */
  admit(schema: JsonSchema, what?: string, hardening?: Hardening): AdmittedSchema;
  /** Compiles a schema with these protections. By default, the draft is detected. */
  compile(schema: JsonSchema, dialect?: Dialect, hardening?: Hardening): SchemaValidator;
}

export function isSchemaEngine(value: unknown): value is SchemaEngine {
  const { admit, compile } = (value ?? {}) as Partial<SchemaEngine>;
  return typeof admit === "function" && typeof compile === "function";
}

/**
 * Protections against hostile schemas and values, which `hardened` passes to an engine.
 *
 * An engine uses the protections that it supports; both engines of plue use all of them.
 */
export interface Hardening {
  /**
   * Compiles a pattern to a test in linear time. Call only its `test`, and only in a check from
   * `boundSteps`. The test throws a `RangeError` when the steps of the check are used up.
   *
   * @throws {SyntaxError} If the pattern has no test in linear time.
   */
  compilePattern(source: string, budget?: PatternBudget): CheckedPattern;
  /**
   * Returns true if a schema checks each part of a value more than once. Its check must then cache
   * the verdict of each schema on each part, as `CheckGenerator` and `SchemaInterpreter` can.
   */
  repeatsParts(form: NormalizedSchema): boolean;
  /**
   * Bounds the steps of a check. A value whose check would take more steps is invalid.
   *
   * @param caches True if the check caches verdicts.
   */
  boundSteps(form: NormalizedSchema, caches: boolean, validator: SchemaValidator): SchemaValidator;
}

export interface CheckedPattern extends RegExp {
  /** The maximum number of times that `RegExp` reads a character; `Infinity` for an automaton. */
  readonly reads: number;
}

/** The number of states that the patterns of one schema, or of one import, can still use. */
export interface PatternBudget {
  left: number;
}

/**
 * Returns the issues of a value; `undefined` if it is valid. Throws if the verdict is a promise.
 * The dispatcher calls `check` and `issues` itself: on Node, this function would take 45 ns of the
 * 430 ns of a call.
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

/** Makes every registry compile `schema` with the engine that `wrap` returns: see `hardened`. */
export function wrapEngineOf(
  schema: object | boolean | undefined,
  wrap: (engine: SchemaEngine) => SchemaEngine,
): void {
  if (typeof schema === "object") wrappers.set(schema, wrap);
}

/** Makes `derived`, which was made from `schema`, use the same wrapper as `schema`. */
export function inheritEngine(schema: JsonSchemaObject, derived: JsonSchemaObject): void {
  const wrap = wrappers.get(schema);
  if (wrap !== undefined) wrapEngineOf(derived, wrap);
}

function engineOf(engine: SchemaEngine, schema: JsonSchemaObject): SchemaEngine {
  return wrappers.get(schema)?.(engine) ?? engine;
}

/** Admits a schema with the engine, or with the engine's wrapper for this schema. */
export function admitSchema(engine: SchemaEngine, schema: JsonSchema, what?: string): void {
  // Other values go to the engine, which rejects values that are not schemas.
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
