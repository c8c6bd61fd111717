/**
 * LangChain JS: what `tool()` and `bindTools` take, and the calls of a message.
 *
 * @module
 */

import { defined, isObject } from "../../tool/mod.ts";
import type { Answer, MediaFormat, StreamFormat, StreamStep, WireCall } from "../call_format.ts";
import {
  calledName,
  given,
  isCutOff,
  type JsonRecord,
  markCutOff,
  noCall,
  parsed,
  Shape,
  textOf,
  unlessEmpty,
} from "../wire.ts";
import type { Chooses, LoseSetting, WireSettings } from "../export_options.ts";
import { READ_BY_THE_MODEL } from "../form_rules.ts";
import { features, type ListTarget, makeTarget, type Provider } from "../target.ts";

// Tools

/** The parameters of a structured tool. */
export interface LangChainTool {
  name: string;
  description: string;
  schema: { type: "object"; [keyword: string]: unknown };
  extras?: { [key: string]: unknown };
}

// Settings

/** The options of `bindTools`. */
export interface LangChainRequest {
  /** `any`: at least one. Another text is the name of a tool. */
  tool_choice?: string;
}

function choose({ toolChoice, parallel }: WireSettings, lose: LoseSetting): LangChainRequest {
  if (parallel === false) {
    lose("parallel", "bindTools has no option for all providers; give the provider's own");
  }
  if (toolChoice === undefined) return {};
  if (typeof toolChoice === "object") return { tool_choice: toolChoice.name };
  return { tool_choice: toolChoice === "required" ? "any" : toolChoice };
}

// Calls

const SHAPE = new Shape("a LangChain message");

function read(response: unknown): readonly WireCall[] {
  if (Array.isArray(response)) return callsOf(response, "");
  const top = SHAPE.record(response, "", "a message or a list of calls");
  // A message that was written as JSON has its fields in `kwargs`.
  const kwargs = isObject(top["kwargs"]);
  const at = kwargs ? "/kwargs" : "";
  const message = kwargs ? SHAPE.record(top["kwargs"], at) : top;
  const fields = ["tool_calls", "invalid_tool_calls"];
  if (fields.some((field) => given(message, field))) {
    const [calls = [], invalid = []] = fields.map((field) =>
      callsOf(SHAPE.optionalList(message[field], `${at}/${field}`), `${at}/${field}`)
    );
    // LangChain completes arguments that were cut off, so they look whole.
    return [...markCutOff(calls, stopReason(message)), ...invalid];
  }
  if (given(message, "content")) return [];
  if (given(message, "args")) return [callOf(message)];
  throw SHAPE.wrong("", 'an object with "tool_calls" or "content", or a call');
}

function callsOf(list: readonly unknown[], at: string): readonly WireCall[] {
  return list.map((item, index) => {
    if (!isObject(item) && at !== "") return noCall(item);
    return callOf(SHAPE.record(item, `${at}/${index}`));
  });
}

function callOf(raw: JsonRecord): WireCall {
  return {
    id: textOf(raw["id"]),
    // An invalid call may lack a name.
    ...calledName(raw["name"]),
    input: raw["args"],
    raw,
  };
}

/**
 * The stop reason from the provider's package; `undefined` if it is absent.
 */
function stopReason(message: JsonRecord): string | undefined {
  for (const holder of ["response_metadata", "additional_kwargs"]) {
    const fields = message[holder];
    if (!isObject(fields)) continue;
    for (const field of ["finish_reason", "stop_reason", "finishReason", "stopReason"]) {
      const reason = textOf(fields[field]);
      if (reason !== undefined) return reason;
    }
  }
  return undefined;
}

// Results

// Not an interface: only a type alias is assignable to LangChain's index signature.
/**
 * The fields of the message that answers one call. It is also a valid argument of `new ToolMessage`.
 */
export type LangChainToolMessage = {
  type: "tool";
  tool_call_id: string;
  name: string;
  content: string | LangChainContentBlock[];
  status: "success" | "error";
  /** The part of the result for the application, which models do not receive. */
  artifact?: { structuredContent?: unknown; metadata?: unknown };
};

