/** Tools for the OpenAI Agents SDK, which is not imported. */

import type { AnsweredCall, Exportable } from "../../formats/mod.ts";
import { OPENAI_CHAT_STRICT } from "../../formats/providers/openai_chat.ts";
import { OPENAI_RESPONSES } from "../../formats/providers/openai_responses.ts";
import { encodeResult } from "../../formats/records.ts";
import type { ToolResult } from "../../tool/mod.ts";
import { type FrameworkOptions, runnable } from "./framework_tools.ts";

/** A part of a result in the OpenAI Agents SDK. */
export type AgentsOutput =
  | { type: "text"; text: string }
  | { type: "image"; image: string }
  | { type: "file"; file: { data: string; mediaType: string; filename: string } };

/** A tool of the OpenAI Agents SDK, in the form that its `tool()` returns. */
export interface AgentsTool {
  type: "function";
  name: string;
  description: string;
  parameters: {
    type: "object";
    properties: { [name: string]: unknown };
    required: string[];
    additionalProperties: false;
  };
  strict: boolean;
  invoke(
    runContext: unknown,
    input: string,
    details?: { readonly toolCall?: { readonly callId: string }; readonly signal?: AbortSignal },
  ): Promise<string | AgentsOutput[]>;
  needsApproval(runContext?: unknown, input?: unknown, callId?: string): Promise<boolean>;
  isEnabled(): Promise<boolean>;
}

/**
 * Returns the tools for an agent of the OpenAI Agents SDK (`@openai/agents`). They are strict if
 * their schemas allow it. The result of a failed call is its message, which begins with its code.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { toOpenAiAgentsTools } from "@plue/tools/frameworks";
 *
 * const ping = defineTool({ name: "ping", description: "Answers.", execute: () => "pong" });
 * const toolset = new ToolRegistry({ tools: [ping] }).select();
 * const [tool] = toOpenAiAgentsTools(toolset, { dispatcher: new ToolDispatcher(toolset) });
 * // new Agent({ name: "Assistant", tools: [tool] })
 * assert.equal(await tool?.invoke(undefined, "{}"), "pong");
 * ```
 *
 * @throws {TypeError} If an option is invalid, or a tool cannot be exported.
 */
export function toOpenAiAgentsTools<Context>(
  source: Exportable,
  options: FrameworkOptions<Context>,
): AgentsTool[] {
  const { tools, answer, request } = runnable(OPENAI_CHAT_STRICT, source, options);
  return tools.map((
    { type, function: { name, description = "", parameters, strict = false } },
  ) => ({
    type,
    name,
    description,
    // Only strict tools fit the SDK's type; the SDK sends the schema unchanged.
    parameters: parameters as AgentsTool["parameters"],
    strict,
    async invoke(_runContext, input, details) {
      const id = details?.toolCall?.callId ?? "call_1";
      const call = { id, type: "function", function: { name, arguments: input } };
      const { message, result } = await answer(call, details?.signal);
      return result.ok && result.blocks === true
        ? outputOf({ callId: id, wireName: name }, result)
        : message.content;
    },
    async needsApproval(runContext, input, id = "call_1") {
      if (request === undefined) return false;
      const call = { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
      // When the run resumes, the SDK calls this again: the decision is recorded already.
      const record = isDecided(runContext, name, id) ? "never" : "always";
      return await request(call, record) !== undefined;
    },
    isEnabled: () => Promise.resolve(true),
  }));
}

/** True if a person has approved or rejected a call, so that the call is not new. */
function isDecided(runContext: unknown, toolName: string, callId: string): boolean {
  const context: { isToolApproved?(call: object): boolean | undefined } = Object(runContext);
  return context.isToolApproved?.({ toolName, callId }) !== undefined;
}

function outputOf(call: AnsweredCall, result: ToolResult): string | AgentsOutput[] {
  const written = encodeResult(OPENAI_RESPONSES, call, result);
  if (written.type === "tool_search_output") return "";
  const { output } = written;
  if (typeof output === "string") return output;
  return output.map((part): AgentsOutput => {
    if (part.type === "input_text") return { type: "text", text: part.text };
    if (part.type === "input_image") return { type: "image", image: part.image_url };
    const [head = "", data = ""] = part.file_data.split(",");
    const mediaType = head.slice("data:".length, -";base64".length);
    return { type: "file", file: { data, mediaType, filename: part.filename } };
  });
}
