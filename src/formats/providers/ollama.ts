/**
 * Ollama chat.
 *
 * @module
 */

import { plainText, streamResponses } from "../wire.ts";
import {
  ADVISORY,
  DROPPED,
  every,
  into,
  type KeywordTable,
  REJECTED,
  table,
} from "../form_rules.ts";
import { type ListTarget, makeTarget, type Provider } from "../target.ts";
import { functionCallReader, type FunctionTool, functionTool } from "./openai_chat.ts";

/** A function in the `tools` of a chat request. */
export type OllamaTool = FunctionTool;

/** The server parses the schema into a structure with these fields, and drops the rest. */
const KEYWORDS: KeywordTable = table(
  every(DROPPED),
  [ADVISORY, [
    "type",
    "type list",
    "type null",
    "enum",
    "enum empty text",
    "enum scalar",
    "enum complex",
    "properties",
    "odd property key",
    "required",
    "optional property",
    "optional nullable property",
    "undeclared required",
    "open object",
    "items",
    "items missing",
    "anyOf",
    "anyOf with siblings",
    "description",
    "no type",
  ]],
  [into("one object"), ["root composition"]],
  [into("enum"), ["const"]],
  [into("a list"), ["tuple"]],
  [into("anyOf"), ["oneOf"]],
  [into("one schema"), ["allOf"]],
  [into("its target"), ["$ref", "$ref with siblings", "$ref elsewhere"]],
  [into("its type"), ["$ref recursive"]],
  [into("{} or { not: {} }"), ["boolean schema"]],
  [REJECTED, ["$ref external"]],
);

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
  input: KEYWORDS,
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

/** The targets and the importer of the provider. */
export const ollama: Provider<typeof OLLAMA> = { targets: [OLLAMA] };
