/**
 * The call formats by target. A provider is a file beside this one, and a line in each table.
 *
 * @module
 */

import type { ResolveTarget, TargetName } from "../types.ts";
import { AI_SDK_CALLS, type AiSdkToolMessage, type AiSdkToolResult } from "./ai_sdk.ts";
import {
  ANTHROPIC_CALLS,
  type AnthropicToolMessage,
  type AnthropicToolResult,
} from "./anthropic.ts";
import { BEDROCK_CALLS, type BedrockToolMessage, type BedrockToolResult } from "./bedrock.ts";
import { COHERE_CALLS, type CohereToolMessage } from "./cohere.ts";
import { GEMINI_CALLS, type GeminiFunctionResponse, type GeminiToolContent } from "./gemini.ts";
import { LANGCHAIN_CALLS, type LangChainToolMessage } from "./langchain.ts";
import { MCP_2025_CALLS, MCP_2026_CALLS, type McpToolAnswer } from "./mcp.ts";
import { MISTRAL_CALLS, type MistralToolMessage } from "./mistral.ts";
import { OLLAMA_CALLS, type OllamaToolMessage } from "./ollama.ts";
import { OPENAI_CHAT_CALLS, type OpenAiChatToolMessage } from "./openai_chat.ts";
import { OPENAI_REALTIME_CALLS, type OpenAiRealtimeEvent } from "./openai_realtime.ts";
import { OPENAI_RESPONSES_CALLS, type OpenAiResponsesOutput } from "./openai_responses.ts";
import { OPENAPI_CALLS, type OpenApiResponse } from "./openapi.ts";
import type { CallFormat } from "./types.ts";

/** What answers one call of each target. */
export interface TargetAnswers {
  "openai.chat": OpenAiChatToolMessage;
  "openai.chat.strict": OpenAiChatToolMessage;
  "openai.responses": OpenAiResponsesOutput;
  "openai.responses.strict": OpenAiResponsesOutput;
  "openai.realtime": OpenAiRealtimeEvent;
  "anthropic": AnthropicToolResult;
  "anthropic.strict": AnthropicToolResult;
  "gemini": GeminiFunctionResponse;
  "gemini.typed": GeminiFunctionResponse;
  "vertex": GeminiFunctionResponse;
  "mcp@2025-06-18": McpToolAnswer;
  "mcp@2025-11-25": McpToolAnswer;
  "mcp@2026-07-28": McpToolAnswer;
  "bedrock": BedrockToolResult;
  "bedrock.strict": BedrockToolResult;
  "mistral": MistralToolMessage;
  "cohere": CohereToolMessage;
  "ollama": OllamaToolMessage;
  "ai-sdk": AiSdkToolResult;
  "langchain": LangChainToolMessage;
  "openapi@3.1": OpenApiResponse;
}

/** What goes into the conversation of each target: one message per call, or one for all. */
export type TargetMessages =
  & Omit<TargetAnswers, OneMessage>
  & {
    "anthropic": AnthropicToolMessage;
    "anthropic.strict": AnthropicToolMessage;
    "gemini": GeminiToolContent;
    "gemini.typed": GeminiToolContent;
    "vertex": GeminiToolContent;
    "bedrock": BedrockToolMessage;
    "bedrock.strict": BedrockToolMessage;
    "ai-sdk": AiSdkToolMessage;
  };

/** The targets that want the answers to all calls in one message. */
type OneMessage =
  | "anthropic"
  | "anthropic.strict"
  | "gemini"
  | "gemini.typed"
  | "vertex"
  | "bedrock"
  | "bedrock.strict"
  | "ai-sdk";

/** The answer to one call, by the target's name or alias. */
export type AnswerOf<Name extends TargetName> = TargetAnswers[ResolveTarget<Name>];

/** A message with answers, by the target's name or alias. */
export type MessageOf<Name extends TargetName> = TargetMessages[ResolveTarget<Name>];

/** Every target, by all its names, writes what its type says. */
const FORMATS: { readonly [Name in TargetName]: CallFormat<AnswerOf<Name>, MessageOf<Name>> } = {
  "openai": OPENAI_CHAT_CALLS,
  "openai.strict": OPENAI_CHAT_CALLS,
  "openai.chat": OPENAI_CHAT_CALLS,
  "openai.chat.strict": OPENAI_CHAT_CALLS,
  "openai.responses": OPENAI_RESPONSES_CALLS,
  "openai.responses.strict": OPENAI_RESPONSES_CALLS,
  "openai.realtime": OPENAI_REALTIME_CALLS,
  "anthropic": ANTHROPIC_CALLS,
  "anthropic.strict": ANTHROPIC_CALLS,
  "gemini": GEMINI_CALLS,
  "gemini.typed": GEMINI_CALLS,
  "vertex": GEMINI_CALLS,
  "mcp": MCP_2026_CALLS,
  "mcp@2025-06-18": MCP_2025_CALLS,
  "mcp@2025-11-25": MCP_2025_CALLS,
  "mcp@2026-07-28": MCP_2026_CALLS,
  "bedrock": BEDROCK_CALLS,
  "bedrock.strict": BEDROCK_CALLS,
  "mistral": MISTRAL_CALLS,
  "cohere": COHERE_CALLS,
  "ollama": OLLAMA_CALLS,
  "ai-sdk": AI_SDK_CALLS,
  "langchain": LANGCHAIN_CALLS,
  "openapi": OPENAPI_CALLS,
  "openapi@3.1": OPENAPI_CALLS,
};

/**
 * The call format of a target.
 *
 * @throws {RangeError} If there is no such target.
 */
export function callFormatOf<Name extends TargetName>(
  target: Name,
): CallFormat<AnswerOf<Name>, MessageOf<Name>> {
  if (Object.hasOwn(FORMATS, target)) return FORMATS[target];
  throw new RangeError(
    `Cannot find the target "${String(target).slice(0, 100)}": it must be one of ${
      Object.keys(FORMATS).map((name) => `"${name}"`).join(", ")
    }`,
  );
}

/**
 * What one should know about the calls and answers of a target, in whole sentences.
 *
 * @throws {RangeError} If there is no such target.
 */
export function callNotes(target: TargetName): readonly string[] {
  return callFormatOf(target).notes;
}
