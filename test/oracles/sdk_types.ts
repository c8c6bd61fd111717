/** Exports have the SDKs' types, without a cast. The check of types compares them. */

import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { BetaTool } from "@anthropic-ai/sdk/resources/beta/messages";
import type {
  MessageCreateParams,
  Tool as AnthropicSdkTool,
} from "@anthropic-ai/sdk/resources/messages";
import type { ConverseCommandInput, Tool as BedrockSdkTool } from "@aws-sdk/client-bedrock-runtime";
import type {
  FunctionCallingConfigMode,
  FunctionDeclaration,
  GenerateContentConfig,
  Schema,
  Tool as GoogleTool,
  Type,
} from "@google/genai";
import type { StructuredToolParams } from "@langchain/core/tools";
import type {
  ChatCompletionRequest,
  Tool as MistralSdkTool,
} from "@mistralai/mistralai/models/components";
import type { ListToolsResult, Tool as McpSdkTool } from "@modelcontextprotocol/server";
import type {
  ListToolsResult as OldListToolsResult,
  Tool as OldMcpSdkTool,
} from "@modelcontextprotocol/sdk/types.js";
import type { FunctionTool as AgentsFunctionTool } from "@openai/agents-core";
import { generateText, type ToolSet } from "ai";
import type { ToolSet as ToolSet6 } from "ai6";
import type { Cohere } from "cohere-ai";
import type { BindToolsInput } from "langchain-core-14/language_models/chat_models";
import type { StructuredToolParams as StructuredToolParams14 } from "langchain-core-14/tools";
import type { Tool as OllamaSdkTool } from "ollama";
import type {
  ChatCompletionCreateParams,
  ChatCompletionTool,
} from "openai/resources/chat/completions";
import type {
  RealtimeFunctionTool,
  RealtimeSessionCreateRequest,
} from "openai/resources/realtime/realtime";
import type {
  FunctionTool,
  NamespaceTool,
  ResponseCreateParams,
  Tool,
} from "openai/resources/responses/responses";
import {
  type AiSdkTool,
  type AnthropicTool,
  type BedrockCachePoint,
  type BedrockTool,
  exportTools,
  type FunctionTool as PlainTool,
  type GeminiFunction,
  type GeminiSchema,
  type GeminiTypedFunction,
  type LangChainTool,
  type Mcp2025Tool,
  type McpTool,
  type OpenAiChatTool,
  type OpenAiRealtimeTool,
  type OpenAiResponsesFunction,
  type OpenAiResponsesNamespace,
} from "../../src/formats/mod.ts";
import type { AgentsTool, RunnableAiSdkTool } from "../../src/adapters/frameworks/mod.ts";
import { SIMPLE } from "./tools.ts";

/** A value of a type, for types only. */
declare function some<T>(): T;

// A tool of plue has the SDK's type.
export const chat: ChatCompletionTool = some<OpenAiChatTool>();
export const responses: FunctionTool = some<OpenAiResponsesFunction>();
export const namespace: NamespaceTool = some<OpenAiResponsesNamespace>();
export const realtime: RealtimeFunctionTool = some<OpenAiRealtimeTool>();
export const anthropic: AnthropicSdkTool = some<AnthropicTool>();
export const anthropicBeta: BetaTool = some<AnthropicTool>();
export const gemini: FunctionDeclaration = some<GeminiFunction>();
export const bedrock: BedrockSdkTool = some<BedrockTool | BedrockCachePoint>();
export const mistral: MistralSdkTool = some<PlainTool>();
export const cohere: Cohere.ToolV2 = some<PlainTool>();
export const ollama: OllamaSdkTool = some<PlainTool>();
export const langChain: StructuredToolParams = some<LangChainTool>();
export const langChain14: StructuredToolParams14 = some<LangChainTool>();
export const bound14: BindToolsInput[] = exportTools(SIMPLE, "langchain").tools;
export const agents: AgentsFunctionTool = some<AgentsTool>();
export const mcp: McpSdkTool = some<McpTool>();
export const oldMcp: OldMcpSdkTool = some<Mcp2025Tool>();

// An export of plue has the type of the tools in the SDK's request.
export const chatTools: ChatCompletionTool[] = exportTools(SIMPLE, "openai.chat.strict").tools;
export const responsesTools: Tool[] = exportTools(SIMPLE, "openai.responses").tools;
export const responsesRequest: ResponseCreateParams = {
  tools: exportTools(SIMPLE, "openai.responses.strict").tools,
};
export const session: RealtimeSessionCreateRequest = {
  type: "realtime",
  tools: exportTools(SIMPLE, "openai.realtime").tools,
};
export const anthropicTools: MessageCreateParams["tools"] = exportTools(SIMPLE, "anthropic").tools;
export const geminiTools: GoogleTool[] = exportTools(SIMPLE, "gemini").tools;
export const geminiConfig: GenerateContentConfig = { tools: exportTools(SIMPLE, "vertex").tools };
export const converse: ConverseCommandInput = {
  modelId: "m",
  toolConfig: { tools: exportTools(SIMPLE, "bedrock").tools },
};
export const toolSet: ToolSet = exportTools(SIMPLE, "ai-sdk").tools;
export const toolSet6: ToolSet6 = exportTools(SIMPLE, "ai-sdk").tools;
export const runnable: ToolSet = some<{ [name: string]: RunnableAiSdkTool }>();
export const runnable6: ToolSet6 = some<{ [name: string]: RunnableAiSdkTool<6> }>();
export const mcpList: ListToolsResult = {
  resultType: "complete",
  ttlMs: 0,
  cacheScope: "public",
  tools: exportTools(SIMPLE, "mcp@2026-07-28").tools,
};
export const oldMcpList: OldListToolsResult = {
  tools: exportTools(SIMPLE, "mcp@2025-11-25").tools,
};
export const text: (model: Parameters<typeof generateText>[0]["model"]) => unknown = (model) =>
  generateText({ model, prompt: "p", tools: exportTools(SIMPLE, "ai-sdk").tools });

