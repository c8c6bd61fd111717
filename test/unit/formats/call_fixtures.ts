/** The responses of each provider for the same call, from the outermost level to the innermost. */

import type { TargetName } from "../../../src/formats/mod.ts";

export interface Fixture {
  readonly targets: readonly TargetName[];
  /** The name of the tool `city:weather` for this target. */
  readonly name: string;
  /** One call, of the tool with this name. */
  call(name: string, args: unknown, id: string): unknown;
  /** The levels that hold calls: the whole response first. */
  readonly levels: Readonly<Record<string, (calls: readonly unknown[]) => unknown>>;
  /** Whole responses without a call. */
  readonly silent: readonly unknown[];
  /** The calls have ids of the provider's. */
  readonly ids: boolean;
}

const json = (value: unknown): string => JSON.stringify(value);
const functionCall = (name: string, args: unknown, id: string): unknown => ({
  id,
  type: "function",
  function: { name, arguments: typeof args === "string" ? args : json(args) },
});
const list = (calls: readonly unknown[]): unknown => calls;

const chatMessage = (calls: readonly unknown[]): unknown => ({
  role: "assistant",
  content: null,
  tool_calls: calls,
});
const choice = (calls: readonly unknown[]): unknown => ({
  index: 0,
  message: chatMessage(calls),
  finish_reason: "tool_calls",
});

const items = (calls: readonly unknown[]): unknown => [
  { type: "reasoning", id: "rs_1", summary: [] },
  ...calls,
  { type: "message", role: "assistant", content: [{ type: "output_text", text: "One moment." }] },
];
const item = (name: string, args: unknown, id: string): unknown => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: typeof args === "string" ? args : json(args),
  status: "completed",
});

const blocks = (
  calls: readonly unknown[],
): unknown => [{ type: "text", text: "I look." }, ...calls];
const parts = (calls: readonly unknown[]): unknown => [{ text: "I look." }, ...calls];
const content = (calls: readonly unknown[]): unknown => ({ role: "model", parts: parts(calls) });
const converse = (calls: readonly unknown[]): unknown => ({
  role: "assistant",
  content: [{ text: "I look." }, ...calls],
});

