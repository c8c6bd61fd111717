/** All providers. */

import { aiSdk } from "./ai_sdk.ts";
import { anthropic } from "./anthropic.ts";
import { bedrock } from "./bedrock.ts";
import { gemini } from "./gemini.ts";
import { langchain } from "./langchain.ts";
import { mcp } from "./mcp.ts";
import { openai } from "./openai.ts";
import { cohere, mistral, ollama, openaiChat } from "./openai_chat.ts";
import { openaiResponses } from "./openai_responses.ts";
import { openapi } from "./openapi.ts";

/** A provider of this list. */
export type KnownProvider =
  | typeof aiSdk
  | typeof anthropic
  | typeof bedrock
  | typeof cohere
  | typeof gemini
  | typeof langchain
  | typeof mcp
  | typeof mistral
  | typeof ollama
  | typeof openai
  | typeof openaiChat
  | typeof openaiResponses
  | typeof openapi;

export const PROVIDERS: readonly KnownProvider[] = [
  ...[aiSdk, anthropic, bedrock, cohere, gemini, langchain, mcp],
  ...[mistral, ollama, openai, openaiChat, openaiResponses, openapi],
];
