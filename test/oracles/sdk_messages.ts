/** Results have the SDKs' types, without a cast. The check of types compares them. */

import type { MessageParam, ToolResultBlockParam } from "@anthropic-ai/sdk/resources/messages";
import type { ContentBlock, Message as BedrockSdkMessage } from "@aws-sdk/client-bedrock-runtime";
import type { Content, Part } from "@google/genai";
import type { BaseMessageLike } from "@langchain/core/messages";
import type { ToolMessage as MistralSdkMessage } from "@mistralai/mistralai/models/components";
import type { ModelMessage } from "ai";
import type { Cohere } from "cohere-ai";
import type { Message as OllamaSdkMessage } from "ollama";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ConversationItemCreateEvent } from "openai/resources/realtime/realtime";
import type { ResponseInputItem } from "openai/resources/responses/responses";
import type { AnswerOf, MessageOf } from "../../src/formats/mod.ts";

/** A value of a type, for types only. */
declare function some<T>(): T;

// An answer of plue has the SDK's type.
export const chat: ChatCompletionMessageParam = some<MessageOf<"openai.chat">>();
export const responses: ResponseInputItem = some<MessageOf<"openai.responses">>();
export const realtime: ConversationItemCreateEvent = some<MessageOf<"openai.realtime">>();
export const block: ToolResultBlockParam = some<AnswerOf<"anthropic">>();
export const anthropic: MessageParam = some<MessageOf<"anthropic">>();
export const part: Part = some<AnswerOf<"gemini">>();
export const gemini: Content = some<MessageOf<"gemini">>();
export const toolResult: ContentBlock = some<AnswerOf<"bedrock">>();
export const bedrock: BedrockSdkMessage = some<MessageOf<"bedrock">>();
export const ollama: OllamaSdkMessage = some<MessageOf<"ollama">>();
export const aiSdk: ModelMessage = some<MessageOf<"ai-sdk">>();
export const langchain: BaseMessageLike = some<MessageOf<"langchain">>();

// Two SDKs write camel case where their API does not.
const { tool_call_id: mistralId, ...mistralRest } = some<MessageOf<"mistral">>();
export const mistral: MistralSdkMessage = { ...mistralRest, toolCallId: mistralId };
const { tool_call_id: cohereId, role: _role, ...cohereRest } = some<MessageOf<"cohere">>();
export const cohere: Cohere.ToolMessageV2 = { ...cohereRest, toolCallId: cohereId };

// A message for another provider is not valid.
// @ts-expect-error: Anthropic's answers are no messages of OpenAI's.
export const wrongChat: ChatCompletionMessageParam = some<MessageOf<"anthropic">>();
// @ts-expect-error: OpenAI's messages are none of Anthropic's.
export const wrongAnthropic: MessageParam = some<MessageOf<"openai.chat">>();
// @ts-expect-error: A block alone is no message.
export const wrongBedrock: BedrockSdkMessage = some<AnswerOf<"bedrock">>();
