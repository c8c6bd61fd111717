/**
 * JSON Schema: drafts, checks, the engine port, Standard Schema intake. The folder's table of
 * contents, for the folders that build on it.
 *
 * @module
 */

export { type CheckedSchema, checkSchema, type CheckSchemaOptions } from "./check_schema.ts";
export { detectDialect, type Dialect } from "./dialect.ts";
export { clip } from "../tool/mod.ts";
export { MAX_ISSUES, type SchemaEngine, type SchemaValidator } from "./schema_engine.ts";
export { type StandardOutcome, validateStandard } from "./standard.ts";
export { compileOnce } from "./validator_cache.ts";
