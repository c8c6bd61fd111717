/**
 * Ollama chat.
 *
 * @module
 */

import { plainText, streamResponses } from "../wire.ts";
import { OLLAMA_RULES } from "../form_rules.ts";
import { type ListTarget, makeTarget, type Provider } from "../target.ts";
import { functionCallReader, type FunctionTool, functionTool } from "./openai_chat.ts";

/** A function in the `tools` of a chat request. */
export type OllamaTool = FunctionTool;

/** The message that answers one call. */
export interface OllamaToolMessage {
  role: "tool";
  tool_name: string;
  content: string;
}

/** Reads a response, a message, a list of calls, or one call. */
const read = functionCallReader("an Ollama response");

/** The `tools` of a chat request. */
const OLLAMA: ListTarget<"ollama", OllamaTool, OllamaToolMessage> = makeTarget({
  id: "ollama",
  title: "Ollama chat",
  source: "ollama 0.6.4, api/types.go; 2026-11-20",
  input: OLLAMA_RULES,
  wire: functionTool,
  calls: {
    read,
    write: (call, answer) => ({
      role: "tool",
      tool_name: call.wireName,
      content: plainText(answer),
    }),
    stream: streamResponses(read, ["message"]),
  },
});

/** Ollama's target. */
export const ollama: Provider<typeof OLLAMA> = { targets: [OLLAMA] };
