/**
 * `tools/call`: one call through the dispatcher, with progress, log messages and cancellation.
 *
 * @module
 */

import {
  type CallToolRequestParams,
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  specTypeSchemas,
} from "@modelcontextprotocol/server";
import { decodeCalls, encodeResult, type RoutedCall } from "../../formats/mod.ts";
import type { ToolProgress } from "../../execute/mod.ts";
import { ToolResult } from "../../tool/mod.ts";
import { unobserved } from "../hono/telemetry.ts";
import { isMcpContent } from "./mcp_content.ts";
import { tracedHeaders } from "./traced_headers.ts";
import type { Reading } from "./reading.ts";
import type { SessionCall } from "./session_calls.ts";
import type { McpToolList } from "./tool_list.ts";
import type { McpVisit } from "./visit.ts";

/** Which request a call came with, and the way back to its client. */
export type CallChannel = Pick<
  ServerContext["mcpReq"],
  "id" | "signal" | "log" | "notify"
>;

/**
 * Runs a call and writes its result.
 *
 * @param list The tools as the client knows them.
 * @throws {ProtocolError} If there is no such call to run.
 */
export async function callTool(
  visit: McpVisit,
  list: McpToolList,
  params: CallToolRequestParams,
  channel: CallChannel,
): Promise<CallToolResult> {
  if (visit.executionClosed) {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidRequest,
      "This server lists tools and does not execute them: its owner sets authorize, or " +
        "openExecution: true, to open execution",
    );
  }
  const [call] = decodeCalls(list.target, params, list.names);
  const callId = crypto.randomUUID();
  const tool = call?.name === undefined ? undefined : visit.toolset.get(call.name);
  if (call?.name === undefined || tool === undefined) {
    const { name } = params;
    const { error } = ToolResult.error("unknown_tool", `There is no tool "${name.slice(0, 200)}"`);
    visit.exchange.begin(name, callId, unobserved)({ ok: false, error, durationMs: 0 });
    throw unknownTool(name);
  }
  const running = beginCall(visit, channel);
  const sender = new Sender(
    channel,
    visit.reading,
    call.wireName,
    params._meta?.progressToken,
  );
  try {
    const { session, caller: { principal }, dispatcher } = visit;
    const span = visit.observe({
      tool,
      callId,
      sessionId: session,
      headers: tracedHeaders(visit.headers, params._meta),
    });
    const settle = visit.exchange.begin(tool.id, callId, span);
    const work = span.run(() =>
      dispatcher.dispatch({ name: tool.id, arguments: call.arguments, callId }, {
        sessionId: session,
        principal,
        signal: running?.signal ?? channel.signal,
        ...sender.listeners,
      })
    );
    visit.keepAlive(work);
    const result = await work;
    settle(result);
    // A notification that comes after the result would have no request any more.
    await sender.sent;
    if (!result.ok && result.error.code === "unknown_tool") throw unknownTool(call.wireName);
    return write(list, call, result);
  } finally {
    running?.end();
  }
}

/** Makes the call one that another request of the same session can cancel. */
function beginCall(visit: McpVisit, { id, signal }: CallChannel): SessionCall | undefined {
  const { session, caller: { principal }, calls } = visit;
  return session === undefined
    ? undefined
    : calls.begin({ principal, session, requestId: id }, signal);
}

function unknownTool(name: string): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `Unknown tool: ${JSON.stringify(name.slice(0, 200))}`,
  );
}

function write(
  { target, names }: McpToolList,
  call: RoutedCall,
  result: ToolResult,
): CallToolResult {
  if (!result.ok || !isMcpContent(result.content)) {
    // What the format writes is what the SDK's type says; the one is read-only, the other is not.
    return encodeResult(target, call, result, names) as CallToolResult;
  }
  const { content, structuredContent, _meta } = result.content;
  const written = {
    content: [...content],
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(_meta === undefined ? {} : { _meta }),
  };
  // Tools write it themselves, in JavaScript too.
  const read = specTypeSchemas.CallToolResult["~standard"].validate(written);
  if (read.issues === undefined) return read.value;
  throw new ProtocolError(
    ProtocolErrorCode.InternalError,
    `Cannot answer: ${JSON.stringify(call.wireName)} made content that MCP does not have`,
  );
}

/** Sends what happens meanwhile to the client. */
class Sender {
  /** Resolves when what was sent last is on its way. */
  sent: Promise<void> = Promise.resolve();
  /** What the dispatcher tells: progress only to a client that asked for it. */
  readonly listeners: {
    readonly progress?: (progress: ToolProgress) => void;
    readonly metadata: (value: unknown) => void;
    readonly output: (value: unknown) => Promise<void>;
  };

  constructor(
    channel: CallChannel,
    reading: Reading,
    name: string,
    progressToken: string | number | undefined,
  ) {
    const send = (work: Promise<void>): Promise<void> =>
      // It rejects when the client is gone: then the call's signal says so.
      this.sent = work.catch(() => {});
    this.listeners = {
      metadata(value) {
        if (reading.hasRoom()) void send(channel.log("info", value, name));
      },
      async output(value) {
        await reading.wanted();
        await send(channel.log("info", value, `${name}/output`));
      },
      ...(progressToken === undefined ? {} : {
        progress({ done, total, message }) {
          if (!reading.hasRoom()) return;
          void send(channel.notify({
            method: "notifications/progress",
            params: {
              progressToken,
              progress: done,
              ...(total === undefined ? {} : { total }),
              ...(message === undefined ? {} : { message }),
            },
          }));
        },
      }),
    };
  }
}
