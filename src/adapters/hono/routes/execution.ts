/**
 * `POST /tools/:id/execute` and `POST /executions/:callId/abort`: calls, answered once they have
 * ended or event by event, and how one is ended from elsewhere.
 *
 * @module
 */

import type { Context } from "hono";
import type { DispatchContext, ToolCall, ToolDispatcher } from "../../../execute/mod.ts";
import { chooseType } from "../accept.ts";
import { withBody } from "../body.ts";
import { readEnvelope } from "../envelope.ts";
import { eventStream, frame } from "../event_stream.ts";
import { type Answer, keepAlive } from "../exchange.ts";
import { noSuchTool, type Problem, problemOfFailure, problemResponse } from "../problem.ts";
import { refuseQuery } from "../query.ts";
import { json } from "../responses.ts";
import type { RunningCall } from "../running_calls.ts";
import type { ToolService } from "../service.ts";

const TYPES = ["application/json", "text/event-stream"] as const;

/** A call that is about to run. */
interface Begun {
  readonly dispatcher: ToolDispatcher;
  readonly call: ToolCall & { readonly callId: string };
  readonly context: DispatchContext;
  readonly running: RunningCall;
  /** The request's own signal. */
  readonly client: AbortSignal;
}

/** Runs a tool: answers its result, or streams what happens, as the client asks. */
export function executeTool(service: ToolService): Answer {
  return async (c, { caller, toolset }) => {
    refuseQuery(new URL(c.req.url).searchParams);
    const closed = service.executionClosed;
    if (closed !== undefined) return problemResponse(closed);
    const id = c.req.param("id") ?? "";
    // Taken before the body is limited: that may put another request in this one's place.
    const { signal: client } = c.req.raw;
    return await withBody(c, service.limits.maxBodyBytes, async (text) => {
      const { callId = crypto.randomUUID(), ...envelope } = readEnvelope(text, c.req.raw.headers);
      const { principal } = caller;
      const running = service.running.begin({ principal, callId }, client);
      const begun: Begun = {
        dispatcher: service.dispatcherOf(toolset),
        call: { name: id, arguments: envelope.arguments, callId },
        context: {
          sessionId: envelope.sessionId,
          messageId: envelope.messageId,
          idempotencyKey: envelope.idempotencyKey,
          principal,
          signal: running.signal,
        },
        running,
        client,
      };
      // A tool that is not there is answered with its status, also to those who asked for a stream.
      return toolset.has(id) && chooseType(c.req.header("accept"), TYPES) === "text/event-stream"
        ? streamEvents(c, begun, service.limits.heartbeatMs)
        : await answerResult(c, begun);
    });
  };
}

/** Aborts one of the caller's own calls. It ends as soon as its tool stops, or after the grace. */
export function abortExecution(service: ToolService): Answer {
  return (c, { caller: { principal } }) => {
    refuseQuery(new URL(c.req.url).searchParams);
    const closed = service.executionClosed;
    if (closed !== undefined) return problemResponse(closed);
    const callId = c.req.param("callId") ?? "";
    return service.running.abort({ principal, callId })
      ? json({ callId, status: "aborting" }, 202)
      : problemResponse(noSuchCall(callId));
  };
}

async function answerResult(c: Context, begun: Begun): Promise<Response> {
  const { dispatcher, call, context, running } = begun;
  const result = dispatcher.dispatch(call, context);
  // The end of the call lets go of the request's signal, whether a response is still wanted or not.
  const ended = result.then(() => running.end());
  keepAlive(c, ended);
  const answer = await result;
  if (answer.ok) return json({ callId: call.callId, ...answer });
  return problemResponse(
    answer.error.code === "unknown_tool"
      ? noSuchTool(call.name)
      : problemOfFailure(answer, call.callId),
  );
}

function streamEvents(c: Context, begun: Begun, heartbeatMs: number): Response {
  const { dispatcher, call, context, running, client } = begun;
  const events = dispatcher.stream(call, context);
  const { response, ended } = eventStream({
    async next() {
      const { value } = await events.next();
      if (value === undefined) return undefined;
      if (value.type === "result") running.end();
      return frame(value.sequence, value.type, value);
    },
    async cancel() {
      await events.return?.();
      running.end();
    },
  }, { heartbeatMs, signal: client, headers: { "x-call-id": call.callId } });
  keepAlive(c, ended);
  return response;
}

function noSuchCall(callId: string): Problem {
  return {
    status: 404,
    code: "not_found",
    detail: `Cannot find a running call ${JSON.stringify(callId.slice(0, 256))} of this caller`,
  };
}
