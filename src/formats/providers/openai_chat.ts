/**
 * OpenAI Chat Completions and its strict mode; and the message with `tool_calls`, which Mistral,
 * Cohere and Ollama have as well.
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
  noCall,
  plainText,
  textOf,
} from "../wire.ts";
import { OPENAI_RULES, OPENAI_STRICT_RULES } from "../form_rules.ts";
import type { Chooses, WireSettings } from "../export_options.ts";
import { features, type ListTarget, makeTarget, type Provider, type ToolView } from "../target.ts";
import { OPENAI_FORMATS, OPENAI_STRICT_LIMITS } from "./openai.ts";

// Tools

/** A function in the `tools` of a chat request. */
export interface OpenAiChatTool {
  type: "function";
  function: {
    name: string;
    description?: string;
    parameters: { [keyword: string]: unknown };
    strict?: boolean;
  };
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
export function functionTool(view: ToolView): FunctionTool {
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

/** The key of the legacy `function_call`. There is at most one. */
const LEGACY = "function_call";

const CALL: CallFields = { id: "id", name: "name", input: "arguments" };
const CUSTOM_CALL: CallFields = { ...CALL, input: "input" };

/**
 * Makes the function that reads a whole response, a choice, a message, a list of calls, or one
 * call; as sent or as an SDK has it.
 *
 * @param title Words for the response, with an article.
 */
export function functionCallReader(title: string): (response: unknown) => readonly WireCall[] {
  return callReader({
    title,
    messages: ["choices/0/message", "message"],
    lists: ["tool_calls", "toolCalls"],
    marks: ["role", LEGACY],
    onlyCalls: true,
    reasonOf: (choice) => choice["finish_reason"] ?? choice["finishReason"],
    isCall: (entry, isInList) => isInList || given(entry, "function") || entry["type"] === "custom",
    call: callOf,
    others: (message, at, shape) =>
      given(message, LEGACY)
        ? [callFrom(CALL, shape.record(message[LEGACY], `${at}/${LEGACY}`))]
        : [],
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

function choose({ toolChoice, parallel }: WireSettings): OpenAiChatRequest {
  return defined({
    tool_choice: typeof toolChoice === "object"
      ? { type: "function" as const, function: { name: toolChoice.name } }
      : toolChoice,
    parallel_tool_calls: parallel,
  });
}

// Results

/** The message that answers one call; `role: "function"` is for the legacy `function_call`. */
export type OpenAiChatToolMessage =
  | { role: "tool"; tool_call_id: string; content: string }
  | { role: "function"; name: string; content: string };

/** A `function_call` has its name and arguments where a tool call has `function`, and no id. */
function isLegacy(raw: unknown): boolean {
  return isObject(raw) && !isObject(raw["function"]) && !isObject(raw["custom"]) &&
    !given(raw, "id") && !given(raw, "type");
}

// Stream

/**
 * Reads the chunks of a stream. A chunk names a call by its index, and gives id and name once. Some
 * servers leave the index out, or give every call index 0: then a new id with a name begins a call.
 */
export function streamFunctionCalls(): StreamFormat {
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

  function deltaSteps(delta: JsonRecord, legacy: boolean): readonly StreamStep[] {
    const called = legacy ? delta : isObject(delta["function"]) ? delta["function"] : {};
    const id = textOf(delta["id"]);
    const name = textOf(called["name"]);
    const key = legacy ? LEGACY : keyOf(delta, id, name);
    const steps: StreamStep[] = [{
      type: "open",
      key,
      id,
      name,
      start: legacy ? LEGACY : undefined,
    }];
    const text = called["arguments"];
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
    const found = (Array.isArray(calls) ? calls : []).filter(isObject)
      .flatMap((call) => deltaSteps(call, false));
    const legacy = delta["function_call"];
    if (isObject(legacy)) found.push(...deltaSteps(legacy, true));
    const reason = choice["finish_reason"] ?? choice["finishReason"];
    if (typeof reason === "string") found.push({ type: "finish", cutOff: isCutOff(reason) });
    return found;
  }

  return { steps, rebuild: rebuildFunctionCall };
}

/** The call in the form of an unstreamed message. */
export function rebuildFunctionCall({ id, name, text, start }: StreamedParts): unknown {
  const called = { name, arguments: text };
  if (start === LEGACY) return { role: "assistant", function_call: called };
  return { ...defined({ id }), type: "function", function: called };
}

// The provider

/** The `tools` of a chat request. */
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
      write(call, answer) {
        const content = plainText(answer);
        return isLegacy(call.raw)
          ? { role: "function", name: call.wireName, content }
          : { role: "tool", tool_call_id: call.callId, content };
      },
      stream: streamFunctionCalls,
    },
  });

/** The same with `strict: true`: the model is held to the schema. */
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
