/**
 * For authors of schema engines: an engine out of a function that compiles.
 *
 * @module
 */

import type { JsonSchema } from "../tool/mod.ts";
import { checkSchema } from "./check_schema.ts";
import type { Hardening, SchemaEngine, SchemaValidator } from "./engine.ts";
import { detectDialect, type Dialect } from "./keywords.ts";

/** The part of an engine that differs between engines; see {@linkcode withSchemaCheck}. */
export interface SchemaCompiler {
  /** Names the engine in messages. */
  readonly name: string;
  /** Compiles a schema that has been checked. Throws a `SyntaxError` if it cannot. */
  compile(schema: JsonSchema, dialect: Dialect, hardening?: Hardening): SchemaValidator;
}

/**
 * Makes an engine of a function that compiles. Its `admit` checks schemas as TypeBox's and Ajv's
 * engines do: with the verdict of the draft's meta-schema, the bounds of a registry, and
 * references that lead somewhere.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { withSchemaCheck } from "@plue/tools";
 * import { Registry } from "@plue/tools/core";
 *
 * // An engine that compiles nothing, for tools that check their arguments themselves.
 * const engine = withSchemaCheck({
 *   name: "none",
 *   compile: () => ({ check: () => true, issues: () => [] }),
 * });
 * const registry = new Registry({ engine });
 * const parameters = { type: "object", required: "a" };
 *
 * assert.equal(engine.admit({ type: "string" }).dialect, "2020-12");
 * assert.throws(() => registry.registerTool({ name: "a", description: "A.", parameters }), {
 *   message: /"\/required" must be a list of different strings/,
 * });
 * ```
 *
 * @param compiler Compiles the schemas.
 * @returns The engine.
 */
export function withSchemaCheck(compiler: SchemaCompiler): SchemaEngine {
  return Object.freeze({
    name: compiler.name,
    admit: checkSchema,
    compile: (schema: JsonSchema, dialect?: Dialect, hardening?: Hardening) =>
      compiler.compile(schema, dialect ?? detectDialect(schema), hardening),
  });
}
