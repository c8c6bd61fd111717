/**
 * Mistral chat completions.
 *
 * @module
 */

import { defined } from "../../tool/mod.ts";
import { plainText } from "../wire.ts";
import { ADVISORY, READ_BY_THE_MODEL, replacing, unsure } from "../form_rules.ts";
import { type ListTarget, makeTarget, type Provider } from "../target.ts";
import {
  functionCallReader,
  type FunctionTool,
  functionTool,
  streamFunctionCalls,
} from "./openai_chat.ts";
import type { Chooses, WireSettings } from "../export_options.ts";

/** A function in the `tools` of a chat request. */
export type MistralTool = FunctionTool;

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

function choose({ toolChoice, parallel }: WireSettings): MistralRequest {
  return defined({
    tool_choice: typeof toolChoice === "object"
      ? { type: "function" as const, function: { name: toolChoice.name } }
      : toolChoice === "required"
      ? "any" as const
      : toolChoice,
    parallel_tool_calls: parallel,
  });
}

/**
 * The `tools` of a chat request. The subset of its strict mode is not documented: it is not used.
 */
const MISTRAL:
  & ListTarget<"mistral", MistralTool, MistralToolMessage>
  & Chooses<typeof choose> = makeTarget({
    choose,
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
