/**
 * Which tools a caller sees. The folder's table of contents, for the folders that build on it.
 *
 * @module
 */

export {
  type CompleteAvailabilityFields,
  CRITERIA,
  CRITERION_NAMES,
  isContextFlag,
  READER_FIELDS,
  type SelectionCriteria,
  type SelectionStepName,
} from "./criteria.ts";
export {
  ToolAvailabilityContext,
  ToolAvailabilityContextBuilder,
  type ToolAvailabilityFields,
  type ToolAvailabilityInput,
} from "./availability_context.ts";
export { buildToolset, Toolset, type ToolsetBridge } from "./toolset.ts";
export {
  type ExaminedTool,
  type ExplainedStep,
  type Explainer,
  explainTool,
  type ToolExplanation,
} from "./explain.ts";
export {
  allOf,
  allowIds,
  anyOf,
  category,
  denyIds,
  maxRisk,
  namedFilter,
  namespace,
  not,
  role,
  scopes,
  tagsAll,
  tagsAny,
  type ToolFilter,
} from "./filters.ts";
export {
  claimNames,
  freezeInOrder,
  listSource,
  type ToolCollection,
  type ToolSource,
} from "./source.ts";
export {
  FunctionDefinition,
  type FunctionDefinitionJson,
  functionDefinitions,
} from "./function_definition.ts";
export {
  allowAll,
  askAboveRisk,
  byCategory,
  byMaximumRisk,
  byNamespace,
  byScopes,
  byTag,
  denyAll,
  POLICY_ADVICE,
  type ToolPolicy,
} from "./policies.ts";
export {
  checkSelection,
  rejectUndefined,
  type Selection,
  selectionDataFields,
  selectionHint,
  selectionKey,
} from "./selection.ts";
export type { NameList } from "./criteria.ts";
export { isLegalName, legalName, mapNames, type NameRule, OPENAI_NAME_RULE } from "./wire_names.ts";
export { ToolsetBuilder } from "./toolset_builder.ts";
export {
  selectionFrom,
  type ValueKind,
  valueKind,
  VOCABULARY,
  type VocabularyName,
} from "./vocabulary.ts";
