/** Runs `tools/call` with the dispatcher, with progress, log messages and cancellation. */

import * as mcp from "@modelcontextprotocol/server";
import { type CallToolResult, ProtocolError } from "@modelcontextprotocol/server";
import type { TaskState } from "../../execute/durable/mod.ts";
import type { DispatchContext, ToolProgress } from "../../execute/mod.ts";
import type { AnsweredCall, DecodedCall } from "../../formats/mod.ts";
import { decodeCalls, encodeResult } from "../../formats/records.ts";
import { isSuspended, nearText, type Tool, ToolResult } from "../../tool/mod.ts";
import * as http from "../http/mod.ts";
import { type McpToolList, MODERN_TARGET } from "./message.ts";
import { CallQuestions, type ClientInput } from "./questions.ts";
import type { ReaderPace } from "./streams.ts";
import { createdTask, requireTasks, supportsTasks } from "./tasks.ts";

export interface CallChannel extends Pick<mcp.ServerContext["mcpReq"], "id"> {
  /** Aborts when the client leaves or cancels the request. */
  readonly client: http.ClientSignal;
  /** The client's session; only clients before revision 2026-07-28 have one. */
  readonly session?: string | undefined;
  /** Sends messages during the call; absent if the client accepts none. */
  readonly messages?: CallMessages;
  readonly input: ClientInput;
}

export interface CallMessages extends Pick<mcp.ServerContext["mcpReq"], "log" | "notify"> {
  readonly pace: ReaderPace;
}

export type McpCallResult = CallToolResult | mcp.InputRequiredResult;

/**
 * Runs a call and writes its result: synchronously if nothing in the call waits.
 *
 * @param list The tools, in the client's revision.
 * @throws {ProtocolError} If the tool does not exist, or execution is closed.
 */
export function callTool(
  request: http.ToolRequest,
  list: McpToolList,
  params: mcp.CallToolRequestParams,
  channel: CallChannel,
): McpCallResult | Promise<McpCallResult> {
  const { server, server: { tasks }, caller: { principal, callContext }, toolset } = request;
  if (server.executionClosed !== undefined) {
    throw new ProtocolError(mcp.ProtocolErrorCode.InvalidRequest, server.executionClosed.detail);
  }
  const call = decodeCall(list, params);
  const callId = crypto.randomUUID();
  const target = call?.name === undefined ? undefined : http.targetOf(toolset, call);
  const called = call?.name === undefined || toolset.bridge === undefined
    ? target?.tool
    : toolset.resolve(call.name);
  if (call?.name === undefined || target === undefined || called === undefined) {
    const { name } = params;
    const unknown = { name, arguments: params.arguments, callId };
    const context = { principal, sessionId: channel.session };
    const failed = request.dispatcher.endUnresolved(unknown, context, toolset);
    request.beginCall(name, callId).end(failed);
    throw unknownTool(name, list);
  }
  const { client, session, messages } = channel;
  const questions = new CallQuestions(channel.input, list.target === MODERN_TARGET);
  const { toolId, tool, viaBridge } = target;
  const observed = request.beginCall(tool?.id ?? toolId, callId);
  const sender = messages &&
    new MessageSender(messages, call.wireName, params._meta?.progressToken);
  const running = session === undefined
    ? client
    : server.running.begin({ principal, session, callId: channel.id }, client);
  const open = { request, list, call, questions, viaBridge, observed, running };
  let work: ToolResult | Promise<ToolResult | TaskState>;
  try {
    const { name, arguments: args } = call;
    const continued = questions.continuation();
    const start = continued === undefined
      ? { name, arguments: args, callId }
      : { name, arguments: args, ...continued };
    const own: DispatchContext = {
      principal,
      context: callContext,
      trace: server.traces
        ? request.traceOf(traceHeaders(request.raw.headers, params._meta))
        : undefined,
      sessionId: session,
      signal: () => running.signal,
      onQuestion: (question, { signal }) => questions.answer(question, signal),
    };
    const context = sender === undefined ? own : { ...own, ...sender.listeners };
    const afterMs = tasks === undefined || list.target !== MODERN_TARGET
      ? undefined
      : taskAfter(request, tool, channel.input);
    work = tasks === undefined || afterMs === undefined
      ? request.dispatcher.run(start, context)
      : tasks.run(http.withAllLayers(request.dispatcher, "tasks"), start, context, { afterMs });
  } catch (error) {
    running.end();
    throw error;
  }
  if (!(work instanceof Promise) && sender === undefined) return answerOf(open, work);
  return answerLater(open, Promise.resolve(work), sender);
}

interface OpenCall {
  readonly request: http.ToolRequest;
  readonly list: McpToolList;
  readonly call: DecodedCall;
  readonly questions: CallQuestions;
  readonly viaBridge: boolean;
  readonly observed: http.RequestCall;
  readonly running: http.ClientSignal;
}

async function answerLater(
  open: OpenCall,
  work: Promise<ToolResult | TaskState>,
  sender: MessageSender | undefined,
): Promise<McpCallResult> {
  const { request, running } = open;
  try {
    running.whenLong(() => request.keepAlive(work.catch(() => {})));
    const result = await work;
    // Messages must precede the result, which ends the request.
    if (sender !== undefined) await sender.sent;
    return answerOf(open, result);
  } finally {
    running.end();
  }
}

