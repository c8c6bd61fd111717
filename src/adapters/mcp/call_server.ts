/** Calls a tool of an MCP server, and makes a result of its answer. */

import type {
  CallToolResult,
  Client,
  ContentBlock,
  InputRequests,
  Tool as ListedTool,
} from "@modelcontextprotocol/client";
import {
  type Answer,
  describeThrown,
  isObject,
  type JsonSchemaObject,
  MAX_TIMEOUT_MS,
  type QuestionFields,
  type ToolContext,
  ToolResult,
} from "../../tool/mod.ts";
import { wasNotSent } from "../http/runtime.ts";
import type { McpConnection } from "./connection.ts";

export interface ServerCall {
  readonly name: string;
  readonly arguments: { readonly [key: string]: unknown };
  /** True if the server marks the tool as safe to call twice. */
  readonly isRepeatable: boolean;
  /** The listed tool, if the server may ask questions. */
  readonly asking?: ListedTool | undefined;
}

interface Asked {
  readonly inputRequests: InputRequests;
  readonly requestState?: string;
}

interface Retry {
  readonly inputResponses?: { readonly [key: string]: Answer };
  readonly requestState?: string | undefined;
}

const MAX_ROUNDS = 10;

/**
 * Runs one call. The dispatcher turns what it throws into a failure.
 *
 * The server's questions go to the caller. Rounds are steps, so that a resumed call does not begin
 * again at the server.
 */
export async function callServer(
  connection: McpConnection,
  call: ServerCall,
  context: ToolContext,
): Promise<unknown> {
  if (call.asking === undefined) return await sendCall(connection, call, {}, context);
  let retry: Retry = {};
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    let ended: { readonly value: unknown } | undefined;
    const asked = await context.step(`round.${round}`, async () => {
      const value = await sendCall(connection, call, retry, context);
      if (value instanceof AskedByServer) return value.asked;
      ended = { value };
      return null;
    });
    if (asked === null) return ended?.value;
    const answers = await Promise.all(
      Object.entries(asked.inputRequests).map(async ([key, request], index) =>
        [
          key,
          await context.ask(`round.${round}.${index}`, questionOf(call.name, request)),
        ] as const
      ),
    );
    retry = { inputResponses: Object.fromEntries(answers), requestState: asked.requestState };
  }
  return ToolResult.error(
    "threw",
    `Cannot call "${call.name}": its MCP server asks more than 10 times`,
  );
}

class AskedByServer {
  readonly asked: Asked;

  constructor(asked: Asked) {
    this.asked = asked;
  }
}

/** If the server requests something other than a person's answer. */
function questionOf(name: string, { method, params }: InputRequests[string]): QuestionFields {
  if (method !== "elicitation/create" || !isObject(params)) {
    throw new TypeError(`Cannot call "${name}": its MCP server asks for ${method}`);
  }
  const message = `The MCP server of "${name}" asks: ${params.message}`;
  return params.mode === "url"
    ? { kind: "authorization", message, url: params.url }
    : { message, schema: params.requestedSchema as JsonSchemaObject };
}

/**
 * Sends one request of a call.
 *
 * A call that has not reached the server waits for the connection to be reopened, within the
 * dispatcher's time limit. A call that may have reached it is repeated once if that is safe.
 */
async function sendCall(
  connection: McpConnection,
  { name, arguments: args, isRepeatable, asking }: ServerCall,
  retry: Retry,
  context: ToolContext,
): Promise<unknown> {
  const { signal } = context;
  let mayHaveRun = false;
  for (let isFirst = true;; isFirst = false) {
    const client = await connection.client(signal);
    try {
      const result = await client.callTool({ name, arguments: { ...args }, ...retry }, {
        ...(asking === undefined ? {} : { allowInputRequired: true, toolDefinition: asking }),
        signal,
        // The dispatcher limits the time of the call.
        timeout: MAX_TIMEOUT_MS,
        onprogress: ({ progress, total, message }) => context.progress(progress, total, message),
      });
      return isAsked(result) ? new AskedByServer(result) : valueOf(result);
    } catch (error) {
      signal.throwIfAborted();
      const kind = await kindOf(error, client);
      if (kind === "answered") return ToolResult.error("threw", messageOf(name, error));
      mayHaveRun ||= kind === "lost";
      const isComing = connection.lose(client);
      if (isComing && kind === "not sent") continue;
      // A server that does not know the session has not run the call.
      if (isComing && isFirst && (kind === "unknown session" || isRepeatable)) continue;
      return ToolResult.error(
        "unavailable",
        `Cannot call "${name}": the connection to its MCP server is lost and is being reopened`,
        { ran: mayHaveRun ? "unknown" : "no" },
      );
    }
  }
}

/** The SDK's type has no such result. */
function isAsked(result: object): result is Asked {
  return "resultType" in result && result.resultType === "input_required" &&
    "inputRequests" in result && isObject(result.inputRequests);
}

/** Returns the structured value if there is one, else the text; content with files unchanged. */
function valueOf(result: CallToolResult): unknown {
  const { content, structuredContent, isError, _meta } = result;
  const text = textOf(content);
  if (isError === true) {
    return ToolResult.error(
      "threw",
      text ?? "Cannot call the tool: its MCP server reports an error",
    );
  }
  if (text !== undefined) return structuredContent ?? text;
  return ToolResult.blocks(content, {
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(_meta === undefined ? {} : { metadata: _meta }),
  });
}

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

async function kindOf(error: unknown, client: Client): Promise<FailureKind> {
  const { ProtocolError, SdkError, SdkHttpError } = await import("@modelcontextprotocol/client");
  // A `RangeError` is an answer that is too large.
  if (error instanceof ProtocolError || error instanceof RangeError) return "answered";
  if (error instanceof SdkHttpError) {
    // The protocol's status for an unknown session is 404; many servers send 400.
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
