/**
 * The Model Context Protocol: `tools/call`, in three revisions.
 *
 * @module
 */

import type { JsonValue } from "../../tool/mod.ts";
import { given, isRecord, type JsonRecord, Shape } from "./shape.ts";
import type { Answer, AnsweredCall, CallFormat, WireCall } from "./types.ts";

/** The result of `tools/call`. */
export interface McpToolResult {
  /** From revision 2026-07-28 on. */
  resultType?: "complete";
  content: { type: "text"; text: string }[];
  /** An object, until revision 2026-07-28. */
  structuredContent?: JsonValue;
  isError?: true;
}

/** The answer to a whole JSON-RPC request. */
export interface McpToolResponse {
  jsonrpc: "2.0";
  id: string | number;
  result: McpToolResult;
}

/** What answers a call: the result, in a JSON-RPC response if the call came as a JSON-RPC request. */
export type McpToolAnswer = McpToolResult | McpToolResponse;

// Read calls

const SHAPE = new Shape("an MCP request");

function read(request: unknown): readonly WireCall[] {
  if (!Array.isArray(request)) return [callOf(request, "")];
  return request.map((item, index) => callOf(item, `/${index}`));
}

function callOf(value: unknown, at: string): WireCall {
  const raw = SHAPE.record(value, at, "a request or the params of one");
  const whole = given(raw, "method") || given(raw, "params");
  if (whole && raw["method"] !== "tools/call") throw SHAPE.wrong(`${at}/method`, '"tools/call"');
  const params = whole ? SHAPE.record(raw["params"], `${at}/params`) : raw;
  const id = requestId(raw);
  return {
    id: id === undefined ? undefined : String(id),
    name: SHAPE.text(params["name"], whole ? `${at}/params/name` : `${at}/name`),
    input: params["arguments"],
    raw,
  };
}

function requestId(raw: JsonRecord): string | number | undefined {
  const id = raw["id"];
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

// Write results

function resultOf(answer: Answer, complete: boolean): McpToolResult {
  const type = complete ? { resultType: "complete" as const } : {};
  const content = [{ type: "text" as const, text: answer.text }];
  if (!answer.ok) return { ...type, content, isError: true };
  // A tool with an outputSchema must answer structuredContent; others may.
  return {
    ...type,
    content,
    ...(complete || isRecord(answer.value) ? { structuredContent: answer.value } : {}),
  };
}

function write(call: AnsweredCall, answer: Answer, complete: boolean): McpToolAnswer {
  const result = resultOf(answer, complete);
  const raw = isRecord(call.raw) ? call.raw : {};
  const id = requestId(raw);
  return raw["method"] === "tools/call" && id !== undefined
    ? { jsonrpc: "2.0", id, result }
    : result;
}

// Notes

const NOTES: readonly string[] = [
  "A JSON-RPC request is answered with a JSON-RPC response, its params alone with the result.",
  "Every failure is a result with isError, an unknown tool too: the model can read that.",
];

/** Revisions 2025-06-18 and 2025-11-25: a request, its `params`, or a list of either. */
export const MCP_2025_CALLS: CallFormat<McpToolAnswer, McpToolAnswer> = {
  title: "an MCP request",
  read,
  write: (call, answer) => write(call, answer, false),
  gather: (parts) => parts,
  notes: [
    ...NOTES,
    'structuredContent is an object: a tool\'s other results are sent as { "result": value }.',
  ],
};

/** Revision 2026-07-28: results say that they are complete, and structured content is any value. */
export const MCP_2026_CALLS: CallFormat<McpToolAnswer, McpToolAnswer> = {
  title: "an MCP request",
  read,
  write: (call, answer) => write(call, answer, true),
  gather: (parts) => parts,
  notes: [...NOTES, "structuredContent is the result, whatever value it is."],
};
