/**
 * Cohere chat, version 2.
 *
 * @module
 */

import { isObject } from "../../tool/mod.ts";
import type { StreamStep } from "../call_format.ts";
import { isCutOff, type JsonRecord, member, objectIn, textIn, textOf } from "../wire.ts";
import {
  type Chooses,
  loseParallel,
  type LoseSetting,
  type WireSettings,
} from "../export_options.ts";
import { COHERE_RULES } from "../form_rules.ts";
import type { NameRule } from "../../select/mod.ts";
import { type ListTarget, makeTarget, type Provider } from "../target.ts";
import {
  functionCallReader,
  type FunctionTool,
  functionTool,
  rebuildFunctionCall,
} from "./openai_chat.ts";

/** A function in the `tools` of a chat request. */
export type CohereTool = FunctionTool;

/** Cohere does not document its rule: this is what every provider allows. */
const NAMES: NameRule = { also: "", max: 64, separator: "__", letterFirst: true };

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

/** The one call that an event is about. */
function callIn(event: JsonRecord): JsonRecord {
  const message = objectIn(event["delta"], "message");
  return objectIn(message, "tool_calls") ?? objectIn(message, "toolCalls") ?? {};
}

function steps(event: JsonRecord): readonly StreamStep[] {
  const key = String(event["index"]);
  const call = callIn(event);
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

function choose({ toolChoice, parallel }: WireSettings, lose: LoseSetting): CohereRequest {
  loseParallel(parallel, lose);
  if (typeof toolChoice === "object") {
    lose("toolChoice", "a request cannot choose one tool, and any is required");
  }
  if (toolChoice === undefined || toolChoice === "auto") return {};
  return { tool_choice: toolChoice === "none" ? "NONE" : "REQUIRED" };
}

/** The `tools` of a chat request. Strictness is `strict_tools`, for the request as a whole. */
const COHERE:
  & ListTarget<"cohere", CohereTool, CohereToolMessage>
  & Chooses<typeof choose> = makeTarget({
    choose,
    id: "cohere",
    title: "Cohere chat v2",
    source: "cohere-ai 8.1.0, structured outputs page (a copy); 2026-11-20",
    names: NAMES,
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
      stream: () => ({ steps, rebuild: rebuildFunctionCall }),
    },
  });

/** Cohere's target. */
export const cohere: Provider<typeof COHERE> = { targets: [COHERE] };
