/**
 * MCP content as a tool's answer, such as an image.
 *
 * @module
 */

import type { ContentBlock } from "@modelcontextprotocol/server";

/** The content of an answer, block by block. */
export interface McpContent {
  readonly content: readonly ContentBlock[];
  /** The same as a value, for programs. Clients before revision 2026-07-28 take objects only. */
  readonly structuredContent?: unknown;
  readonly _meta?: { readonly [key: string]: unknown };
}

/** Content is marked by membership: a value that has the same shape stays a value. */
const made = new WeakSet<object>();

/**
 * Lets a tool answer images, audio, resources, or several blocks. MCP clients get the blocks as they
 * are, other callers get them as JSON.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { isMcpContent, mcpContent } from "@plue/tools/mcp";
 *
 * const draw = defineTool({
 *   name: "draw",
 *   description: "Draws a dot.",
 *   execute: () =>
 *     mcpContent({ content: [{ type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" }] }),
 * });
 * const result = await new ToolDispatcher(new ToolRegistry({ tools: [draw] })).dispatch({ name: "draw" });
 *
 * assert.ok(result.ok && isMcpContent(result.content));
 * ```
 */
export function mcpContent(content: McpContent): McpContent {
  const own = Object.freeze({ ...content });
  made.add(own);
  return own;
}

/** Whether `value` was made by {@linkcode mcpContent}. */
export function isMcpContent(value: unknown): value is McpContent {
  return typeof value === "object" && value !== null && made.has(value);
}
