/**
 * JSON Schema: drafts, checks, the engine port, Standard Schema intake. The folder's table of
 * contents, for the folders that build on it.
 *
 * @module
 */

export { checkSchema, MAX_PATTERN_STATES } from "./check_schema.ts";
export { asDraft2020, BESIDE_REF, isLater } from "./older_drafts.ts";
export {
  type AdmitOptions,
  admitSchema,
  type AdmittedSchema,
  compileOnce,
  type Hardening,
  inheritEngine,
  isSchemaEngine,
  issuesOf,
  MAX_ISSUES,
  type PatternBudget,
  type SchemaEngine,
  type SchemaSplitter,
  type SchemaValidator,
  type SplitSchema,
} from "./engine.ts";
export { explain } from "./explain.ts";
export { checkWithoutEngine, explainWithoutEngine } from "./check_without_engine.ts";
export { hardened, HARDENING, hardenTool } from "./hardened.ts";
export { type SchemaCompiler, withSchemaCheck } from "./with_schema_check.ts";
export { vagueIssue } from "./issues.ts";
export {
  detectDialect,
  type Dialect,
  eachSchemaIn,
  eachSchemaOf,
  holdsSchemas,
  isOldDraft,
  isSchema,
  type Keyword,
  type KeywordRole,
  KEYWORDS,
  type KeywordShape,
  mapSchemasOf,
} from "./keywords.ts";
export { type NormalizedSchema, normalizeSchema } from "./normalize.ts";
export {
  fragment,
  fragmentSteps,
  indexSchemas,
  ReferenceIndex,
  resolveAnywhere,
  ROOT_URI,
} from "./references.ts";
export { compilePattern } from "./patterns.ts";
export { ASSERTED_FORMATS, isMultipleOf, isOfType, isOneOf, sameItems } from "./semantics.ts";
export { type StandardOutcome, validateStandard } from "./standard.ts";
