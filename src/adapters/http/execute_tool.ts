/** `POST /tools/:id/execute` and `POST /executions/:callId/abort`: run and abort calls. */

import type { DispatchContext, Dispatcher, ResumedCall, ToolCall } from "../../execute/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import {
  isSuspended,
  systemClock,
  type Tool,
  type ToolFailure,
  ToolResult,
} from "../../tool/mod.ts";
import { eventStream, frame } from "./event_stream.ts";
import { type HttpPart, type ToolRequest, UNOBSERVED, withAllLayers } from "./request.ts";
import * as responses from "./responses.ts";
import { json, problemResponse, refuseQuery, RequestError } from "./responses.ts";
import type { RequestCall, RunningCall } from "./running_calls.ts";

export interface CallTarget {
  readonly toolId: string;
  readonly tool: Tool | undefined;
  readonly viaBridge: boolean;
}

/** Returns the tool of a call, for logs and traces. Through a bridge, it is the bridge's target. */
export function targetOf(
  toolset: Toolset,
  call: { readonly name: string; readonly arguments?: unknown },
): CallTarget {
  const { bridge } = toolset;
  const target = bridge?.resolveTarget(call);
  const { name } = target ?? call;
  const owner = target === undefined ? toolset : bridge?.target;
  return {
    toolId: name,
    tool: owner?.resolve(name),
    viaBridge: target !== undefined && target !== call,
  };
}

export interface CallIds {
  readonly callId: string | undefined;
  readonly sessionId: string | undefined;
  readonly messageId: string | undefined;
  readonly idempotencyKey: string | undefined;
}

export const CALL_ID_HEADERS: { readonly [Field in keyof CallIds]: string } = {
  callId: "x-call-id",
  sessionId: "x-session-id",
  messageId: "x-message-id",
  idempotencyKey: "idempotency-key",
};

const CALL_FIELDS = ["arguments", ...Object.keys(CALL_ID_HEADERS)];

/** Printable ASCII without spaces at the ends, because a header loses them. Bun has no lookbehind. */
const ID = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;

export function readCallIds(body: Readonly<Record<string, unknown>>, headers: Headers): CallIds {
  return {
    callId: readId("callId", body, headers),
    sessionId: readId("sessionId", body, headers),
    messageId: readId("messageId", body, headers),
    idempotencyKey: readId("idempotencyKey", body, headers),
  };
}

function readId(
  field: keyof CallIds,
  body: Readonly<Record<string, unknown>>,
  headers: Headers,
): string | undefined {
  const inBody: unknown = body[field];
  const inHeader = headers.get(CALL_ID_HEADERS[field]) ?? undefined;
  if (inBody !== undefined && inHeader !== undefined && inBody !== inHeader) {
    throw new RequestError(
      `Cannot read the call: "${field}" in the body and header "${CALL_ID_HEADERS[field]}" differ`,
    );
  }
  const value = inBody ?? inHeader;
  if (value === undefined || (typeof value === "string" && ID.test(value))) return value;
  throw new RequestError(
    `Cannot read the call: "${field}" must be 1 to 256 printable ASCII characters, with no ` +
      "space before or after them",
    inBody === undefined ? undefined : `/${field}`,
  );
}

/** A call before it runs or continues. */
export interface PreparedCall<Call extends ToolCall | ResumedCall = ToolCall | ResumedCall> {
  readonly request: ToolRequest;
  /** The tools that the call may name. */
  readonly toolset: Toolset;
  readonly dispatcher: Dispatcher;
  readonly call: Call;
  readonly callId: string;
  readonly context: DispatchContext;
  readonly running: RunningCall;
  readonly recorded: RequestCall;
}

/** Makes another response than the result for some calls; returns `undefined` for other calls. */
export type CallMode = (
  prepared: PreparedCall<ToolCall>,
) => Response | Promise<Response> | undefined;

/** Options for {@linkcode serveExecution}. */
export interface ExecutionOptions {
  /** Answers calls that become tasks: `runTasks`. @default {every call runs in its request} */
  readonly startTask?: CallMode | undefined;
  /** Answers calls of clients that accept `text/event-stream`: `streamCall`. @default {with the result} */
  readonly streamCall?: (prepared: PreparedCall) => Response;
  /** Returns the tools of a request with a query: `bridgeByQuery(…)`. @default {a query is rejected} */
  readonly toolsetOf?: (request: ToolRequest) => Toolset;
}

/** Makes the part for `POST /tools/:id/execute` and `POST /executions/:callId/abort`. */
export function serveExecution(options: ExecutionOptions = {}): HttpPart {
  const { toolsetOf = withoutQuery } = options;
  const answer = (request: ToolRequest): Promise<Response> =>
    execute(request, request.raw.url.includes("?") ? toolsetOf(request) : request.toolset, options);
  return () => ({
    routes: [
      { method: "POST", path: "/tools/:id/execute", answer },
      { method: "POST", path: "/executions/:callId/abort", answer: abortExecution },
    ],
  });
}

function withoutQuery(request: ToolRequest): Toolset {
  refuseQuery(request.raw.url);
  return request.toolset;
}

