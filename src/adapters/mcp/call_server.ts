/**
 * Calls a tool of an MCP server, and makes a result of its answer.
 *
 * @module
 */

import type { CallToolResult, Client, ContentBlock } from "@modelcontextprotocol/client";
import { describeThrown, MAX_TIMEOUT_MS, type ToolContext, ToolResult } from "../../tool/mod.ts";
import type { McpConnection } from "./connection.ts";
import { mcpContent } from "./content.ts";

/** One call of a server's tool. */
export interface ServerCall {
  readonly name: string;
  readonly arguments: { readonly [key: string]: unknown };
  /** Whether the server marks the tool as safe to call twice. */
  readonly isRepeatable: boolean;
}

/**
 * Runs one call. The dispatcher turns what it throws into a failure.
 *
 * A call that has not reached the server waits for the connection to be reopened, within the
 * dispatcher's time limit. A call that may have reached it is repeated once if that is safe.
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
        // The dispatcher limits the time of the call.
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
      // A server that does not know the session has not run the call.
      if (isComing && isFirst && (kind === "unknown session" || isRepeatable)) continue;
      return ToolResult.error(
        "unavailable",
        `Cannot call "${name}": the connection to its MCP server is lost and is being reopened`,
      );
    }
  }
}

/** The structured value if there is one, else the text, else the content as it is. */
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

/** The text of content that has only text blocks. */
function textOf(content: readonly ContentBlock[]): string | undefined {
  const texts: string[] = [];
  for (const block of content) {
    if (block.type !== "text") return undefined;
    texts.push(block.text);
  }
  return texts.join("\n");
}

type FailureKind = "answered" | "unknown session" | "not sent" | "lost";

/** Codes of the SDK for failures that leave the connection usable. */
const NOT_LOST: ReadonlySet<unknown> = new Set([
  "REQUEST_TIMEOUT",
  "INVALID_RESULT",
  "UNSUPPORTED_RESULT_TYPE",
  "CAPABILITY_NOT_SUPPORTED",
  "METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION",
  "INPUT_REQUIRED_ROUNDS_EXCEEDED",
  "CLIENT_HTTP_AUTHENTICATION",
]);

/** Codes for requests that were not sent. */
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

/** How many nested causes are looked at. */
const MAX_CAUSES = 5;

function wasNotSent(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return false;
  const { code } = error as { readonly code?: unknown };
  // Deno gives no code.
  return NOT_SENT.has(code) || error.message.includes("tcp connect error") ||
    wasNotSent(error.cause, depth + 1);
}

async function kindOf(error: unknown, client: Client): Promise<FailureKind> {
  const { ProtocolError, SdkError, SdkHttpError } = await import("@modelcontextprotocol/client");
  // A `RangeError` is an answer that is too large.
  if (error instanceof ProtocolError || error instanceof RangeError) return "answered";
  if (error instanceof SdkHttpError) {
    // The protocol answers an unknown session with 404; many servers answer 400.
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
