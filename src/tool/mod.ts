/**
 * What a tool is. The folder's table of contents, for the folders that build on it.
 *
 * @module
 */

export {
  type Check,
  checkFlag,
  checkFunction,
  checkText,
  checkWord,
  isFunction,
  isListOf,
  isObject,
  isWord,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
  type ReadFields,
  readFields,
  refuse,
  wholeFrom,
} from "./check.ts";
export { type Clock, type RegistryClock, systemClock } from "./clock.ts";
export { defineTool, isTool, makeTool } from "./define_tool.ts";
export { FAILURE_CODES, type FailureCode, isFailureCode } from "./failure_code.ts";
export { fnv1a } from "./hash.ts";
export { copyJson } from "./json_copy.ts";
export { pointerStep, setOwn } from "./json_members.ts";
export { checkOverflow, type OutputOverflow } from "./output_overflow.ts";
export { JsonReader, MAX_DEPTH, STOPPED } from "./json_reader.ts";
export type { JsonSchema, JsonSchemaObject, JsonValue } from "./json.ts";
export {
  checkRisk,
  compareRisk,
  isRiskLevel,
  RISK_LEVELS,
  type RiskLevel,
  riskRank,
} from "./risk_level.ts";
export { isWithin } from "./spelling.ts";
export {
  isStandardSchema,
  type StandardIssue,
  type StandardResult,
  type StandardSchema,
} from "./standard_schema.ts";
export { clip, describe, describeThrown } from "./text.ts";
export { deriveAnnotations, type ToolAnnotations } from "./tool_annotations.ts";
export { askAvailable } from "./tool_availability.ts";
export { KNOWN_CATEGORIES, type KnownToolCategory, type ToolCategory } from "./tool_category.ts";
export type {
  Services,
  ToolAvailabilityQuery,
  ToolContext,
  ToolInitContext,
  Transaction,
} from "./tool_context.ts";
export type {
  InferStandardInput,
  InferStandardOutput,
  SchemaInput,
  ToolDefinition,
} from "./tool_definition.ts";
export { isToolId, isToolName, parseToolId, TOOL_NAME_RULE, toolId } from "./tool_id.ts";
export {
  brandResult,
  type Issue,
  isToolResult,
  type ToolCallError,
  type ToolFailure,
  ToolResult,
  type ToolSuccess,
} from "./tool_result.ts";
export type { Tool, ToolExample, ToolIcon, ToolOutput, ToolRuleAnswer } from "./tool.ts";
