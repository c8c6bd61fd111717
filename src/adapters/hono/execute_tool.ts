/**
 * `POST /tools/:id/execute` and `POST /executions/:callId/abort`: runs calls, answers with the result
 * or event by event, and aborts a call from another request.
 *
 * @module
 */

import type { Context } from "hono";
import type { CallTasks, TaskState } from "../../execute/durable/mod.ts";
import type { DispatchContext, ResumedCall, ToolCall, ToolDispatcher } from "../../execute/mod.ts";
import {
  isObject,
  isSuspended,
  systemClock,
  type ToolFailure,
  ToolResult,
} from "../../tool/mod.ts";
import {
  CALL_ID_HEADERS,
  chooseType,
  eventStream,
  frame,
  json,
  noSuchTool,
  type Problem,
  problemOfFailure,
  problemResponse,
  readBridgeQuery,
  readCallIds,
  refuseQuery,
  type RequestCall,
  RequestError,
  type RunningCall,
  targetOf,
  type ToolRequest,
  withHeaders,
} from "../http/mod.ts";
import type { RouteAnswer, ShowTools } from "./route.ts";

const TYPES = ["application/json", "text/event-stream"] as const;

/** A call that is about to run, or to go on. */
export interface PreparedCall {
  readonly request: ToolRequest;
  readonly dispatcher: ToolDispatcher;
  readonly call: ToolCall | ResumedCall;
  readonly callId: string;
  /** The tool's name, as the caller wrote it. */
  readonly name: string;
  /** The call named a bridge. */
  readonly isLed: boolean;
  readonly context: DispatchContext;
  readonly running: RunningCall;
  readonly recorded: RequestCall;
}

/** Runs a tool, and answers with its result or with a stream of events, as the client asks. */
export function executeTool(show: ShowTools): RouteAnswer {
  return (request, c) => execute(request, c, show);
}

async function execute(request: ToolRequest, c: Context, show: ShowTools): Promise<Response> {
  const { raw, server, caller: { principal } } = request;
  const toolset = show(request.toolset, readBridgeQuery(raw.url));
  const dispatcher = server.dispatcherOf(toolset);
  if (server.executionClosed !== undefined) return problemResponse(server.executionClosed);
  const name = c.req.param("id") ?? "";
  const body = readCall(await request.readJson({}));
  const { callId = crypto.randomUUID(), sessionId, messageId, idempotencyKey } = readCallIds(
    body,
    raw.headers,
  );
  const call = { name, arguments: body["arguments"], callId };
  const { toolId, tool, isLed } = targetOf(toolset, call);
  const running = server.running.begin({ principal, callId }, raw);
  const recorded = request.beginCall(toolId, callId);
  const context = {
    ...request.hostContext(),
    ...{ sessionId, messageId, idempotencyKey, signal: () => running.signal },
  };
  const prepared = { request, dispatcher, call, callId, name, isLed, context, running, recorded };
  const { tasks, taskAfterMs } = server;
  const isPreferred = prefersAsync(raw.headers);
  const wantsTask = tool?.execution === "task" || isPreferred;
  if (tasks !== undefined && tool !== undefined && wantsTask && tool.execution !== "sync") {
    return await answerTask(prepared, tasks.start(dispatcher, call, context), isPreferred);
  }
  // An unknown tool is answered with a status, also if the client asked for a stream.
  const streams = tool !== undefined && wantsStream(raw.headers);
  return !streams && tasks !== undefined && taskAfterMs !== undefined
    ? await answerTask(prepared, tasks.run(dispatcher, call, context, { afterMs: taskAfterMs }))
    : await answerCall(prepared, streams);
}

/** Whether the client wants events. */
export function wantsStream(headers: Headers): boolean {
  return chooseType(headers.get("accept"), TYPES) === "text/event-stream";
}

/** Whether the client asks for a task (RFC 7240). */
function prefersAsync(headers: Headers): boolean {
  const prefer = headers.get("prefer") ?? "";
  return prefer.length < 1_024 && /(^|,)\s*respond-async\s*(,|;|$)/i.test(prefer);
}

/** Runs a call, and answers with its result or with a stream of events. */
export async function answerCall(prepared: PreparedCall, streams: boolean): Promise<Response> {
  if (streams) return streamEvents(prepared);
  const { dispatcher, call, context } = prepared;
  return await answerResult(prepared, dispatcher.dispatch(call, context));
}

