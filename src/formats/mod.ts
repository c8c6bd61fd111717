/**
 * A toolset to and from every provider's wire format: `@plue/tools/formats`.
 *
 * @module
 */

// Export
export {
  type Exportable,
  type ExportedPart,
  type ExportResult,
  exportTools,
  partsOf,
} from "./export.ts";
export type {
  ExportOptions,
  ExportWarning,
  Loss,
  LossAction,
  LossGrade,
  LossSide,
  OnLoss,
  RejectedTool,
} from "./export_options.ts";
export {
  type Adapter,
  createAdapter,
  type ExportedWithWarnings,
  type ExportError,
  Exposure,
} from "./exposure.ts";
export type { ExportNames, ToolEncoding, WireName } from "./export_names.ts";
export { hintsOf, type ProviderHints } from "./provider_hints.ts";
export {
  FunctionDefinition,
  type FunctionDefinitionJson,
  isLegalName,
  legalName,
  mapNames,
  type NameRule,
  OPENAI_NAME_RULE,
} from "../select/mod.ts";

// Calls and results
export {
  type CallParts,
  type CallProblem,
  decodeCalls,
  type DecodedCall,
  type RefusedCall,
  type RoutedCall,
} from "./decode.ts";
export {
  accumulateCalls,
  type AccumulateOptions,
  type CallAccumulator,
  type PartialCall,
  type StreamTarget,
} from "./stream.ts";
export { encodeResult, encodeResults } from "./encode.ts";
export {
  type CallDispatcher,
  dispatchCalls,
  dispatchResponse,
  resumeTurn,
  type Turn,
  type TurnAnswers,
  type TurnOptions,
  type WaitingTurnCall,
} from "./dispatch_response.ts";
export type {
  Chooses,
  LoseSetting,
  RequestSettings,
  ToolChoice,
  WireSettings,
  WriteSettings,
} from "./request_settings.ts";
export { providerTool, type ProviderToolDefinition } from "./provider_tool.ts";
export type { ResultLoss } from "./result_content.ts";
export {
  type ArgumentChoice,
  type ArgumentRewrite,
  decodeArguments,
  encodeArguments,
} from "./argument_rewrite.ts";

// Import
export { IMPORT_SOURCES, type ImportOptionsOf, type ImportSource, importTools } from "./import.ts";
export type {
  ImportExecute,
  ImportFilter,
  ImportLimits,
  ImportOptions,
  ImportResult,
  ImportWarning,
  PerTool,
  RejectedImport,
  RiskQuestion,
} from "./import_options.ts";
export type {
  HeldTool,
  ImportPins,
  PinChange,
  PinGrade,
  PinnedImport,
  WithPins,
} from "./import_pins.ts";

// Targets
export {
  type AnswerOf,
  callNotes,
  isTargetName,
  listTargets,
  type MessageOf,
  type RequestOf,
  type ResolveTarget,
  resolveTarget,
  type TargetAlias,
  type TargetAnswers,
  type TargetId,
  type TargetInfo,
  type TargetLike,
  type TargetMessages,
  type TargetName,
  type TargetOf,
  targetOf,
  type TargetTools,
  type ToolsOf,
} from "./targets.ts";
export { defineTarget } from "./define_target.ts";
export {
  type CombinationRule,
  type ExtraRule,
  type Feature,
  FEATURES,
  type FeatureSupport,
  type FeatureTable,
  type Limit,
  type LimitName,
  LIMITS,
  type OutputRule,
  type Target,
  type TargetDefinition,
  type ToolView,
  type WireExample,
} from "./target.ts";
export type {
  Answer,
  AnswerBlocks,
  AnsweredCall,
  CallFormat,
  MediaFile,
  MediaFormat,
  StreamedParts,
  StreamFormat,
  StreamStep,
  WireCall,
} from "./call_format.ts";
export {
  KEYWORD_FORMS,
  type KeywordAction,
  type KeywordEnforcement,
  type KeywordForm,
  type KeywordRule,
  type KeywordTable,
} from "./form_rules.ts";

// Providers
export type {
  AiSdkContentPart,
  AiSdkRequest,
  AiSdkSchema,
  AiSdkTool,
  AiSdkToolMessage,
  AiSdkToolResult,
  AiSdkToolSet,
} from "./providers/ai_sdk.ts";
export type {
  AnthropicCaller,
  AnthropicContentBlock,
  AnthropicImageType,
  AnthropicRequest,
  AnthropicTool,
  AnthropicToolMessage,
  AnthropicToolReference,
  AnthropicToolResult,
} from "./providers/anthropic.ts";
export type {
  BedrockBytes,
  BedrockCachePoint,
  BedrockContentBlock,
  BedrockDocument,
  BedrockDocumentFormat,
  BedrockImageFormat,
  BedrockRequest,
  BedrockTool,
  BedrockToolMessage,
  BedrockToolResult,
  BedrockVideoFormat,
} from "./providers/bedrock.ts";
export type {
  CohereRequest,
  CohereTool,
  CohereToolContent,
  CohereToolMessage,
} from "./providers/cohere.ts";
export type {
  GeminiFunction,
  GeminiFunctionResponse,
  GeminiInlineData,
  GeminiRequest,
  GeminiSchema,
  GeminiToolContent,
  GeminiTools,
  GeminiType,
  GeminiTypedFunction,
} from "./providers/gemini.ts";
export type {
  LangChainContentBlock,
  LangChainRequest,
  LangChainTool,
  LangChainToolMessage,
} from "./providers/langchain.ts";
export type {
  Mcp2025Tool,
  McpImportOptions,
  McpTool,
  McpToolAnswer,
  McpToolResponse,
  McpToolResult,
} from "./providers/mcp.ts";
export type { MistralRequest, MistralTool, MistralToolMessage } from "./providers/mistral.ts";
export type { OllamaTool, OllamaToolMessage } from "./providers/ollama.ts";
export type { OpenAiImportOptions } from "./providers/openai.ts";
export type {
  OpenAiChatRequest,
  OpenAiChatTool,
  OpenAiChatToolMessage,
} from "./providers/openai_chat.ts";
export type {
  OpenAiCaller,
  OpenAiContentPart,
  OpenAiRealtimeEvent,
  OpenAiRealtimeTool,
  OpenAiResponsesFunction,
  OpenAiResponsesNamespace,
  OpenAiResponsesOutput,
  OpenAiResponsesRequest,
  OpenAiResponsesTool,
  OpenAiResponsesToolSearch,
} from "./providers/openai_responses.ts";
export type {
  OpenApiContent,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiResponse,
} from "./providers/openapi.ts";
export type { WireValue } from "./providers/shared.ts";
export type { SchemaLoss } from "./transform/report.ts";
