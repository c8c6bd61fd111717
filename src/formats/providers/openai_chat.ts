/** The providers whose messages have `tool_calls`: OpenAI Chat, Mistral, Ollama and Cohere. */

import { defined, isObject } from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";
import { OPENAI_FORMATS, OPENAI_STRICT_LIMITS } from "./openai.ts";

/** A function of Chat Completions and of similar APIs. */
export interface FunctionTool {
  type: "function";
  function: { name: string; description?: string; parameters: kit.ObjectSchema };
}

function functionTool(view: kit.ToolView): FunctionTool {
  const { name, parameters } = view;
  return { type: "function", function: { name, ...kit.descriptionOf(view), parameters } };
}

/** The settings of a request. `Required` is the provider's word for at least one call. */
interface FunctionSettings<Required> {
  tool_choice?: "auto" | "none" | Required | { type: "function"; function: { name: string } };
  parallel_tool_calls?: boolean;
}

function chooseFunction<Required extends string>(
  required: Required,
): (settings: kit.WireSettings) => FunctionSettings<Required> {
  return ({ toolChoice, parallel }) => {
    const choice = toolChoice === "required" ? required : toolChoice;
    const name = typeof choice === "object" ? choice.name : "";
    return defined({
      tool_choice: typeof choice === "object"
        ? { type: "function" as const, function: { name } }
        : choice,
      parallel_tool_calls: parallel,
    });
  };
}

/** The reason to reject a call of a custom tool. */
export const CUSTOM_TOOL =
  "it is a call of a custom tool, which takes text, and only functions were offered";

function functionCallReader(title: string): kit.CallFormat["read"] {
  return kit.callReader({
    title,
    messages: ["choices/0/message", "message"],
    lists: ["tool_calls", "toolCalls"],
    marks: ["role"],
    onlyCalls: true,
    reasonOf: (choice) => choice["finish_reason"] ?? choice["finishReason"],
    isCall: (entry, isInList) =>
      isInList || kit.isSet(entry, "function") || entry["type"] === "custom",
    call: callOf,
  });
}

function callOf(raw: kit.JsonRecord): kit.WireCall {
  const fields = { id: "id", name: "name", input: "arguments" };
  const { type, custom, function: called } = raw;
  if (type === "custom" && isObject(custom)) {
    return { ...kit.callFrom({ ...fields, input: "input" }, custom, raw), refusal: CUSTOM_TOOL };
  }
  return isObject(called)
    ? kit.callFrom(fields, called, raw)
    : { id: kit.textOf(raw["id"]), ...kit.noCall(raw) };
}

/**
 * Reads the chunks of a stream. The first chunk of a call has the call's id and name. Some servers
 * omit the index, or use 0 for all calls. Then a chunk with a new id and a name begins a call.
 */
function streamFunctionCalls(): kit.StreamFormat {
  const keys = new Map<unknown, { readonly key: string; readonly id: string | undefined }>();
  let made = 0;

  function keyOf(delta: kit.JsonRecord, id: string | undefined, name: string | undefined): string {
    const index = typeof delta["index"] === "number" ? delta["index"] : "none";
    const open = keys.get(index);
    const begins = open === undefined ||
      (name !== undefined && id !== undefined && open.id !== undefined && open.id !== id);
    const key = begins ? `${made++}` : open.key;
    keys.set(index, { key, id: begins ? id : open.id ?? id });
    return key;
  }

  function deltaSteps(delta: kit.JsonRecord): readonly kit.StreamStep[] {
    const called = kit.objectIn(delta, "function");
    const id = kit.textOf(delta["id"]);
    const name = kit.textOf(called?.["name"]);
    const key = keyOf(delta, id, name);
    const open: kit.StreamStep = { type: "open", key, id, name };
    const text = called?.["arguments"];
    if (typeof text === "string") return [open, { type: "text", key, text }];
    // Some servers send a whole call, with its arguments as an object.
    return isObject(text) ? [open, { type: "input", key, text: JSON.stringify(text) }] : [open];
  }

  return {
    steps(event) {
      // Mistral's SDK wraps each chunk in `data`.
      const chunk = isObject(event["data"]) ? event["data"] : event;
      const choices = Array.isArray(chunk["choices"]) ? chunk["choices"] : [];
      const choice = choices.find((one) => isObject(one) && (one["index"] ?? 0) === 0);
      if (!isObject(choice)) return [];
      const delta = isObject(choice["delta"]) ? choice["delta"] : {};
      const calls = delta["tool_calls"] ?? delta["toolCalls"];
      const found = (Array.isArray(calls) ? calls : []).filter(isObject).flatMap(deltaSteps);
      const reason = choice["finish_reason"] ?? choice["finishReason"];
      return [...found, ...kit.finishSteps(reason)];
    },
    rebuild: rebuildFunctionCall,
  };
}

function rebuildFunctionCall({ id, name, text }: kit.StreamedParts): unknown {
  return { ...defined({ id }), type: "function", function: { name, arguments: text } };
}

// OpenAI

/** A function in the `tools` of a chat request. */
export interface OpenAiChatTool extends FunctionTool {
  function: FunctionTool["function"] & { strict?: boolean };
}

/** The message that answers one call. */
export interface OpenAiChatToolMessage {
  role: "tool";
  tool_call_id: string;
  content: string;
}

type OpenAiChat<Id extends string> = kit.ListTarget<
  Id,
  OpenAiChatTool,
  OpenAiChatToolMessage,
  FunctionSettings<"required">
>;