// These must not compile: otherwise the types above would prove nothing.
// @ts-expect-error Responses requires the name next to the type.
export const wrongChat: FunctionTool = some<OpenAiChatTool>();
// @ts-expect-error Chat wants it inside of `function`.
export const wrongResponses: ChatCompletionTool = some<OpenAiResponsesFunction>();
// @ts-expect-error Anthropic calls it `input_schema`.
export const wrongAnthropic: AnthropicSdkTool = some<McpTool>();
// @ts-expect-error MCP calls it `inputSchema`.
export const wrongMcp: McpSdkTool = some<AnthropicTool>();
// @ts-expect-error Gemini's declarations stand in a list.
export const wrongGemini: GoogleTool = some<GeminiFunction[]>();
// @ts-expect-error Bedrock's name stands in `toolSpec`.
export const wrongBedrock: BedrockSdkTool = some<{ name: string; inputSchema: { json: object } }>();
// @ts-expect-error Mistral wants `parameters`.
export const wrongMistral: MistralSdkTool = some<
  { type: "function"; function: { name: string } }
>();
// @ts-expect-error Cohere wants `type`.
export const wrongCohere: Cohere.ToolV2 = some<Omit<PlainTool, "type">>();
// @ts-expect-error Ollama wants `function`.
export const wrongOllama: OllamaSdkTool = some<Omit<PlainTool, "function">>();
// @ts-expect-error LangChain calls it `schema`.
export const wrongLangChain: StructuredToolParams = some<AnthropicTool>();
// @ts-expect-error A tool set has its tools by name.
export const wrongToolSet: ToolSet = some<AiSdkTool[]>();
// @ts-expect-error Before 2026-07-28 the result is an object.
export const wrongOldMcp: OldMcpSdkTool = some<McpTool>();
// @ts-expect-error A provider of the AI SDK is given `type` and `inputSchema`.
export const wrongProvider: LanguageModelV4FunctionTool = some<AnthropicTool>();
// @ts-expect-error Lengths are texts in the typed schema.
export const wrongTyped: FunctionDeclaration = some<{ parameters: { minLength: number } }>();

// Known: the SDK's names of types are an `enum`, of which only the SDK has members. Apart from them
// the typed schema is theirs.
// @ts-expect-error A cast is needed.
export const typedFunction: FunctionDeclaration = some<GeminiTypedFunction>();
type Apart = "type" | "anyOf" | "items" | "properties";
export const typedSchema: Omit<Schema, Apart> = some<Omit<GeminiSchema, Apart>>();
export const typedName: `${Type}` = some<NonNullable<GeminiSchema["type"]>>();

// The settings of a request have the SDK's types.
const ONE = { toolChoice: { tool: "weather" }, parallel: false } as const;
export const chatSettings: Pick<ChatCompletionCreateParams, "tool_choice" | "parallel_tool_calls"> =
  exportTools(SIMPLE, "openai.chat", ONE).request;
export const responseSettings: Pick<ResponseCreateParams, "tool_choice" | "parallel_tool_calls"> =
  exportTools(SIMPLE, "openai.responses", ONE).request;
export const sessionSettings: Pick<
  RealtimeSessionCreateRequest,
  "tool_choice" | "parallel_tool_calls"
> = exportTools(SIMPLE, "openai.realtime", ONE).request;
export const messageSettings: Pick<MessageCreateParams, "tool_choice"> =
  exportTools(SIMPLE, "anthropic", ONE).request;
export const converseSettings: ConverseCommandInput["toolConfig"] = {
  tools: exportTools(SIMPLE, "bedrock").tools,
  ...exportTools(SIMPLE, "bedrock", ONE).request,
};
export const sdkSettings: Pick<
  Parameters<typeof generateText>[0],
  "toolChoice" | "providerOptions"
> = exportTools(SIMPLE, "ai-sdk", ONE).request;
const { toolConfig } = exportTools(SIMPLE, "gemini", ONE).request;
const { mode, ...calling } = toolConfig?.functionCallingConfig ?? { mode: "AUTO" };
export const geminiSettings: GenerateContentConfig["toolConfig"] = {
  // The SDK's enum has these values as its members.
  functionCallingConfig: {
    ...calling,
    mode: mode satisfies `${FunctionCallingConfigMode}` as never,
  },
};
const { tool_choice, parallel_tool_calls } = exportTools(SIMPLE, "mistral", ONE).request;
export const mistralSettings: Pick<ChatCompletionRequest, "toolChoice" | "parallelToolCalls"> = {
  toolChoice: tool_choice,
  parallelToolCalls: parallel_tool_calls,
};
export const cohereSettings: Cohere.V2ChatRequestToolChoice | undefined =
  exportTools(SIMPLE, "cohere", ONE).request.tool_choice;
