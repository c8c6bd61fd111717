/**
 * JSON Schema: drafts, checks, the engine port, Standard Schema intake. The folder's table of
 * contents, for the folders that build on it.
 *
 * @module
 */

export {
  checkSchema,
  MAX_PATTERN_STATES,
  type SchemaCompiler,
  withSchemaCheck,
} from "./check_schema.ts";
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
export {
  checkWithoutEngine,
  explain,
  explainWithoutEngine,
  isMultipleOf,
  isOfType,
  isOneOf,
  sameItems,
} from "./explain.ts";
export { hardened, HARDENING, hardenTool } from "./hardened.ts";
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
export {
  asDraft2020,
  ASSERTED_FORMATS,
  BESIDE_REF,
  isLater,
  type NormalizedSchema,
  normalizeSchema,
} from "./normalize.ts";
export {
  fragment,
  fragmentSteps,
  indexSchemas,
  ReferenceIndex,
  resolveAnywhere,
  ROOT_URI,
} from "./references.ts";
export { compilePattern } from "./patterns.ts";
export { type StandardOutcome, validateStandard } from "./standard.ts";