/** OpenAI Chat Completions. */
export const OPENAI_CHAT: OpenAiChat<"openai.chat"> = /* @__PURE__ */ kit.makeTarget({
  id: "openai.chat",
  title: "OpenAI Chat Completions",
  source: "openai 7.55.0, openai-openapi 2.3.0, API errors; 2026-11-20",
  features: ["strict"],
  extra: { source: "openai", surface: "chat" },
  input: kit.OPENAI_RULES,
  limits: [
    { name: "maxTools", value: 128 },
    { name: "maxDescription", value: 1_024, uncertain: true },
  ],
  strictMode: () => OPENAI_CHAT_STRICT,
  wire(view) {
    const tool = functionTool(view);
    const strict = view.strict ? { strict: true } : {};
    return { ...tool, function: { ...view.extra, ...tool.function, ...strict } };
  },
  choose: chooseFunction("required"),
  calls: {
    read: functionCallReader("an OpenAI Chat response"),
    write: (call, answer) => ({
      role: "tool",
      tool_call_id: call.callId,
      content: kit.plainText(answer),
    }),
    stream: streamFunctionCalls,
  },
});

/** OpenAI Chat Completions in strict mode. */
export const OPENAI_CHAT_STRICT: OpenAiChat<"openai.chat.strict"> = /* @__PURE__ */ kit.makeTarget({
  ...OPENAI_CHAT,
  id: "openai.chat.strict",
  title: "OpenAI Chat Completions, strict",
  source: "structured-outputs guide, openai 7.55.0 lib/transform, API errors; 2026-11-20",
  input: kit.OPENAI_STRICT_RULES,
  formats: OPENAI_FORMATS,
  limits: [...OPENAI_CHAT.limits, ...OPENAI_STRICT_LIMITS],
  fallback: OPENAI_CHAT,
});

// Mistral

// The schemas of Mistral's strict mode are not documented.
/** Mistral Chat. */
export const MISTRAL: kit.ListTarget<
  "mistral",
  FunctionTool,
  OpenAiChatToolMessage & { name: string },
  FunctionSettings<"any">
> = /* @__PURE__ */ kit.makeTarget({
  id: "mistral",
  title: "Mistral chat",
  source: "@mistralai/mistralai 2.7.0, API errors; 2026-11-20",
  // The schema is text for the model.
  input: {
    ...kit.READ_BY_THE_MODEL,
    "root composition": kit.unsure(kit.ADVISORY),
    ...kit.replacing("boolean schema"),
  },
  wire: functionTool,
  choose: chooseFunction("any"),
  calls: {
    read: functionCallReader("a Mistral response"),
    write: (call, answer) => ({
      role: "tool",
      tool_call_id: call.callId,
      name: call.wireName,
      content: kit.plainText(answer),
    }),
    stream: streamFunctionCalls,
  },
});

// Ollama

const readOllama = functionCallReader("an Ollama response");

/** Ollama Chat. */
export const OLLAMA: kit.ListTarget<
  "ollama",
  FunctionTool,
  { role: "tool"; tool_name: string; content: string }
> = /* @__PURE__ */ kit.makeTarget({
  id: "ollama",
  title: "Ollama chat",
  source: "ollama 0.6.4, api/types.go; 2026-11-20",
  input: kit.OLLAMA_RULES,
  wire: functionTool,
  calls: {
    read: readOllama,
    write: (call, answer) => ({
      role: "tool",
      tool_name: call.wireName,
      content: kit.plainText(answer),
    }),
    stream: kit.streamResponses(readOllama, ["message"]),
  },
});

// Cohere

/** An object is sent as a document, which citations can name. Other values are sent as texts. */
export type CohereToolContent =
  | { type: "document"; document: { data: { [key: string]: unknown } } }
  | { type: "text"; text: string };

function cohereSteps(event: kit.JsonRecord): readonly kit.StreamStep[] {
  const key = String(event["index"]);
  const { type, delta } = event;
  const message = kit.objectIn(delta, "message");
  const call = kit.objectIn(message, "tool_calls") ?? kit.objectIn(message, "toolCalls") ?? {};
  const called = kit.objectIn(call, "function");
  const text: kit.StreamStep = { type: "text", key, text: kit.textIn(called, "arguments") ?? "" };
  if (type === "tool-call-start") {
    return [
      { type: "open", key, id: kit.textOf(call["id"]), name: kit.textOf(called?.["name"]) },
      text,
    ];
  }
  if (type === "tool-call-delta") return [text];
  if (type === "tool-call-end") return [{ type: "close", key }];
  if (type !== "message-end") return [];
  const reason = kit.member(delta, "finish_reason") ?? kit.member(delta, "finishReason");
  return [{ type: "finish", cutOff: kit.isCutOff(reason) }];
}

// Cohere's strict mode, `strict_tools`, is a setting of the whole request.
/** Cohere Chat. */
export const COHERE: kit.ListTarget<
  "cohere",
  FunctionTool,
  { role: "tool"; tool_call_id: string; content: CohereToolContent[] },
  { tool_choice?: "REQUIRED" | "NONE" }
> = /* @__PURE__ */ kit.makeTarget({
  id: "cohere",
  title: "Cohere chat v2",
  source: "cohere-ai 8.1.0, structured outputs page (a copy); 2026-11-20",
  // Cohere does not document the legal names. These names are legal for every provider.
  names: { also: "", max: 64, separator: "__", letterFirst: true },
  input: kit.COHERE_RULES,
  limits: [
    { name: "maxFields", value: 200, uncertain: true },
    { name: "minRequired", value: 1, uncertain: true },
  ],
  wire: functionTool,
  choose({ toolChoice, parallel }, lose) {
    kit.loseParallel(parallel, lose);
    if (typeof toolChoice === "object") {
      lose("toolChoice", "a request cannot choose one tool, so the model must call any tool");
    }
    if (toolChoice === undefined || toolChoice === "auto") return {};
    return { tool_choice: toolChoice === "none" ? "NONE" : "REQUIRED" };
  },
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
