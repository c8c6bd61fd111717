/**
 * `POST /tools/:id/execute` and `POST /executions/:callId/abort`: runs calls, answers with the result
 * or event by event, and aborts a call from another request.
 *
 * @module
 */

import type { Context } from "hono";
import type { DispatchContext, ToolCall, ToolDispatcher } from "../../execute/mod.ts";
import { isObject, systemClock, type ToolFailure, ToolResult } from "../../tool/mod.ts";
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
} from "../http/mod.ts";
import type { RouteAnswer, ShowTools } from "./route.ts";

const TYPES = ["application/json", "text/event-stream"] as const;

/** A call that is about to run. */
interface PreparedCall {
  readonly request: ToolRequest;
  readonly dispatcher: ToolDispatcher;
  readonly call: ToolCall & { readonly callId: string };
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
  const recorded = request.beginCall({ toolId, callId, tool, sessionId });
  const context = { sessionId, messageId, idempotencyKey, principal, signal: () => running.signal };
  // An unknown tool is answered with a status, also if the client asked for a stream.
  if (
    tool !== undefined && chooseType(raw.headers.get("accept"), TYPES) === "text/event-stream"
  ) return streamEvents({ request, dispatcher, call, context, running, recorded });
  const result = recorded.run(() => dispatcher.dispatch(call, context));
  // Asking Hono for the platform may throw and catch: a call that ends at once skips it.
  running.whenLong(() => request.keepAlive(result));
  const answer = await result;
  running.end();
  const response = respond(call, answer, isLed);
  const sent = response === undefined ? resultChanged(toolId) : answer;
  recorded.end(sent);
  // A failure is plain data, so the second response can be written.
  return response ?? respond(call, sent, isLed) as Response;
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
  { name, callId }: PreparedCall["call"],
  answer: ToolResult,
  isLed: boolean,
): Response | undefined {
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
  const { request, dispatcher, call, context, running, recorded } = prepared;
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
      const { value } = await recorded.run(() => events.next());
      if (value === undefined) return undefined;
      const { sequence, type } = value;
      try {
        const text = frame(sequence, type, value);
        if (type === "result") end(value.result);
        return text;
      } catch {
        await events.return?.();
        const result = resultChanged(call.name);
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
  }, { heartbeatMs, signal: request.raw.signal, headers: { "x-call-id": call.callId } });
  request.streamsUntil(ended);
  return response;
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
