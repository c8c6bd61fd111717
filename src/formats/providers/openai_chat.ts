/**
 * OpenAI Chat Completions and its strict mode; and the providers whose messages have `tool_calls` as
 * well: Mistral, Ollama and Cohere.
 *
 * @module
 */

import { defined, isObject } from "../../tool/mod.ts";
import type { StreamedParts, StreamFormat, StreamStep, WireCall } from "../call_format.ts";
import {
  type CallFields,
  callFrom,
  callReader,
  descriptionOf,
  given,
  isCutOff,
  type JsonRecord,
  member,
  noCall,
  objectIn,
  plainText,
  streamResponses,
  textIn,
  textOf,
} from "../wire.ts";
import {
  ADVISORY,
  COHERE_RULES,
  OLLAMA_RULES,
  OPENAI_RULES,
  OPENAI_STRICT_RULES,
  READ_BY_THE_MODEL,
  replacing,
  unsure,
} from "../form_rules.ts";
import {
  type Chooses,
  loseParallel,
  type LoseSetting,
  type WireSettings,
} from "../export_options.ts";
import type { NameRule } from "../../select/mod.ts";
import { features, type ListTarget, makeTarget, type Provider, type ToolView } from "../target.ts";
import { OPENAI_FORMATS, OPENAI_STRICT_LIMITS } from "./openai.ts";

// Tools

/** A function in the `tools` of a chat request. */
export interface OpenAiChatTool extends FunctionTool {
  function: FunctionTool["function"] & { strict?: boolean };
}

/** A function as Chat Completions, and the providers that follow it, take it. */
export interface FunctionTool {
  type: "function";
  function: {
    name: string;
    description?: string;
    parameters: { type: "object"; [keyword: string]: unknown };
  };
}

/** Writes a tool as Chat Completions, and the providers that follow it, take it. */
function functionTool(view: ToolView): FunctionTool {
  return {
    type: "function",
    function: {
      name: view.name,
      ...descriptionOf(view),
      // `defineTool` requires an object root.
      parameters: view.parameters as FunctionTool["function"]["parameters"],
    },
  };
}

function wire(view: ToolView, strict: boolean | undefined): OpenAiChatTool {
  const tool = functionTool(view);
  return { ...tool, function: { ...view.extra, ...tool.function, ...defined({ strict }) } };
}

// Calls

/** The reason to reject a call of a custom tool. */
export const CUSTOM_TOOL =
  "it is a call of a custom tool, which takes text, and only functions were offered";

const CALL: CallFields = { id: "id", name: "name", input: "arguments" };
const CUSTOM_CALL: CallFields = { ...CALL, input: "input" };

/**
 * Makes the function that reads a whole response, a choice, a message, a list of calls, or one
 * call; as sent or as an SDK has it.
 *
 * @param title Words for the response, with an article.
 */
function functionCallReader(title: string): (response: unknown) => readonly WireCall[] {
  return callReader({
    title,
    messages: ["choices/0/message", "message"],
    lists: ["tool_calls", "toolCalls"],
    marks: ["role"],
    onlyCalls: true,
    reasonOf: (choice) => choice["finish_reason"] ?? choice["finishReason"],
    isCall: (entry, isInList) => isInList || given(entry, "function") || entry["type"] === "custom",
    call: callOf,
  });
}

function callOf(raw: JsonRecord): WireCall {
  if (raw["type"] === "custom" && isObject(raw["custom"])) {
    return { ...callFrom(CUSTOM_CALL, raw["custom"], raw), refusal: CUSTOM_TOOL };
  }
  const called = raw["function"];
  return isObject(called) ? callFrom(CALL, called, raw) : { id: textOf(raw["id"]), ...noCall(raw) };
}

// Settings

/** The settings of a chat request. */
export interface OpenAiChatRequest {
  tool_choice?: "auto" | "none" | "required" | { type: "function"; function: { name: string } };
  parallel_tool_calls?: boolean;
}

function choose(settings: WireSettings): OpenAiChatRequest {
  return chooseFunction(settings, "required");
}

/** Writes the settings; `required` is the provider's word for at least one call. */
function chooseFunction<Required extends string>(
  { toolChoice, parallel }: WireSettings,
  required: Required,
): {
  tool_choice?: "auto" | "none" | Required | { type: "function"; function: { name: string } };
  parallel_tool_calls?: boolean;
} {
  return defined({
    tool_choice: typeof toolChoice === "object"
      ? { type: "function" as const, function: { name: toolChoice.name } }
      : toolChoice === "required"
      ? required
      : toolChoice,
    parallel_tool_calls: parallel,
  });
}

// Results

/** The message that answers one call. */
export interface OpenAiChatToolMessage {
  role: "tool";
  tool_call_id: string;
  content: string;
}

// Stream

/**
 * Reads the chunks of a stream. A chunk names a call by its index, and gives id and name once. Some
 * servers leave the index out, or give every call index 0: then a new id with a name begins a call.
 */
