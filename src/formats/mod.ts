/**
 * A toolset to and from every provider's wire format: `@plue/tools/formats`.
 *
 * @module
 */

export { type Adapter, createAdapter } from "./adapter.ts";
export {
  accumulateCalls,
  type AccumulateOptions,
  type AiSdkToolMessage,
  type AiSdkToolResult,
  type AnsweredCall,
  type AnswerOf,
  type AnthropicToolMessage,
  type AnthropicToolResult,
  type BedrockDocument,
  type BedrockToolMessage,
  type BedrockToolResult,
  type CallAccumulator,
  type CallDispatcher,
  callNotes,
  type CallParts,
  type CallProblem,
  type CohereToolContent,
  type CohereToolMessage,
  decodeCalls,
  type DecodedCall,
  dispatchCalls,
  dispatchResponse,
  encodeResult,
  encodeResults,
  type GeminiFunctionResponse,
  type GeminiToolContent,
  type LangChainToolMessage,
  type McpToolAnswer,
  type McpToolResponse,
  type McpToolResult,
  type MessageOf,
  type MistralToolMessage,
  type OllamaToolMessage,
  type OpenAiCaller,
  type OpenAiChatToolMessage,
  type OpenAiRealtimeEvent,
  type OpenAiResponsesOutput,
  type OpenApiResponse,
  type RefusedCall,
  type RoutedCall,
  type StreamTarget,
  type TargetAnswers,
  type TargetMessages,
  type Turn,
  type TurnOptions,
} from "./calls/mod.ts";
export { type Exportable, exportTools } from "./export_tools.ts";
export { type ExportedWithWarnings, Exposure } from "./exposure.ts";
export {
  FunctionDefinition,
  type FunctionDefinitionJson,
  type OpenAIToolJson,
} from "./function_definition.ts";
export {
  type Authorize,
  type BodyBinding,
  type Credentials,
  type HttpFetch,
  type HttpOperation,
  type HttpRequest,
  type HttpResponse,
  IMPORT_SOURCES,
  type ImportExecute,
  type ImportLimits,
  type ImportOptions,
  type ImportOptionsOf,
  type ImportResult,
  type ImportSource,
  importTools,
  type ImportWarning,
  type McpImportOptions,
  type OpenAiImportOptions,
  type OpenApiImportOptions,
  type ParameterBinding,
  type ParameterPlace,
  type ParameterStyle,
  type RejectedImport,
  type RiskQuestion,
  type ValueStyle,
} from "./import/mod.ts";
export { KEYWORD_FORMS, type KeywordForm } from "./keyword_forms.ts";
export { isLegalName, legalName, mapNames, type NameRule, OPENAI_NAME_RULE } from "./names.ts";
export {
  type Feature,
  FEATURES,
  type FeatureSupport,
  type FeatureTable,
  type KeywordAction,
  type KeywordEnforcement,
  type KeywordRule,
  type KeywordTable,
  type Limit,
  type LimitName,
  LIMITS,
} from "./profile.ts";
export type { AiSdkSchema, AiSdkTool, AiSdkToolSet } from "./profiles/ai_sdk.ts";
export type { AnthropicCaller, AnthropicTool } from "./profiles/anthropic.ts";
export type { BedrockCachePoint, BedrockTool } from "./profiles/bedrock.ts";
export type { CohereTool } from "./profiles/cohere.ts";
export type {
  GeminiFunction,
  GeminiSchema,
  GeminiTools,
  GeminiType,
  GeminiTypedFunction,
} from "./profiles/gemini.ts";
export type { LangChainTool } from "./profiles/langchain.ts";
export type { Mcp2025Tool, McpTool } from "./profiles/mcp.ts";
export type { MistralTool } from "./profiles/mistral.ts";
export type { OllamaTool } from "./profiles/ollama.ts";
export type { OpenAiChatTool } from "./profiles/openai_chat.ts";
export type { OpenAiRealtimeTool } from "./profiles/openai_realtime.ts";
export type {
  OpenAiResponsesFunction,
  OpenAiResponsesNamespace,
  OpenAiResponsesTool,
} from "./profiles/openai_responses.ts";
export type { OpenApiContent, OpenApiDocument, OpenApiOperation } from "./profiles/openapi.ts";
export { decodeArguments, encodeArguments } from "./rewrite_arguments.ts";
export {
  isTargetName,
  listTargets,
  resolveTarget,
  type TargetInfo,
  type TargetTools,
} from "./targets.ts";
export { booleansToObjects } from "./transform/booleans.ts";
export { exclusiveToInclusive } from "./transform/bounds.ts";
export { closeObjects } from "./transform/close_objects.ts";
export { constToEnum, enumToText } from "./transform/constants.ts";
export { describeConstraints } from "./transform/describe_constraints.ts";
export { flattenRoot } from "./transform/flatten_root.ts";
export { inlineRefs } from "./transform/inline_refs.ts";
export { mergeAllOf } from "./transform/merge_all_of.ts";
export { normalizeDraft07 } from "./transform/normalize_draft07.ts";
export { normalizeOpenApi30 } from "./transform/normalize_openapi30.ts";
export { nullToFlag, optionalToNullable } from "./transform/nullable.ts";
export { renameKeys } from "./transform/rename_keys.ts";
export type { SchemaLoss, TransformResult } from "./transform/report.ts";
export { tuplesToLists } from "./transform/tuples.ts";
export { oneOfToAnyOf } from "./transform/unions.ts";
export type {
  ArgumentChoice,
  ArgumentRewrite,
  ExportNames,
  ExportOptions,
  ExportResult,
  ExportWarning,
  Loss,
  LossAction,
  LossGrade,
  LossSide,
  OnLoss,
  ProviderHints,
  RejectedTool,
  ResolveTarget,
  TargetAlias,
  TargetId,
  TargetName,
  ToolEncoding,
  WireName,
} from "./types.ts";
export type { WireValue } from "./wire_value.ts";
