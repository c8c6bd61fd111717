/**
 * MCP content as a tool's answer, such as an image.
 *
 * @module
 */

import type { ContentBlock } from "@modelcontextprotocol/server";
import { CONTENT_FORMAT } from "../../tool/mod.ts";

/** The content of an answer, block by block. */
export interface McpContent {
  readonly content: readonly ContentBlock[];
  /** The same as a value, for programs. Clients before revision 2026-07-28 take objects only. */
  readonly structuredContent?: unknown;
  readonly _meta?: { readonly [key: string]: unknown };
}

/** The name of the format. Content is marked with it: a value that has the same shape stays a value. */
const FORMAT = "mcp";

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
  const own = { ...content };
  return Object.freeze(Object.defineProperty(own, CONTENT_FORMAT, { value: FORMAT }));
}

/** Whether `value` was made by {@linkcode mcpContent}. */
export function isMcpContent(value: unknown): value is McpContent {
  return typeof value === "object" && value !== null &&
    (value as { readonly [CONTENT_FORMAT]?: unknown })[CONTENT_FORMAT] === FORMAT;
}
