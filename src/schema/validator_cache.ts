/**
 * Compiles every schema once per engine, on first use, and keeps the validator for as long as the
 * schema object lives.
 *
 * @module
 */

import type { Issue, JsonSchema, JsonSchemaObject } from "../tool/mod.ts";
import { detectDialect, type Dialect } from "./dialect.ts";
import type { SchemaEngine, SchemaValidator } from "./schema_engine.ts";

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
    validator = engine.compile(schema, dialect ?? detectDialect(schema));
    cache.set(schema, validator);
  }
  return validator;
}
