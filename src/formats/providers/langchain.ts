/** LangChain JS: the arguments of `tool()` and `bindTools`, and the calls of a message. */

import { defined, isObject } from "../../tool/mod.ts";
import * as kit from "../provider_kit.ts";

// Tools

/** The parameters of a structured tool. */
export interface LangChainTool {
  name: string;
  description: string;
  schema: kit.ObjectSchema;
  extras?: { [key: string]: unknown };
}

const CALL: kit.CallFields = { id: "id", name: "name", input: "args" };

function stopReason(message: kit.JsonRecord): string | undefined {
  for (const holder of ["response_metadata", "additional_kwargs"]) {
    const fields = message[holder];
    if (!isObject(fields)) continue;
    for (const field of ["finish_reason", "stop_reason", "finishReason", "stopReason"]) {
      const reason = kit.textOf(fields[field]);
      if (reason !== undefined) return reason;
    }
  }
  return undefined;
}

// Not an interface, because only a type alias is assignable to LangChain's index signature.
/** The message that answers one call, or the argument of `new ToolMessage`. */
export type LangChainToolMessage = {
  type: "tool";
  tool_call_id: string;
  name: string;
  content: string | LangChainContentBlock[];
  status: "success" | "error";
  /** Data for the application, which models do not receive. */
  artifact?: { structuredContent?: unknown; metadata?: unknown };
};

/** A part of a result. */
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

/** Reads `tool_call_chunks`. The index or the id of a chunk identifies the call. */
function streamToolCallChunks(): kit.StreamFormat {
  let last = "";
  return {
    steps: (event) => {
      const kwargs = isObject(event["kwargs"]) ? event["kwargs"] : event;
      const chunks = kwargs["tool_call_chunks"];
      const found = (Array.isArray(chunks) ? chunks : []).filter(isObject).flatMap((chunk) => {
        const id = kit.textOf(chunk["id"]);
        const index = chunk["index"];
        if (typeof index === "number" || typeof index === "string") last = `#${index}`;
        else if (id !== undefined) last = id;
        const key = last;
        const steps = [kit.openStep(key, CALL, chunk)];
        if (typeof chunk["args"] === "string") {
          steps.push({ type: "text", key, text: chunk["args"] });
        }
        return steps;
      });
      return [...found, ...kit.finishSteps(stopReason(kwargs))];
    },
    rebuild: (parts) =>
      kit.streamedCall(CALL, parts, kit.parsed(parts.text), { type: "tool_call" }),
    endsSilently: true,
  };
}

/** LangChain JS. */
export const LANGCHAIN: kit.ListTarget<
  "langchain",
  LangChainTool,
  LangChainToolMessage,
  { tool_choice?: string }
> = /* @__PURE__ */ kit.makeTarget({
  id: "langchain",
  title: "LangChain JS",
  source: "@langchain/core 1.2.13; 2026-11-20",
  features: ["examples", "deferLoading", "allowedCallers", "cacheControl"],
  draft07: true,
  wire(view) {
    const { deferLoading, allowedCallers, cacheControl } = view.hints;
    const extras = defined({
      defer_loading: deferLoading,
      allowed_callers: allowedCallers,
      cache_control: cacheControl,
      input_examples: kit.unlessEmpty(view.examples.map(({ input }) => input)),
    });
    return {
      name: view.name,
      description: view.description,
      schema: view.parameters,
      ...(Object.keys(extras).length === 0 ? {} : { extras }),
    };
  },
  choose({ toolChoice, parallel }, lose) {
    if (parallel === false) {
      lose("parallel", "bindTools has no option for all providers; give the provider's own");
    }
    if (toolChoice === undefined) return {};
    if (typeof toolChoice === "object") return { tool_choice: toolChoice.name };
    return { tool_choice: toolChoice === "required" ? "any" : toolChoice };
  },
  calls: {
    // Reads an `AIMessage` or its JSON, a list of calls, or one call.
    read: kit.callReader({
      title: "a LangChain message",
      // The JSON of a message has the fields of the message in `kwargs`.
      messages: ["kwargs"],
      lists: ["tool_calls"],
      marks: ["content", "invalid_tool_calls"],
      onlyCalls: true,
      // LangChain completes arguments that were cut off, so that they seem complete.
      reasonOf: stopReason,
      isCall: (entry, isInList) => isInList || kit.isSet(entry, "args"),
      call: (call) => kit.callFrom(CALL, call),
      // Calls that LangChain could not parse may lack a name.
      others(message, at, shape) {
        const list = message["invalid_tool_calls"] ?? [];
        return shape.list(list, `${at}/invalid_tool_calls`).map((call) =>
          isObject(call) ? kit.callFrom(CALL, call) : kit.noCall(call)
        );
      },
    }),
    write(call, answer) {
      const { parts, hasValue, metadata } = answer.ok && answer.blocks || {};
      const structuredContent = answer.ok && hasValue === true ? answer.value : undefined;
      const artifact = defined({ structuredContent, metadata });
      return {
        type: "tool",
        tool_call_id: call.callId,
        name: call.wireName,
        content: parts as LangChainContentBlock[] | undefined ?? answer.text,
        status: answer.ok ? "success" : "error",
        ...(Object.keys(artifact).length === 0 ? {} : { artifact }),
      };
    },
    // LangChain passes every file to the provider's package, which accepts or rejects the file.
    media: {
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
    },
    stream: streamToolCallChunks,
  },
});
