/**
 * What is read of a request before the SDK reads it.
 *
 * @module
 */

import {
  isJsonContentType,
  PROTOCOL_VERSION_META_KEY,
  readRequestBody,
  TRACEPARENT_META_KEY,
} from "@modelcontextprotocol/server";
import { isObject } from "../../tool/mod.ts";
import type { McpTarget } from "./tool_list.ts";

/** The revision without sessions; the ones before it begin with `initialize`. */
export const MODERN = "2026-07-28";

/** A message that wants an answer; whether it is well-formed is another matter. */
export interface JsonRpcRequest {
  readonly id: unknown;
  readonly method: unknown;
  readonly params?: unknown;
}

/** Which protocol a client speaks: that of the newest revision, or of those before it. */
export type McpEra = "modern" | "legacy";

/** Where in `_meta` a client of that revision names it. */
export const VERSION_KEY: string = PROTOCOL_VERSION_META_KEY;

/** Whether a request says that its body is JSON. */
export function isJson(request: Request): boolean {
  return isJsonContentType(request.headers.get("content-type"));
}

/** The text of a body; `undefined` if it has more bytes than that. */
export async function readText(request: Request, maxBytes: number): Promise<string | undefined> {
  const { headers } = request;
  const declared = headers.get("content-length");
  // The server holds a client to the length that it declared.
  if (declared !== null && !headers.has("transfer-encoding")) {
    return Number(declared) <= maxBytes ? await request.text() : undefined;
  }
  const read = await readRequestBody(request, maxBytes);
  return read.tooLarge ? undefined : read.text;
}

/** The value of a body; `undefined` if it is not JSON. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a message begins a session, which only clients before revision 2026-07-28 do. */
export function isInitialize(message: unknown): boolean {
  return methodOf(message) === "initialize";
}

/** Whether a message asks to be told of changes, which only clients of the newest revision do. */
export function isListen(message: unknown): boolean {
  return methodOf(message) === "subscriptions/listen";
}

/** How many answers a message asks for, or the messages of a batch. */
export function requestsIn(body: unknown): number {
  return messagesOf(body).filter(isRequest).length;
}

/** A request of a body, by its id, which is no other's in it: `refusalOf` has seen to that. */
export function requestOf(body: unknown, id: unknown): JsonRpcRequest | undefined {
  return messagesOf(body).filter(isRequest).find((message) => message.id === id);
}

/** The trace that a body says it belongs to, if it is one message. */
export function traceParentOf(body: unknown): string | null {
  const { params } = (body ?? {}) as { readonly params?: { readonly _meta?: unknown } | null };
  const trace = isObject(params?._meta) ? params._meta[TRACEPARENT_META_KEY] : undefined;
  return typeof trace === "string" ? trace : null;
}

/** Whether more than so many levels of a value lie in each other. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}

/** Which requests a message cancels, or the messages of a batch. */
export function cancelledIn(body: unknown): readonly unknown[] {
  return messagesOf(body).flatMap((message) => {
    if (methodOf(message) !== "notifications/cancelled") return [];
    const { params } = message as { readonly params?: { readonly requestId?: unknown } | null };
    return [params?.requestId];
  });
}

/** The revision that a client is told the tools in. */
export function targetOf(era: McpEra, request: Request): McpTarget {
  if (era === "modern") return `mcp@${MODERN}`;
  // Older clients say nothing of their revision, and know less.
  return request.headers.get("mcp-protocol-version") === "2025-11-25"
    ? "mcp@2025-11-25"
    : "mcp@2025-06-18";
}

/** Whether a message wants an answer. */
export function isRequest(message: unknown): message is JsonRpcRequest {
  return isObject(message) && "id" in message && "method" in message;
}

function messagesOf(body: unknown): readonly unknown[] {
  return Array.isArray(body) ? body : [body];
}

function methodOf(message: unknown): unknown {
  return (message as { readonly method?: unknown } | null | undefined)?.method;
}
