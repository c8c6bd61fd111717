/**
 * JSON Schema: drafts, checks, the engine port, Standard Schema intake. The folder's table of
 * contents, for the folders that build on it.
 *
 * @module
 */

export {
  type CheckedSchema,
  checkSchema,
  type CheckSchemaOptions,
  MAX_PATTERN_STATES,
} from "./check_schema.ts";
export { asDraft2020, BESIDE_REF, isLater } from "./older_drafts.ts";
export {
  compileOnce,
  issuesOf,
  MAX_ISSUES,
  type SchemaEngine,
  type SchemaValidator,
} from "./engine.ts";
export { boundSteps } from "./check_cost.ts";
export { checkWithoutEngine, explain } from "./explain.ts";
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
export { compilePattern, isOutOfSteps, type PatternBudget, resetSteps } from "./patterns.ts";
export { repeatsParts, splitSchema } from "./repeated_parts.ts";
export { ASSERTED_FORMATS, isMultipleOf, isOfType, isOneOf, sameItems } from "./semantics.ts";
export { type StandardOutcome, validateStandard } from "./standard.ts";
