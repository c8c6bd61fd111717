/**
 * Calls a tool of an MCP server, and makes a result of what it answers.
 *
 * @module
 */

import type {
  CallToolResult,
  Client,
  ContentBlock,
  ListToolsResult,
} from "@modelcontextprotocol/client";
import { describeThrown, MAX_TIMEOUT_MS, type ToolContext, ToolResult } from "../../tool/mod.ts";
import type { McpConnection } from "./connection.ts";
import { mcpContent } from "./mcp_content.ts";

/** What is called. */
export interface ServerCall {
  readonly name: string;
  readonly arguments: { readonly [key: string]: unknown };
  /** Whether the server says that a second call does no more than the first. */
  readonly isRepeatable: boolean;
}

/**
 * Runs one call. What it throws, the dispatcher makes a failure of.
 *
 * A call that has not reached the server waits for the connection to be made anew, for as long as
 * the dispatcher lets it. One that may have reached it is repeated, once, if that does no harm.
 */
export async function callServer(
  connection: McpConnection,
  { name, arguments: args, isRepeatable }: ServerCall,
  context: ToolContext,
): Promise<unknown> {
  const { signal } = context;
  for (let isFirst = true;; isFirst = false) {
    const client = await connection.client(signal);
    try {
      const result = await client.callTool({ name, arguments: { ...args } }, {
        signal,
        // The dispatcher knows how long the call may take.
        timeout: MAX_TIMEOUT_MS,
        onprogress: ({ progress, total, message }) => context.progress(progress, total, message),
      });
      return valueOf(result);
    } catch (error) {
      signal.throwIfAborted();
      const kind = await kindOf(error, client);
      if (kind === "answered") return ToolResult.error("threw", messageOf(name, error));
      const isComing = connection.lose(client);
      if (isComing && kind === "not sent") continue;
      // A server that does not know the session has not looked at the call.
      if (isComing && isFirst && (kind === "unknown session" || isRepeatable)) continue;
      return ToolResult.error(
        "unavailable",
        `Cannot call "${name}": the connection to its MCP server is lost, and is being made anew`,
      );
    }
  }
}

/** A value where there is one; else the text; else the content as it is. */
function valueOf(result: CallToolResult): unknown {
  const { content, structuredContent, isError, _meta } = result;
  const text = textOf(content);
  if (isError === true) {
    return ToolResult.error("threw", text ?? "Cannot call the tool: its MCP server says so");
  }
  if (structuredContent !== undefined) return structuredContent;
  if (text !== undefined) return text;
  return mcpContent({ content, ...(_meta === undefined ? {} : { _meta }) });
}

/** The text of content that is nothing but text. */
function textOf(content: readonly ContentBlock[]): string | undefined {
  const texts: string[] = [];
  for (const block of content) {
    if (block.type !== "text") return undefined;
    texts.push(block.text);
  }
  return texts.join("\n");
}

type FailureKind = "answered" | "unknown session" | "not sent" | "lost";

/** Codes of the SDK for what went wrong although the connection is there. */
const NOT_LOST: ReadonlySet<unknown> = new Set([
  "REQUEST_TIMEOUT",
  "INVALID_RESULT",
  "UNSUPPORTED_RESULT_TYPE",
  "CAPABILITY_NOT_SUPPORTED",
  "METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION",
  "INPUT_REQUIRED_ROUNDS_EXCEEDED",
  "CLIENT_HTTP_AUTHENTICATION",
]);

/** Codes of the runtimes for a connection that was not there to send anything. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  "NOT_CONNECTED",
  "ECONNREFUSED",
  "ConnectionRefused",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** How deep causes are looked into. */
const MAX_CAUSES = 5;

function wasNotSent(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return false;
  const { code } = error as { readonly code?: unknown };
  // Deno has no code for it.
  return NOT_SENT.has(code) || error.message.includes("tcp connect error") ||
    wasNotSent(error.cause, depth + 1);
}

async function kindOf(error: unknown, client: Client): Promise<FailureKind> {
  const { ProtocolError, SdkError, SdkHttpError } = await import("@modelcontextprotocol/client");
  if (error instanceof ProtocolError) return "answered";
  if (error instanceof SdkHttpError) {
    // 404 is what the protocol has for it; many servers answer 400.
    const mayBeSession = error.status === 404 || error.status === 400;
    if (mayBeSession && client.getProtocolEra() === "legacy") return "unknown session";
    return error.status < 500 ? "answered" : "lost";
  }
  if (wasNotSent(error)) return "not sent";
  return error instanceof SdkError && NOT_LOST.has(error.code) ? "answered" : "lost";
}

function messageOf(name: string, error: unknown): string {
  return `Cannot call "${name}": its MCP server answered: ${describeThrown(error)}`;
}

/** Reads the server's whole list, past what the client has kept of it. */
export async function listServerTools(
  client: Client,
  signal: AbortSignal | undefined,
): Promise<ListToolsResult> {
  return await client.listTools(undefined, {
    cacheMode: "refresh",
    ...(signal === undefined ? {} : { signal }),
  });
}

/** The names of the tools of which the server says that a second call does no more than the first. */
export function repeatableTools({ tools }: ListToolsResult): ReadonlySet<string> {
  return new Set(
    tools.filter(({ annotations }) =>
      annotations?.readOnlyHint === true || annotations?.idempotentHint === true
    ).map(({ name }) => name),
  );
}
