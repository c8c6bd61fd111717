/**
 * Anthropic Messages, and its strict mode.
 *
 * @module
 */

import { markCutOff } from "./cut_off.ts";
import { calledName, given, isRecord, type JsonRecord, Shape, textOf } from "./shape.ts";
import { streamContentBlocks } from "./streams/content_blocks.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The block that answers one call. */
export interface AnthropicToolResult {
  type: "tool_result";
  tool_use_id: string;
  content: string;
  is_error?: true;
}

/** The message with the answers to all calls of a response. */
export interface AnthropicToolMessage {
  role: "user";
  content: AnthropicToolResult[];
}

// Read calls

const SHAPE = new Shape("an Anthropic message");

function read(response: unknown): readonly WireCall[] {
  if (Array.isArray(response)) return blocksOf(response, "");
  const top = SHAPE.record(response, "", "a message or a list of content blocks");
  if (top["type"] === "tool_use") return [blockOf(top)];
  if (given(top, "content")) {
    // A message may be text alone.
    if (typeof top["content"] === "string") return [];
    const content = SHAPE.list(top["content"], "/content");
    // If a call was cut off, no other block follows it.
    const last = content.at(-1);
    const calls = blocksOf(content, "/content");
    return isRecord(last) && last["type"] === "tool_use"
      ? markCutOff(calls, top["stop_reason"])
      : calls;
  }
  throw SHAPE.wrong("", 'an object with "content", or a content block of type "tool_use"');
}

function blocksOf(list: readonly unknown[], at: string): readonly WireCall[] {
  return list.flatMap((item, index) => {
    const raw = SHAPE.record(item, `${at}/${index}`);
    return raw["type"] === "tool_use" ? [blockOf(raw)] : [];
  });
}

function blockOf(raw: JsonRecord): WireCall {
  return {
    id: textOf(raw["id"]),
    ...calledName(raw["name"]),
    input: raw["input"],
    raw,
  };
}

// Write results

function write(call: AnsweredCall, answer: Answer): AnthropicToolResult {
  return {
    type: "tool_result",
    tool_use_id: call.callId,
    content: answer.text,
    ...(answer.ok ? {} : { is_error: true as const }),
  };
}

function gather(parts: readonly AnthropicToolResult[]): readonly AnthropicToolMessage[] {
  return [{ role: "user", content: [...parts] }];
}

// Notes

/** A message, its content, or one `tool_use` block. */
export const ANTHROPIC_CALLS: CallFormat<AnthropicToolResult, AnthropicToolMessage> = {
  title: "an Anthropic message",
  read,
  write,
  gather,
  stream: streamContentBlocks,
  notes: [
    "All answers go into one user message, which must come next and must begin with them.",
    "After calls made by code execution, send the message's container id back with the request.",
    "Calls that Anthropic runs itself (server_tool_use, mcp_tool_use) are not for you.",
    "A last block that the token limit cut off is refused: its input may be a part only.",
  ],
};