/** A part of a result, in the form that the packages of the providers read. */
export type LangChainContentBlock =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string } }
  | {
    type: "audio" | "file";
    source_type: "base64";
    mime_type: string;
    data: string;
    metadata?: { filename: string };
  };

/** Every file: LangChain passes it on, and the package of the provider accepts or rejects it. */
const MEDIA: MediaFormat<LangChainContentBlock> = {
  text: (text) => ({ type: "text", text }),
  file({ mimeType, data, name }) {
    if (mimeType.startsWith("image/")) {
      return { type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } };
    }
    return {
      type: mimeType.startsWith("audio/") ? "audio" : "file",
      source_type: "base64",
      mime_type: mimeType,
      data,
      ...(name === undefined ? {} : { metadata: { filename: name } }),
    };
  },
};

/** The artifact of a message. */
function artifactOf(answer: Answer): Pick<LangChainToolMessage, "artifact"> {
  if (!answer.ok || answer.blocks === undefined) return {};
  const { hasValue, metadata } = answer.blocks;
  const artifact = defined({ structuredContent: hasValue ? answer.value : undefined, metadata });
  return Object.keys(artifact).length === 0 ? {} : { artifact };
}

// Stream

/** How LangChain streams calls: `tool_call_chunks`, identified by their index or their id. */
function streamToolCallChunks(): StreamFormat {
  let last = "";
  return {
    steps: (event) => {
      const kwargs = isObject(event["kwargs"]) ? event["kwargs"] : event;
      const chunks = kwargs["tool_call_chunks"];
      const found = (Array.isArray(chunks) ? chunks : []).filter(isObject).flatMap((chunk) => {
        const id = textOf(chunk["id"]);
        const index = chunk["index"];
        if (typeof index === "number" || typeof index === "string") last = `#${index}`;
        else if (id !== undefined) last = id;
        const key = last;
        const steps: StreamStep[] = [{ type: "open", key, id, name: textOf(chunk["name"]) }];
        if (typeof chunk["args"] === "string") {
          steps.push({ type: "text", key, text: chunk["args"] });
        }
        return steps;
      });
      const reason = stopReason(kwargs);
      if (reason !== undefined) found.push({ type: "finish", cutOff: isCutOff(reason) });
      return found;
    },
    rebuild: ({ id, name, text }) => ({
      type: "tool_call",
      ...(id === undefined ? {} : { id }),
      name,
      args: parsed(text),
    }),
    endsSilently: true,
  };
}

// The provider

/** A list of `StructuredToolParams`. */
const LANGCHAIN:
  & ListTarget<"langchain", LangChainTool, LangChainToolMessage>
  & Chooses<typeof choose> = makeTarget({
    choose,
    id: "langchain",
    title: "LangChain JS",
    source: "@langchain/core 1.2.13; 2026-11-20",
    features: features(["examples", "deferLoading", "allowedCallers", "cacheControl"]),
    input: READ_BY_THE_MODEL,
    draft07: true,
    wire: (view) => {
      const { deferLoading, allowedCallers, cacheControl } = view.hints;
      const extras = defined({
        defer_loading: deferLoading,
        allowed_callers: allowedCallers,
        cache_control: cacheControl,
        input_examples: unlessEmpty(view.examples.map(({ input }) => input)),
      });
      return {
        name: view.name,
        description: view.description,
        // `defineTool` requires an object root.
        schema: view.parameters as LangChainTool["schema"],
        ...(Object.keys(extras).length === 0 ? {} : { extras }),
      };
    },
    calls: {
      // An `AIMessage`, also as JSON, a list of calls, or one call.
      read,
      write: (call, answer) => ({
        type: "tool",
        tool_call_id: call.callId,
        name: call.wireName,
        content: (answer.ok ? answer.blocks?.parts as LangChainContentBlock[] : undefined) ??
          answer.text,
        status: answer.ok ? "success" : "error",
        ...artifactOf(answer),
      }),
      media: MEDIA,
      stream: streamToolCallChunks,
    },
  });

export const langchain: Provider<typeof LANGCHAIN> = {
  targets: [LANGCHAIN],
};
