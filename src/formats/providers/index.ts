/** All targets and importers of plue. */

import { AI_SDK } from "./ai_sdk.ts";
import { ANTHROPIC, ANTHROPIC_STRICT, anthropicImporter } from "./anthropic.ts";
import { BEDROCK, BEDROCK_STRICT, bedrockImporter } from "./bedrock.ts";
import { GEMINI, GEMINI_TYPED, geminiImporter, VERTEX } from "./gemini.ts";
import { LANGCHAIN } from "./langchain.ts";
import { MCP_2025_06_18, MCP_2025_11_25, MCP_2026_07_28, mcpImporter } from "./mcp.ts";
import { openaiImporter } from "./openai.ts";
import { COHERE, MISTRAL, OLLAMA, OPENAI_CHAT, OPENAI_CHAT_STRICT } from "./openai_chat.ts";
import { OPENAI_REALTIME, OPENAI_RESPONSES, OPENAI_RESPONSES_STRICT } from "./openai_responses.ts";
import { OPENAPI_3_1 } from "./openapi.ts";

/** The record of a target of this list. */
export type KnownTarget =
  | typeof AI_SDK
  | typeof ANTHROPIC
  | typeof ANTHROPIC_STRICT
  | typeof BEDROCK
  | typeof BEDROCK_STRICT
  | typeof COHERE
  | typeof GEMINI
  | typeof GEMINI_TYPED
  | typeof LANGCHAIN
  | typeof MCP_2025_06_18
  | typeof MCP_2025_11_25
  | typeof MCP_2026_07_28
  | typeof MISTRAL
  | typeof OLLAMA
  | typeof OPENAI_CHAT
  | typeof OPENAI_CHAT_STRICT
  | typeof OPENAI_REALTIME
  | typeof OPENAI_RESPONSES
  | typeof OPENAI_RESPONSES_STRICT
  | typeof OPENAPI_3_1
  | typeof VERTEX;

/** The targets, in the order of their ids. */
export const TARGETS: readonly KnownTarget[] = [
  ...[AI_SDK, ANTHROPIC, ANTHROPIC_STRICT, BEDROCK, BEDROCK_STRICT, COHERE, GEMINI, GEMINI_TYPED],
  ...[LANGCHAIN, MCP_2025_06_18, MCP_2025_11_25, MCP_2026_07_28, MISTRAL, OLLAMA],
  ...[OPENAI_CHAT, OPENAI_CHAT_STRICT, OPENAI_REALTIME, OPENAI_RESPONSES, OPENAI_RESPONSES_STRICT],
  ...[OPENAPI_3_1, VERTEX],
];

/** An importer of this list. */
export type KnownImporter =
  | typeof anthropicImporter
  | typeof bedrockImporter
  | typeof geminiImporter
  | typeof mcpImporter
  | typeof openaiImporter;

/** The importers, in the order of their sources. */
export const IMPORTERS: readonly KnownImporter[] = [
  ...[anthropicImporter, bedrockImporter, geminiImporter, mcpImporter, openaiImporter],
];
