/**
 * What a tool is. The folder's table of contents, for the folders that build on it.
 *
 * @module
 */

export {
  attempt,
  type Check,
  checkFlag,
  checkFunction,
  checkPort,
  checkText,
  checkWord,
  type FieldHint,
  isFunction,
  isListOf,
  isObject,
  isWord,
  MAX_TIMEOUT_MS,
  must,
  numberFrom,
  ofType,
  oneOf,
  type ReadFields,
  readFields,
  refuse,
  refuseOthers,
  wholeFrom,
} from "./check.ts";
export {
  type Clock,
  type QuickWait,
  type RegistryClock,
  systemClock,
  TIME_OVER,
  untilAborted,
  watchLater,
  within,
} from "./clock.ts";
export { atOnce, callHook, type HookLog, inPromise, isThenable, NO_LOG } from "./hook.ts";
export { describedFor, originalOf } from "./described.ts";
export { defineTool, isTool, makeTool, NO_PARAMETERS } from "./define_tool.ts";
export {
  type Answer,
  type Answers,
  type ArgumentRepair,
  brandResult,
  checkOverflow,
  FAILURE_CODES,
  type FailureCode,
  type FailureOptions,
  HTTP_STATUS,
  isFailureCode,
  type Issue,
  isSuspended,
  isToolResult,
  isToolRun,
  type OutputOverflow,
  type Question,
  type QuestionFields,
  type QuestionKind,
  type SuspendedCall,
  type ToolCallError,
  type ToolFailure,
  ToolResult,
  type ToolRun,
  type ToolSuccess,
} from "./result.ts";
export type {
  ContentBlock,
  ContentOptions,
  MediaBlock,
  ResourceBlock,
  ResourceLinkBlock,
  TextBlock,
  ToolContent,
} from "./content.ts";
export {
  argumentsText,
  cleanText,
  clip,
  describe,
  describeThrown,
  fnv1a,
  isWithinEdits,
  nearIds,
} from "./text.ts";
export { numberOf, once } from "./memo.ts";
export {
  canonicalJson,
  copyJson,
  defined,
  isPlain,
  jsonEqual,
  JsonReader,
  type JsonSchema,
  type JsonSchemaObject,
  type JsonValue,
  MAX_DEPTH,
  pointerStep,
  setOwn,
  STOPPED,
} from "./json.ts";
export {
  checkCategory,
  checkRisk,
  compareRisk,
  deriveAnnotations,
  isRiskLevel,
  KNOWN_CATEGORIES,
  type KnownToolCategory,
  misspeltCategory,
  RISK_LEVELS,
  type RiskLevel,
  riskRank,
  type ToolAnnotations,
  type ToolCategory,
} from "./traits.ts";
export {
  isStandardSchema,
  type StandardIssue,
  type StandardResult,
  type StandardSchema,
} from "./standard_schema.ts";
export {
  askAvailable,
  describeTool,
  type InferStandardInput,
  type InferStandardOutput,
  type SchemaInput,
  type Tool,
  type ToolDefinition,
  type ToolExample,
  type ToolExecution,
  type ToolIcon,
  type ToolOutput,
  type ToolReader,
  type ToolRuleAnswer,
  type ViewedTool,
} from "./tool.ts";
export type {
  Services,
  ToolAvailabilityQuery,
  ToolContext,
  ToolInitContext,
  Transaction,
} from "./context.ts";
export { isToolId, isToolName, parseToolId, TOOL_NAME_RULE, toolId } from "./id.ts";
