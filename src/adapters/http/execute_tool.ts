/**
 * `POST /tools/:id/execute` and `POST /executions/:callId/abort`: runs a call and answers with its
 * result, and aborts a call from another request.
 *
 * @module
 */

import type { DispatchContext, Dispatcher, ResumedCall, ToolCall } from "../../execute/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { isObject, isSuspended, type ToolFailure, ToolResult } from "../../tool/mod.ts";
import { type CallTarget, targetOf } from "./bridge.ts";
import { CALL_ID_HEADERS, readCallIds } from "./call_ids.ts";
import type { HttpPart } from "./part.ts";
import type { RequestCall } from "./records.ts";
import { refuseQuery } from "./refuse_query.ts";
import { type ToolRequest, UNOBSERVED } from "./request.ts";
import {
  chooseType,
  json,
  noSuchTool,
  type Problem,
  problemOfFailure,
  problemResponse,
  RequestError,
  withHeaders,
} from "./responses.ts";
import type { RunningCall } from "./running_calls.ts";

/** A call that is about to run, or to continue. */
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

/** Answers a call in another way than with its result; returns `undefined` for other calls. */
export type CallMode = (
  prepared: PreparedCall<ToolCall>,
) => Response | Promise<Response> | undefined;

/** Options for {@linkcode serveExecution}. */
export interface ExecutionOptions {
  /** Answers calls that become tasks: `runTasks(…)`. @default {every call runs in its request} */
  readonly startTask?: CallMode | undefined;
  /**
   * Answers calls of clients that accept `text/event-stream`: `streamCall`.
   *
   * @default {they get the result, too}
   */
  readonly streamCall?: (prepared: PreparedCall) => Response;
  /**
   * Returns the tools that a request with a query may call: `bridgeByQuery(…)`.
   *
   * @default {a query is refused}
   */
  readonly toolsetOf?: (request: ToolRequest) => Toolset;
}

/** The part that executes tools: `POST /tools/:id/execute` and `POST /executions/:callId/abort`. */
export function serveExecution(options: ExecutionOptions = {}): HttpPart {
  const { toolsetOf = withoutQuery } = options;
  return () => ({
    routes: [
      {
        method: "POST",
        path: "/tools/:id/execute",
        answer: (request) => {
          const { raw: { url }, toolset } = request;
          return execute(request, url.includes("?") ? toolsetOf(request) : toolset, options);
        },
      },
      { method: "POST", path: "/executions/:callId/abort", answer: abortExecution },
    ],
  });
}

function withoutQuery({ raw, toolset }: ToolRequest): Toolset {
  refuseQuery(raw.url);
  return toolset;
}

async function execute(
  request: ToolRequest,
  toolset: Toolset,
  { startTask, streamCall }: ExecutionOptions,
): Promise<Response> {
  const { raw, server, record, param: name, caller: { principal, callContext } } = request;
  const { headers } = raw;
  if (server.executionClosed !== undefined) return problemResponse(server.executionClosed);
  const body = readCall(await request.readJson({}));
  const ids = readCallIds(body, headers);
  const { callId = crypto.randomUUID() } = ids;
  const call = { name, arguments: body["arguments"], callId };
  const dispatcher = server.dispatcherOf(toolset);
  const recorded = record === undefined
    ? UNOBSERVED
    : request.beginCall(targetOf(toolset, call).toolId, callId);
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
  // An unknown tool is answered with a status, also if the client accepts a stream.
  if (streamCall !== undefined && wantsStream(headers) && targetIn(prepared).tool !== undefined) {
    return streamCall(prepared);
  }
  const result = dispatcher.dispatch(call, context);
  // Reading the platform's context may throw and catch in Hono: a call that ends at once skips it.
  running.whenLong(() => request.keepAlive(result));
  return answerWith(prepared, await result);
}

/** Runs a call, and answers with its result. */
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
  // A failure is plain data, so the second response can be written.
  return response ?? respond(prepared, sent) as Response;
}

/** The response with a result; `undefined` for one that cannot be written. */
function respond(prepared: PreparedCall, result: ToolResult): Response | undefined {
  const { request, callId } = prepared;
  if (result.ok) {
    try {
      return json({ callId, ...result });
    } catch {
      return undefined;
    }
  }
  if (isSuspended(result)) {
    return withHeaders(json({ callId, status: "input_required", ...result }, 202), [
      ["location", locationOf(request.raw, callId)],
    ]);
  }
  // A model reads the answer of a bridge, and the failure's message is for it.
  return problemResponse(
    result.error.code === "unknown_tool" && !targetIn(prepared).viaBridge
      ? noSuchTool(nameIn(prepared))
      : problemOfFailure(result, callId),
  );
}

/** The tool of a prepared call. That of a call that continues is in its ticket. */
export function targetIn({ toolset, call }: PreparedCall): CallTarget {
  return call.name === undefined
    ? { toolId: "", tool: undefined, viaBridge: true }
    : targetOf(toolset, { ...call, name: call.name });
}

function nameIn({ call }: PreparedCall): string {
  return "ticket" in call ? "" : call.name;
}

/** Results are not copied: a getter may return another value than when it was checked. */
export function resultChanged(prepared: PreparedCall): ToolFailure {
  const why = "its result changed after it was checked, and cannot be written as JSON";
  return ToolResult.error("invalid_result", `Cannot call "${nameIn(prepared)}": ${why}`);
}

/** The path of a call, at this server and wherever it is mounted. */
export function locationOf({ url }: Request, id: string): string {
  const { pathname } = new URL(url);
  const root = pathname.replace(/\/(tools\/[^/]*\/execute|calls\/[^/]*)\/?$/, "");
  return `${root}/calls/${encodeURIComponent(id)}`;
}

const TYPES = ["application/json", "text/event-stream"] as const;

/** True if the client wants events. */
export function wantsStream(headers: Headers): boolean {
  const accept = headers.get("accept");
  return accept !== null && chooseType(accept, TYPES) === "text/event-stream";
}

/** Aborts a call of this caller. The call ends when its tool stops, or after the grace period. */
function abortExecution(
  { raw, server, param: callId, caller: { principal } }: ToolRequest,
): Response {
  refuseQuery(raw.url);
  if (server.executionClosed !== undefined) return problemResponse(server.executionClosed);
  return server.running.abort({ principal, callId })
    ? json({ callId, status: "aborting" }, 202)
    : problemResponse(noSuchCall(callId));
}

function noSuchCall(callId: string): Problem {
  return {
    status: 404,
    code: "not_found",
    detail: `Cannot find a running call ${JSON.stringify(callId.slice(0, 256))} of this caller`,
  };
}

/**
 * Reads the body of a call.
 *
 * @throws {RequestError} If it has another form.
 */
function readCall(body: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(body)) {
    throw new RequestError('Cannot read the body: it must be an object such as {"arguments": {}}');
  }
  for (const field of Object.keys(body)) {
    if (field !== "arguments" && !Object.hasOwn(CALL_ID_HEADERS, field)) {
      throw new RequestError(
        `Cannot read the body: ${JSON.stringify(field.slice(0, 60))} is not a field of a call. ` +
          'The arguments of the tool go into "arguments"; the other fields are ' +
          Object.keys(CALL_ID_HEADERS).join(", "),
      );
    }
  }
  return body;
}