function streamFunctionCalls(): StreamFormat {
  const keys = new Map<unknown, { readonly key: string; readonly id: string | undefined }>();
  let made = 0;

  function keyOf(delta: JsonRecord, id: string | undefined, name: string | undefined): string {
    const index = typeof delta["index"] === "number" ? delta["index"] : "none";
    const open = keys.get(index);
    const begins = open === undefined ||
      (name !== undefined && id !== undefined && open.id !== undefined && open.id !== id);
    if (!begins) {
      if (open.id === undefined && id !== undefined) keys.set(index, { key: open.key, id });
      return open.key;
    }
    const key = `${made++}`;
    keys.set(index, { key, id });
    return key;
  }

  function deltaSteps(delta: JsonRecord): readonly StreamStep[] {
    const called = objectIn(delta, "function");
    const id = textOf(delta["id"]);
    const name = textOf(called?.["name"]);
    const key = keyOf(delta, id, name);
    const steps: StreamStep[] = [{ type: "open", key, id, name }];
    const text = called?.["arguments"];
    if (typeof text === "string") steps.push({ type: "text", key, text });
    // Some servers send a whole call, with its arguments as an object.
    else if (isObject(text)) steps.push({ type: "input", key, text: JSON.stringify(text) });
    return steps;
  }

  function steps(event: JsonRecord): readonly StreamStep[] {
    // Mistral's SDK hands chunks out in `data`.
    const chunk = isObject(event["data"]) ? event["data"] : event;
    const choices = Array.isArray(chunk["choices"]) ? chunk["choices"] : [];
    const choice = choices.find((one) => isObject(one) && (one["index"] ?? 0) === 0);
    if (!isObject(choice)) return [];
    const delta = isObject(choice["delta"]) ? choice["delta"] : {};
    const calls = delta["tool_calls"] ?? delta["toolCalls"];
    const found = (Array.isArray(calls) ? calls : []).filter(isObject).flatMap(deltaSteps);
    const reason = choice["finish_reason"] ?? choice["finishReason"];
    if (typeof reason === "string") found.push({ type: "finish", cutOff: isCutOff(reason) });
    return found;
  }

  return { steps, rebuild: rebuildFunctionCall };
}

/** The call in the form of an unstreamed message. */
function rebuildFunctionCall({ id, name, text }: StreamedParts): unknown {
  return { ...defined({ id }), type: "function", function: { name, arguments: text } };
}

// OpenAI

const OPENAI_CHAT:
  & ListTarget<"openai.chat", OpenAiChatTool, OpenAiChatToolMessage>
  & Chooses<typeof choose> = makeTarget({
    choose,
    id: "openai.chat",
    title: "OpenAI Chat Completions",
    source: "openai 7.55.0, openai-openapi 2.3.0, API errors; 2026-11-20",
    features: features(["strict"]),
    extra: { source: "openai", surface: "chat" },
    input: OPENAI_RULES,
    limits: [
      { name: "maxTools", value: 128 },
      { name: "maxDescription", value: 1_024, uncertain: true },
    ],
    strictMode: "openai.chat.strict",
    wire: (view) => wire(view, view.strict || undefined),
    calls: {
      read: functionCallReader("an OpenAI Chat response"),
      write: (call, answer) => ({
        role: "tool",
        tool_call_id: call.callId,
        content: plainText(answer),
      }),
      stream: streamFunctionCalls,
    },
  });

const OPENAI_CHAT_STRICT:
  & ListTarget<"openai.chat.strict", OpenAiChatTool, OpenAiChatToolMessage>
  & Chooses<typeof choose> = makeTarget({
    ...OPENAI_CHAT,
    id: "openai.chat.strict",
    title: "OpenAI Chat Completions, strict",
    source: "structured-outputs guide, openai 7.55.0 lib/transform, API errors; 2026-11-20",
    input: OPENAI_STRICT_RULES,
    formats: OPENAI_FORMATS,
    limits: [...OPENAI_CHAT.limits, ...OPENAI_STRICT_LIMITS],
    fallback: "openai.chat",
    wire: (view) => wire(view, view.strict),
  });

/** The targets of Chat Completions. */
export const openaiChat: Provider<
  typeof OPENAI_CHAT | typeof OPENAI_CHAT_STRICT,
  never,
  { readonly "openai": "openai.chat"; readonly "openai.strict": "openai.chat.strict" }
> = {
  targets: [OPENAI_CHAT, OPENAI_CHAT_STRICT],
  aliases: { "openai": "openai.chat", "openai.strict": "openai.chat.strict" },
};

// Mistral

/** The message that answers one call. */
export interface MistralToolMessage {
  role: "tool";
  tool_call_id: string;
  name: string;
  content: string;
}

/** The settings of a chat request. */
export interface MistralRequest {
  tool_choice?: "auto" | "none" | "any" | { type: "function"; function: { name: string } };
  parallel_tool_calls?: boolean;
}

function chooseMistral(settings: WireSettings): MistralRequest {
  return chooseFunction(settings, "any");
}

/**
 * The `tools` of a chat request. The subset of its strict mode is not documented: it is not used.
 */