function answerOf(
  { request, list, call, questions, viaBridge, observed, running }: OpenCall,
  result: ToolResult | TaskState,
): McpCallResult {
  running.end();
  if ("id" in result) {
    observed.end(ToolResult.ok(null));
    const { tasks } = request.server;
    if (tasks !== undefined) http.outlastTask(request, tasks, result);
    return createdTask(result);
  }
  observed.end(result);
  if (result.ok) return write(list, call, result);
  if (isSuspended(result)) return questions.inputRequired(result);
  const { code, message } = result.error;
  // An unknown name in a call through a bridge is a failed result: the model can correct the name.
  if (code === "unknown_tool" && !viaBridge) throw unknownTool(call.wireName, list);
  if (code === "ticket_refused") {
    throw new ProtocolError(mcp.ProtocolErrorCode.InvalidParams, message, REFUSED_STATE);
  }
  const isUnanswered = code === "input_unavailable" || code === "approval_required";
  return write(list, call, isUnanswered ? questions.unanswered(result) : result);
}

/** Decodes a call. For arguments that the export left unchanged, `decodeCalls` takes 1 µs longer. */
function decodeCall(
  { target, names }: McpToolList,
  params: mcp.CallToolRequestParams,
): DecodedCall | undefined {
  const { name: wireName, arguments: args = {} } = params;
  const name = names.idOf(wireName);
  const encoding = name === undefined ? undefined : names.encodingOf(name);
  return name === undefined || encoding === undefined || encoding.input !== undefined
    ? decodeCalls(target, params, names)[0]
    : { callId: "", wireName, name, arguments: args, raw: params };
}

/**
 * Returns the time after which a call becomes a task, in milliseconds; `undefined` if it never
 * does. Throws if the tool requires a task, and the client does not support tasks.
 */
function taskAfter(
  { server: { tasks, taskAfterMs } }: http.ToolRequest,
  tool: Tool | undefined,
  { declared }: ClientInput,
): number | undefined {
  if (tasks === undefined || tool === undefined || tool.execution === "sync") return undefined;
  if (tool.execution === "task") {
    requireTasks(declared);
    return 0;
  }
  return supportsTasks(declared) ? taskAfterMs : undefined;
}

export function writeTaskResult(
  list: McpToolList,
  toolId: string,
  result: ToolResult,
): CallToolResult {
  const encoding = list.names.encodingOf(toolId);
  // A call through a bridge has the id of its target, which is not in the list and needs no schema.
  const name = encoding === undefined ? {} : { name: toolId };
  const call = { callId: "", wireName: toolId, ...name };
  return { ...write(list, call, result), resultType: "complete" };
}

/** The SDK's error data for an invalid `requestState`. */
const REFUSED_STATE = { reason: "invalid_request_state" };

function unknownTool(wireName: string, { encodings }: McpToolList): ProtocolError {
  const others = encodings.map(({ name }) => name).filter((name) => name !== wireName);
  const near = nearText(wireName, others);
  const hint = near && `. Did you mean ${near}?`;
  return new ProtocolError(
    mcp.ProtocolErrorCode.InvalidParams,
    `Unknown tool: ${JSON.stringify(wireName.slice(0, 200))}${hint}`,
  );
}

const TRACE_FIELDS = ["traceparent", "tracestate", "baggage"] as const;

/** The request's headers. A trace in `_meta` replaces the header's, which a proxy may have set. */
function traceHeaders(
  headers: Headers,
  meta: { readonly [key: string]: unknown } | undefined,
): Headers {
  const fields = TRACE_FIELDS.filter((field) => typeof meta?.[field] === "string");
  if (fields.length === 0) return headers;
  const traced = new Headers(headers);
  for (const field of fields) {
    try {
      traced.set(field, String(meta?.[field]));
    } catch {
      // Ignores a value that cannot be in a header, and so cannot be a trace.
    }
  }
  return traced;
}

function write(
  { target, names }: McpToolList,
  call: AnsweredCall,
  result: ToolResult,
): CallToolResult {
  // The types differ only in `readonly`.
  const written = encodeResult(target, call, result, names) as CallToolResult;
  if (result.repaired) written._meta = { ...written._meta, "plue/repaired": result.repaired };
  if (!result.ok || result.blocks !== true) return written;
  // A tool in JavaScript can return any content, so the result is validated.
  const read = mcp.specTypeSchemas.CallToolResult["~standard"].validate(written);
  if (read.issues === undefined) return read.value;
  throw new ProtocolError(
    mcp.ProtocolErrorCode.InternalError,
    `Cannot answer: ${JSON.stringify(call.wireName)} returned content that is not valid in MCP`,
  );
}

class MessageSender {
  sent: Promise<void> = Promise.resolve();
  /** The dispatcher's callbacks. Progress is sent only to a client that requested it. */
  readonly listeners: {
    readonly progress?: (progress: ToolProgress) => void;
    readonly metadata: (value: unknown) => void;
    readonly output: (value: unknown) => Promise<void>;
  };

  constructor(
    { log, notify, pace }: CallMessages,
    name: string,
    progressToken: string | number | undefined,
  ) {
    const send = (work: Promise<void>): Promise<void> =>
      // `work` rejects when the client has disconnected, which also aborts the call's signal.
      this.sent = work.catch(() => {});
    this.listeners = {
      metadata(value) {
        if (pace.tryReserve()) void send(log("info", value, name));
      },
      async output(value) {
        await pace.ready();
        await send(log("info", value, `${name}/output`));
      },
      ...(progressToken === undefined ? {} : {
        progress({ done, total, message }) {
          if (!pace.tryReserve()) return;
          void send(notify({
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
