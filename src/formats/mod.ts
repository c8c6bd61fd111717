/**
 * Exports and imports tools in the wire format of every provider: `@plue/tools/formats`.
 *
 * @module
 */

// Export
export {
  accumulateCalls,
  decodeCalls,
  dispatchCalls,
  dispatchResponse,
  encodeResult,
  encodeResults,
  type ExportedWithWarnings,
  exportTools,
  Exposure,
  resumeTurn,
} from "./by_name.ts";
export { type Exportable, partsOf } from "./export.ts";
export type * from "./export_options.ts";
export type { ExportNames, ToolEncoding, WireName } from "./export_names.ts";
export { hintsOf, providerTool } from "./provider_hints.ts";
export type * from "./provider_hints.ts";
export {
  FunctionDefinition,
  type FunctionDefinitionJson,
  type NameRule,
  OPENAI_NAME_RULE,
} from "../select/mod.ts";

// Calls and results
export type { CallProblem, DecodedCall } from "./decode.ts";
export type { AccumulateOptions, CallAccumulator, PartialCall } from "./stream.ts";
export type { ResultLoss } from "./encode.ts";
export type {
  CallDispatcher,
  Turn,
  TurnAnswers,
  TurnOptions,
  WaitingTurnCall,
} from "./dispatch_response.ts";
export { type ArgumentRewrite, decodeArguments, encodeArguments } from "./argument_rewrite.ts";

// Import
export { IMPORT_SOURCES, type ImportSource, importTools } from "./import.ts";
export type * from "./import_options.ts";

// Targets
export {
  type AnswerOf,
  defineTarget,
  isTargetName,
  listTargets,
  type MessageOf,
  type RequestOf,
  TARGET_ALIASES,
  type TargetId,
  type TargetLike,
  type TargetName,
  type TargetOf,
  targetOf,
  type ToolsOf,
} from "./targets.ts";
export { FEATURES, LIMITS } from "./target.ts";
export type * from "./target.ts";
export type * from "./call_format.ts";
export {
  KEYWORD_FORMS,
  type KeywordAction,
  type KeywordEnforcement,
  type KeywordForm,
  type KeywordRule,
  type KeywordTable,
} from "./form_rules.ts";
export type { SchemaLoss } from "./transform/report.ts";

// Providers
export type * from "./providers/ai_sdk.ts";
export type * from "./providers/anthropic.ts";
export type * from "./providers/bedrock.ts";
export type * from "./providers/gemini.ts";
export type * from "./providers/langchain.ts";
export type * from "./providers/mcp.ts";
export type * from "./providers/openai.ts";
export type * from "./providers/openai_chat.ts";
export type * from "./providers/openai_responses.ts";
export type * from "./providers/openapi.ts";
export type { WireValue } from "./wire.ts";
