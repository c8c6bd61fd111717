/**
 * Which tools a caller sees. The folder's table of contents, for the folders that build on it.
 *
 * @module
 */

export {
  ToolAvailabilityContext,
  ToolAvailabilityContextBuilder,
  type ToolAvailabilityInput,
} from "./availability_context.ts";
export type { CompleteAvailabilityFields, ToolAvailabilityFields } from "./availability_fields.ts";
export type { ExplainedStep, ToolExplanation } from "./explain.ts";
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
export { listSource } from "./list_source.ts";
export { nearIds } from "./near_ids.ts";
export {
  allowAll,
  byMaximumRisk,
  byNamespace,
  byScopes,
  byTag,
  denyAll,
  type ToolPolicy,
} from "./policies.ts";
export { checkSelection, type Selection, selectionKey } from "./selection.ts";
export type { SelectionStepName } from "./selection_steps.ts";
export type { ToolSource } from "./tool_source.ts";
export { buildToolset, Toolset, toolsetOf } from "./toolset.ts";
export { ToolsetBuilder } from "./toolset_builder.ts";