export const FIXTURES: readonly Fixture[] = [
  {
    targets: ["openai", "openai.chat", "openai.strict", "openai.chat.strict"],
    name: "city__weather",
    ids: true,
    call: functionCall,
    levels: {
      completion: (calls) => ({
        id: "chatcmpl-1",
        object: "chat.completion",
        choices: [choice(calls)],
      }),
      choice,
      message: chatMessage,
      list,
    },
    silent: [{ choices: [{ message: { role: "assistant", content: "Hello." } }] }, { choices: [] }],
  },
  {
    targets: ["openai.responses", "openai.responses.strict"],
    name: "weather",
    ids: true,
    call: (name, args, id) => ({ ...item(name, args, id) as object, namespace: "city" }),
    levels: {
      response: (calls) => ({ id: "resp_1", object: "response", output: items(calls) }),
      event: (calls) => ({ type: "response.completed", response: { output: items(calls) } }),
      items,
    },
    silent: [{ output: [{ type: "message", role: "assistant", content: [] }] }, { output: [] }],
  },
  {
    targets: ["openai.realtime"],
    name: "city__weather",
    ids: true,
    call: item,
    levels: {
      "response.done": (calls) => ({ type: "response.done", response: { output: items(calls) } }),
      response: (calls) => ({ object: "realtime.response", output: items(calls) }),
      items,
    },
    silent: [{ type: "response.done", response: { output: [] } }],
  },
  {
    targets: ["anthropic", "anthropic.strict"],
    name: "city__weather",
    ids: true,
    call: (name, input, id) => ({ type: "tool_use", id, name, input, caller: { type: "direct" } }),
    levels: {
      message: (calls) => ({
        id: "msg_1",
        type: "message",
        role: "assistant",
        content: blocks(calls),
        stop_reason: "tool_use",
      }),
      content: blocks,
    },
    silent: [
      { role: "assistant", content: [{ type: "text", text: "Hello." }] },
      { role: "assistant", content: "Hello." },
      { content: [{ type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }] },
    ],
  },
  {
    targets: ["gemini", "gemini.typed", "vertex"],
    name: "city.weather",
    ids: true,
    call: (name, args, id) => ({ functionCall: { id, name, args }, thoughtSignature: "c2ln" }),
    levels: {
      response: (calls) => ({ candidates: [{ content: content(calls), finishReason: "STOP" }] }),
      candidate: (calls) => ({ content: content(calls) }),
      content,
      parts,
      live: (calls) => ({
        toolCall: {
          functionCalls: calls.map((call) => (call as { functionCall: unknown }).functionCall),
        },
      }),
    },
    silent: [
      { candidates: [{ content: { role: "model", parts: [{ text: "Hello." }] } }] },
      { candidates: [{ finishReason: "SAFETY" }] },
      { candidates: [] },
      { promptFeedback: { blockReason: "SAFETY" } },
    ],
  },
  {
    targets: ["mcp", "mcp@2025-06-18", "mcp@2025-11-25", "mcp@2026-07-28"],
    name: "city.weather",
    ids: true,
    call: (name, args, id) => ({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: { name, arguments: args },
    }),
    levels: { batch: list },
    silent: [[]],
  },
  {
    targets: ["bedrock", "bedrock.strict"],
    name: "city__weather",
    ids: true,
    call: (name, input, id) => ({ toolUse: { toolUseId: id, name, input } }),
    levels: {
      response: (calls) => ({ output: { message: converse(calls) }, stopReason: "tool_use" }),
      output: (calls) => ({ message: converse(calls) }),
      message: converse,
      content: (calls) => [{ text: "I look." }, ...calls],
    },
    silent: [{ output: { message: { role: "assistant", content: [{ text: "Hello." }] } } }],
  },
  {
    targets: ["mistral"],
    name: "city__weather",
    ids: true,
    call: functionCall,
    levels: {
      completion: (calls) => ({ object: "chat.completion", choices: [choice(calls)] }),
      "the SDK's": (calls) => ({
        choices: [{ message: { role: "assistant", toolCalls: calls }, finishReason: "tool_calls" }],
      }),
      message: chatMessage,
      list,
    },
    silent: [{ choices: [{ message: { role: "assistant", content: "Hello.", toolCalls: null } }] }],
  },
  {
    targets: ["cohere"],
    name: "city__weather",
    ids: true,
    call: functionCall,
    levels: {
      response: (calls) => ({
        id: "r1",
        finish_reason: "TOOL_CALL",
        message: { role: "assistant", tool_calls: calls, tool_plan: "I look." },
      }),
      "the SDK's": (calls) => ({ message: { role: "assistant", toolCalls: calls } }),
      message: chatMessage,
      list,
    },
    silent: [{ message: { role: "assistant", content: [{ type: "text", text: "Hello." }] } }],
  },
  {
    targets: ["ollama"],
    name: "city__weather",
    ids: false,
    call: (name, args) => ({ function: { name, arguments: args } }),
    levels: {
      response: (calls) => ({ model: "m", done: true, message: chatMessage(calls) }),
      message: chatMessage,
      list,
    },
    silent: [{ message: { role: "assistant", content: "Hello." }, done: true }],
  },
  {
    targets: ["ai-sdk"],
    name: "city__weather",
    ids: true,
    call: (toolName, input, toolCallId) => ({ type: "tool-call", toolCallId, toolName, input }),
    levels: {
      result: (calls) => ({ text: "", toolCalls: calls, finishReason: "tool-calls" }),
      message: (calls) => ({ role: "assistant", content: blocks(calls) }),
      parts: blocks,
    },
    silent: [
      { text: "Hello.", toolCalls: [] },
      { role: "assistant", content: "Hello." },
      [{
        type: "tool-call",
        providerExecuted: true,
        toolCallId: "s",
        toolName: "search",
        input: {},
      }],
    ],
  },
  {
    targets: ["langchain"],
    name: "city__weather",
    ids: true,
    call: (name, args, id) => ({ type: "tool_call", name, args, id }),
    levels: {
      message: (calls) => ({ content: "", tool_calls: calls, invalid_tool_calls: [] }),
      "as JSON": (calls) => ({
        lc: 1,
        type: "constructor",
        kwargs: { content: "", tool_calls: calls },
      }),
      list,
    },
    silent: [{ content: "Hello.", tool_calls: [] }, { content: "Hello." }],
  },
  {
    targets: ["openapi", "openapi@3.1"],
    name: "city.weather",
    ids: true,
    call: (operationId, body, callId) => ({ operationId, body, callId }),
    levels: { list },
    silent: [[]],
  },
];
