/** All providers. */

export { aiSdk } from "./ai_sdk.ts";
export { anthropic } from "./anthropic.ts";
export { bedrock } from "./bedrock.ts";
export { gemini } from "./gemini.ts";
export { langchain } from "./langchain.ts";
export { mcp } from "./mcp.ts";
export { openai } from "./openai.ts";
export { cohere, mistral, ollama, openaiChat } from "./openai_chat.ts";
export { openaiResponses } from "./openai_responses.ts";
export { openapi } from "./openapi.ts";
