/**
 * Calls and results: a provider's responses to calls, and results to its messages. The folder's
 * table of contents.
 *
 * @module
 */

export {
  accumulateCalls,
  type AccumulateOptions,
  type CallAccumulator,
  type StreamTarget,
} from "./accumulate_calls.ts";
export type { AiSdkToolMessage, AiSdkToolResult } from "./ai_sdk.ts";
export type { AnthropicToolMessage, AnthropicToolResult } from "./anthropic.ts";
export type { BedrockDocument, BedrockToolMessage, BedrockToolResult } from "./bedrock.ts";
export type { CohereToolContent, CohereToolMessage } from "./cohere.ts";
export { decodeCalls } from "./decode_calls.ts";
export {
  type CallDispatcher,
  dispatchCalls,
  dispatchResponse,
  type Turn,
  type TurnOptions,
} from "./dispatch_response.ts";
export { encodeResult, encodeResults } from "./encode_result.ts";
export {
  type AnswerOf,
  callNotes,
  type MessageOf,
  type TargetAnswers,
  type TargetMessages,
} from "./formats.ts";
export type { GeminiFunctionResponse, GeminiToolContent } from "./gemini.ts";
export type { LangChainToolMessage } from "./langchain.ts";
export type { McpToolAnswer, McpToolResponse, McpToolResult } from "./mcp.ts";
export type { MistralToolMessage } from "./mistral.ts";
export type { OllamaToolMessage } from "./ollama.ts";
export type { OpenAiChatToolMessage } from "./openai_chat.ts";
export type { OpenAiRealtimeEvent } from "./openai_realtime.ts";
export type { OpenAiCaller, OpenAiResponsesOutput } from "./openai_responses.ts";
export type { OpenApiResponse } from "./openapi.ts";
export type {
  AnsweredCall,
  CallParts,
  CallProblem,
  DecodedCall,
  RefusedCall,
  RoutedCall,
} from "./types.ts";