const MISTRAL:
  & ListTarget<"mistral", FunctionTool, MistralToolMessage>
  & Chooses<typeof chooseMistral> = makeTarget({
    choose: chooseMistral,
    id: "mistral",
    title: "Mistral chat",
    source: "@mistralai/mistralai 2.7.0, API errors; 2026-11-20",
    // The schema is text for the model.
    input: {
      ...READ_BY_THE_MODEL,
      "root composition": unsure(ADVISORY),
      ...replacing("boolean schema"),
    },
    wire: functionTool,
    calls: {
      read: functionCallReader("a Mistral response"),
      write: (call, answer) => ({
        role: "tool",
        tool_call_id: call.callId,
        name: call.wireName,
        content: plainText(answer),
      }),
      stream: streamFunctionCalls,
    },
  });

/** Mistral's target. */
export const mistral: Provider<typeof MISTRAL> = { targets: [MISTRAL] };

// Ollama

/** The message that answers one call. */
export interface OllamaToolMessage {
  role: "tool";
  tool_name: string;
  content: string;
}

const readOllama = functionCallReader("an Ollama response");

const OLLAMA: ListTarget<"ollama", FunctionTool, OllamaToolMessage> = makeTarget({
  id: "ollama",
  title: "Ollama chat",
  source: "ollama 0.6.4, api/types.go; 2026-11-20",
  input: OLLAMA_RULES,
  wire: functionTool,
  calls: {
    read: readOllama,
    write: (call, answer) => ({
      role: "tool",
      tool_name: call.wireName,
      content: plainText(answer),
    }),
    stream: streamResponses(readOllama, ["message"]),
  },
});

/** Ollama's target. */
export const ollama: Provider<typeof OLLAMA> = { targets: [OLLAMA] };

// Cohere

/** Cohere does not document its rule: this is what every provider allows. */
const COHERE_NAMES: NameRule = { also: "", max: 64, separator: "__", letterFirst: true };

/** The message that answers one call. */
export interface CohereToolMessage {
  role: "tool";
  tool_call_id: string;
  content: CohereToolContent[];
}

/** An object as a document, which citations can name; anything else as text. */
export type CohereToolContent =
  | { type: "document"; document: { data: { [key: string]: unknown } } }
  | { type: "text"; text: string };

function cohereSteps(event: JsonRecord): readonly StreamStep[] {
  const key = String(event["index"]);
  const message = objectIn(event["delta"], "message");
  // Each event is about one call.
  const call = objectIn(message, "tool_calls") ?? objectIn(message, "toolCalls") ?? {};
  const called = objectIn(call, "function");
  const text: StreamStep = { type: "text", key, text: textIn(called, "arguments") ?? "" };
  switch (event["type"]) {
    case "tool-call-start":
      return [{ type: "open", key, id: textOf(call["id"]), name: textOf(called?.["name"]) }, text];
    case "tool-call-delta":
      return [text];
    case "tool-call-end":
      return [{ type: "close", key }];
    case "message-end": {
      const delta = event["delta"];
      const reason = member(delta, "finish_reason") ?? member(delta, "finishReason");
      return [{ type: "finish", cutOff: isCutOff(reason) }];
    }
    default:
      return [];
  }
}

/** The settings of a chat request. */
export interface CohereRequest {
  tool_choice?: "REQUIRED" | "NONE";
}

function chooseCohere({ toolChoice, parallel }: WireSettings, lose: LoseSetting): CohereRequest {
  loseParallel(parallel, lose);
  if (typeof toolChoice === "object") {
    lose("toolChoice", "a request cannot choose one tool, and any is required");
  }
  if (toolChoice === undefined || toolChoice === "auto") return {};
  return { tool_choice: toolChoice === "none" ? "NONE" : "REQUIRED" };
}

/** The `tools` of a chat request. Strictness is `strict_tools`, for the request as a whole. */
const COHERE:
  & ListTarget<"cohere", FunctionTool, CohereToolMessage>
  & Chooses<typeof chooseCohere> = makeTarget({
    choose: chooseCohere,
    id: "cohere",
    title: "Cohere chat v2",
    source: "cohere-ai 8.1.0, structured outputs page (a copy); 2026-11-20",
    names: COHERE_NAMES,
    input: COHERE_RULES,
    limits: [
      { name: "maxFields", value: 200, uncertain: true },
      { name: "minRequired", value: 1, uncertain: true },
    ],
    wire: functionTool,
    calls: {
      read: functionCallReader("a Cohere response"),
      write(call, answer) {
        const data = answer.ok
          ? answer.blocks === undefined && answer.value
          : { error: answer.text, code: answer.error.code };
        const content: CohereToolContent = isObject(data)
          ? { type: "document", document: { data: { ...data } } }
          : { type: "text", text: answer.text };
        return { role: "tool", tool_call_id: call.callId, content: [content] };
      },
      stream: () => ({ steps: cohereSteps, rebuild: rebuildFunctionCall }),
    },
  });

/** Cohere's target. */
export const cohere: Provider<typeof COHERE> = { targets: [COHERE] };
