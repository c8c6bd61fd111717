/**
 * AWS Bedrock Converse, and its strict mode.
 *
 * @module
 */

import type { JsonValue } from "../../tool/mod.ts";
import { markCutOff } from "./cut_off.ts";
import { calledName, given, isRecord, Shape, textOf } from "./shape.ts";
import { streamConverse } from "./streams/converse.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** A value, as the SDK has it. */
export type BedrockDocument =
  | null
  | boolean
  | number
  | string
  | BedrockDocument[]
  | { [key: string]: BedrockDocument };

/** The block that answers one call. */
export interface BedrockToolResult {
  toolResult: {
    toolUseId: string;
    content: ({ json: { [key: string]: BedrockDocument } } | { text: string })[];
    status: "success" | "error";
  };
}

/** The message with the answers to all calls of a response. */
export interface BedrockToolMessage {
  role: "user";
  content: BedrockToolResult[];
}

// Read calls

const SHAPE = new Shape("a Bedrock Converse response");

function read(response: unknown): readonly WireCall[] {
  if (Array.isArray(response)) return blocksOf(response, "");
  const top = SHAPE.record(response, "", "a response, a message or a list of content blocks");
  const reason = top["stopReason"];
  if (given(top, "output")) {
    const output = SHAPE.record(top["output"], "/output");
    return messageOf(output["message"], "/output/message", reason);
  }
  if (given(top, "message")) return messageOf(top["message"], "/message", reason);
  if (given(top, "content")) return messageOf(top, "", undefined);
  if (given(top, "toolUse")) return blocksOf([top], "");
  throw SHAPE.wrong("", 'an object with "output", "message", "content" or "toolUse"');
}

function messageOf(value: unknown, at: string, reason: unknown): readonly WireCall[] {
  const message = SHAPE.record(value, at);
  const content = SHAPE.list(message["content"], `${at}/content`);
  const calls = blocksOf(content, `${at}/content`);
  // If a call was cut off, no other block follows it.
  const last = content.at(-1);
  return isRecord(last) && given(last, "toolUse") ? markCutOff(calls, reason) : calls;
}

function blocksOf(list: readonly unknown[], at: string): readonly WireCall[] {
  return list.flatMap((item, index) => {
    const here = `${at}/${index}`;
    const raw = SHAPE.record(item, here);
    if (!given(raw, "toolUse")) return [];
    const use = SHAPE.record(raw["toolUse"], `${here}/toolUse`);
    // Server tools are run by AWS.
    if (use["type"] === "server_tool_use") return [];
    return [{
      id: textOf(use["toolUseId"]),
      ...calledName(use["name"]),
      input: use["input"],
      raw,
    }];
  });
}

// Write results

function write(call: AnsweredCall, answer: Answer): BedrockToolResult {
  return {
    toolResult: {
      toolUseId: call.callId,
      content: [
        answer.ok && isJsonObject(answer.value)
          // The SDK's type is JSON that may be written to; it does not write.
          ? { json: answer.value as { [key: string]: BedrockDocument } }
          : { text: answer.text },
      ],
      status: answer.ok ? "success" : "error",
    },
  };
}

/** `json` takes objects and nothing else. */
function isJsonObject(value: JsonValue): boolean {
  return isRecord(value);
}

function gather(parts: readonly BedrockToolResult[]): readonly BedrockToolMessage[] {
  return [{ role: "user", content: [...parts] }];
}

// Notes

/** A response, a message, its content, or one `toolUse` block. */
export const BEDROCK_CALLS: CallFormat<BedrockToolResult, BedrockToolMessage> = {
  title: "a Bedrock Converse response",
  read,
  write,
  gather,
  stream: streamConverse,
  notes: [
    "All answers go into one user message.",
    "Objects are sent as json, which takes nothing else; other values as text.",
    "Only some models (Claude, Nova) look at status; the text says that it is a failure too.",
    "Send toolConfig with every request that has these blocks in its history.",
    "A last block that the token limit cut off is refused: its input may be a part only.",
  ],
};
