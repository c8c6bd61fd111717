/**
 * What is read of a request before the SDK reads it.
 *
 * @module
 */

import { isJsonContentType } from "@modelcontextprotocol/server";
import type { McpTarget } from "./tool_list.ts";

/** Whether a request says that its body is JSON. */
export function isJson(request: Request): boolean {
  return isJsonContentType(request.headers.get("content-type"));
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

/** Which requests a message cancels, or the messages of a batch. */
export function cancelledIn(body: unknown): readonly unknown[] {
  const messages: readonly unknown[] = Array.isArray(body) ? body : [body];
  return messages.flatMap((message) => {
    if (methodOf(message) !== "notifications/cancelled") return [];
    const { params } = message as { readonly params?: { readonly requestId?: unknown } | null };
    return [params?.requestId];
  });
}

/** The revision that a client is told the tools in. */
export function targetOf(era: "modern" | "legacy", request: Request): McpTarget {
  if (era === "modern") return "mcp@2026-07-28";
  // Older clients say nothing of their revision, and know less.
  return request.headers.get("mcp-protocol-version") === "2025-11-25"
    ? "mcp@2025-11-25"
    : "mcp@2025-06-18";
}

function methodOf(message: unknown): unknown {
  return (message as { readonly method?: unknown } | null | undefined)?.method;
}