async function answerResult(
  prepared: PreparedCall,
  result: Promise<ToolResult>,
): Promise<Response> {
  const { request, running, recorded, name } = prepared;
  // Asking Hono for the platform may throw and catch: a call that ends at once skips it.
  running.whenLong(() => request.keepAlive(result));
  const answer = await result;
  running.end();
  const response = respond(prepared, answer);
  const sent = response === undefined ? resultChanged(name) : answer;
  recorded.end(sent);
  // A failure is plain data, so the second response can be written.
  return response ?? respond(prepared, sent) as Response;
}

/** Answers with the task of a call, or with its result where it did not become one. */
async function answerTask(
  prepared: PreparedCall,
  work: Promise<TaskState | ToolResult>,
  isPreferred = false,
): Promise<Response> {
  const { request, running, recorded, context: { principal } } = prepared;
  running.whenLong(() => request.keepAlive(work.catch(() => {})));
  const task = await work.finally(() => running.end());
  if (!("id" in task)) return await answerResult(prepared, Promise.resolve(task));
  // Platforms that end what a request has begun let the task go on for some time.
  const { tasks } = request.server;
  if (tasks !== undefined) request.outlast(endOf(tasks, task, principal));
  recorded.end(ToolResult.ok(null));
  return withHeaders(json(task, 202), [
    ["location", placeOf(request.raw, task.id)],
    ...(isPreferred ? [["preference-applied", "respond-async"] as const] : []),
  ]);
}

/** Resolves when a task has ended, or waits for answers that come with another request. */
export async function endOf(
  tasks: CallTasks,
  { id }: TaskState,
  principal?: string,
): Promise<void> {
  try {
    for await (const { status } of tasks.follow(id, { principal })) {
      if (status !== "working") return;
    }
  } catch {
    // The store is out of reach; the task tells its own log.
  }
}

/** The path of a call, at this server and wherever it is mounted. */
function placeOf({ url }: Request, id: string): string {
  const { pathname } = new URL(url);
  const root = pathname.replace(/\/(tools\/[^/]*\/execute|calls\/[^/]*)\/?$/, "");
  return `${root}/calls/${encodeURIComponent(id)}`;
}

/** Aborts a call of this caller. The call ends when its tool stops, or after the grace period. */
export const abortExecution: RouteAnswer = ({ raw, server, caller: { principal } }, c) => {
  refuseQuery(raw.url);
  if (server.executionClosed !== undefined) return problemResponse(server.executionClosed);
  const callId = c.req.param("callId") ?? "";
  return server.running.abort({ principal, callId })
    ? json({ callId, status: "aborting" }, 202)
    : problemResponse(noSuchCall(callId));
};

/** The response with a result; `undefined` for one that cannot be written. */
function respond(
  { request, name, callId, isLed }: PreparedCall,
  answer: ToolResult,
): Response | undefined {
  if (isSuspended(answer)) {
    return withHeaders(json({ callId, status: "input_required", ...answer }, 202), [
      ["location", placeOf(request.raw, callId)],
    ]);
  }
  if (!answer.ok) {
    // A model reads what a bridge answers: the failure's message says what was meant.
    return problemResponse(
      answer.error.code === "unknown_tool" && !isLed
        ? noSuchTool(name)
        : problemOfFailure(answer, callId),
    );
  }
  try {
    return json({ callId, ...answer });
  } catch {
    return undefined;
  }
}

/** Results are not copied: a getter may return something else than when it was checked. */
function resultChanged(name: string): ToolFailure {
  const why = "its result changed after it was checked, and cannot be written as JSON";
  return ToolResult.error("invalid_result", `Cannot call "${name}": ${why}`);
}

function streamEvents(prepared: PreparedCall): Response {
  const { request, dispatcher, call, callId, name, context, running, recorded } = prepared;
  const { heartbeatMs } = request.server;
  const began = systemClock.now();
  const events = dispatcher.stream(call, context);
  const end = (result: ToolResult): void => {
    running.end();
    recorded.end(result);
  };
  const { response, ended } = eventStream({
    async next() {
      // The call begins with the first event that is asked for.
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
        const result = resultChanged(name);
        end(result);
        return frame(sequence, "result", { type: "result", sequence, result });
      }
    },
    async cancel() {
      await events.return?.();
      // The stream gives no result to a reader that has left, and the record needs an outcome.
      const { error } = ToolResult.error("aborted", "The client went away");
      end({ ok: false, error, durationMs: systemClock.now() - began });
    },
  }, { heartbeatMs, signal: request.raw.signal, headers: { "x-call-id": callId } });
  request.streamsUntil(ended);
  return response;
}

/** What a call asks, as an event of its own before the result. */
function questionFrame(result: ToolResult): string {
  if (!isSuspended(result)) return "";
  const { questions, ticket } = result;
  return `event: question\ndata: ${JSON.stringify({ type: "question", questions, ticket })}\n\n`;
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