async function execute(
  request: ToolRequest,
  toolset: Toolset,
  { startTask, streamCall }: ExecutionOptions,
): Promise<Response> {
  const { raw, server, record, param: name, caller: { principal, callContext } } = request;
  const { headers } = raw;
  server.requireExecution();
  const body = responses.requireFields(
    await request.readJson({}),
    CALL_FIELDS,
    '{"arguments": {}}',
  );
  const ids = readCallIds(body, headers);
  const { callId = crypto.randomUUID() } = ids;
  const call = { name, arguments: body["arguments"], callId };
  const dispatcher = server.dispatcherOf(toolset);
  const recorded = record?.addCall(targetOf(toolset, call).toolId, callId) ?? UNOBSERVED;
  const running = server.running.begin({ principal, callId }, raw);
  const context: DispatchContext = {
    principal,
    context: callContext,
    trace: request.traceOf(headers),
    sessionId: ids.sessionId,
    messageId: ids.messageId,
    idempotencyKey: ids.idempotencyKey,
    signal: () => running.signal,
  };
  const prepared = { request, toolset, dispatcher, call, callId, context, running, recorded };
  const task = startTask?.(prepared);
  if (task !== undefined) return await task;
  // The response for an unknown tool is never a stream.
  if (streamCall !== undefined && acceptsStream(headers) && targetIn(prepared).tool !== undefined) {
    return streamCall(prepared);
  }
  const result = dispatcher.run(call, context);
  return result instanceof Promise ? answerResult(prepared, result) : answerWith(prepared, result);
}

export async function answerResult(
  prepared: PreparedCall,
  result: Promise<ToolResult>,
): Promise<Response> {
  const { request, running } = prepared;
  running.whenLong(() => request.keepAlive(result));
  return answerWith(prepared, await result);
}

function answerWith(prepared: PreparedCall, result: ToolResult): Response {
  const { running, recorded } = prepared;
  running.end();
  const response = respond(prepared, result);
  const sent = response === undefined ? resultChanged(prepared) : result;
  recorded.end(sent);
  // The second attempt writes a failure, which is plain data and cannot throw.
  return response ?? respond(prepared, sent) as Response;
}

function respond(prepared: PreparedCall, result: ToolResult): Response | undefined {
  const { request, callId } = prepared;
  if (result.ok) {
    try {
      const { ok, content, blocks, durationMs, truncated, replayed, repaired } = result;
      // JSON omits `undefined` members. A spread of the result would be slower on Bun.
      return json({ callId, ok, content, blocks, durationMs, truncated, replayed, repaired });
    } catch {
      return undefined;
    }
  }
  if (isSuspended(result)) {
    return responses.withHeaders(json({ callId, status: "input_required", ...result }, 202), [
      ["location", locationOf(request.raw, callId)],
    ]);
  }
  // A call through a bridge fails with the bridge's message, which was written for the model.
  return problemResponse(
    result.error.code === "unknown_tool" && !targetIn(prepared).viaBridge
      ? responses.noSuchTool(nameIn(prepared))
      : responses.problemOfFailure(result, callId),
  );
}

/** The ticket of a call that continues contains its tool. */
export function targetIn({ toolset, call }: PreparedCall): CallTarget {
  return call.name === undefined
    ? { toolId: "", tool: undefined, viaBridge: true }
    : targetOf(toolset, { ...call, name: call.name });
}

function nameIn({ call }: PreparedCall): string {
  return "ticket" in call ? "" : call.name;
}

export function resultChanged(prepared: PreparedCall): ToolFailure {
  const why = "a getter of the result returned another value than when it was checked";
  return ToolResult.error("invalid_result", `Cannot call "${nameIn(prepared)}": ${why}`);
}

export function locationOf({ url }: Request, id: string): string {
  const { pathname } = new URL(url);
  const root = pathname.replace(/\/(tools\/[^/]*\/execute|calls\/[^/]*)\/?$/, "");
  return `${root}/calls/${encodeURIComponent(id)}`;
}

const TYPES = ["application/json", "text/event-stream"] as const;

export function acceptsStream(headers: Headers): boolean {
  const accept = headers.get("accept");
  return accept !== null && responses.chooseType(accept, TYPES) === "text/event-stream";
}

function abortExecution(
  { raw, server, param: callId, caller: { principal } }: ToolRequest,
): Response {
  refuseQuery(raw.url);
  server.requireExecution();
  return server.running.abort({ principal, callId })
    ? json({ callId, status: "aborting" }, 202)
    : problemResponse(responses.notFound("a running call", callId));
}

/** Streams the events of a call. For the option `streamCall` of `serveExecution`. */
export function streamCall(prepared: PreparedCall): Response {
  const { request, dispatcher, call, callId, context, running, recorded } = prepared;
  const { heartbeatMs } = request.server;
  const began = systemClock.now();
  const events = withAllLayers(dispatcher, "streamCall").stream(call, context);
  const end = (result: ToolResult): void => {
    running.end();
    recorded.end(result);
  };
  const { response, ended } = eventStream({
    async next() {
      // The call begins with the first event that is pulled.
      const { value } = await events.next();
      if (value === undefined) return undefined;
      const { sequence, type } = value;
      try {
        const text = frame(sequence, type, value);
        if (type !== "result") return text;
        end(value.result);
        return questionFrame(value.result) + text;
      } catch {
        await events.return?.();
        const result = resultChanged(prepared);
        end(result);
        return frame(sequence, "result", { type: "result", sequence, result });
      }
    },
    async cancel() {
      await events.return?.();
      // The result never arrives, so the log records a failure.
      const { error } = ToolResult.error("aborted", "The client has disconnected");
      end({ ok: false, error, durationMs: systemClock.now() - began });
    },
  }, {
    heartbeatMs,
    signal: request.raw.signal,
    headers: { "x-call-id": callId },
    onError: (error) => request.server.log(error),
  });
  request.streamsUntil(ended);
  return response;
}

/** The questions of a call, as a separate event before the result. */
function questionFrame(result: ToolResult): string {
  if (!isSuspended(result)) return "";
  const { questions, ticket } = result;
  return `event: question\ndata: ${JSON.stringify({ type: "question", questions, ticket })}\n\n`;
}
