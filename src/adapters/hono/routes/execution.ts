/**
 * `POST /tools/:id/execute` and `POST /executions/:callId/abort`: calls, answered once they have
 * ended or event by event, and how one is ended from elsewhere.
 *
 * @module
 */

import type { Context } from "hono";
import type { DispatchContext, ToolCall, ToolDispatcher } from "../../../execute/mod.ts";
import { systemClock, type ToolFailure, ToolResult } from "../../../tool/mod.ts";
import { chooseType } from "../accept.ts";
import { readEnvelope } from "../envelope.ts";
import { eventStream, frame } from "../event_stream.ts";
import { type Answer, type Exchange, keepAlive } from "../exchange.ts";
import { noSuchTool, type Problem, problemOfFailure, problemResponse } from "../problem.ts";
import { refuseQuery } from "../query.ts";
import { json } from "../responses.ts";
import type { RunningCall } from "../running_calls.ts";
import type { ToolService } from "../service.ts";
import { type CallSpan, unobserved } from "../telemetry.ts";

const TYPES = ["application/json", "text/event-stream"] as const;

/** A call that is about to run. */
interface Begun {
  readonly dispatcher: ToolDispatcher;
  readonly call: ToolCall & { readonly callId: string };
  readonly context: DispatchContext;
  readonly running: RunningCall;
  /** The request as it came. */
  readonly client: Request;
  readonly span: CallSpan;
  readonly exchange: Exchange;
  /** Is given the result. */
  readonly settle: (result: ToolResult) => void;
}

/** Runs a tool: answers its result, or streams what happens, as the client asks. */
export function executeTool(service: ToolService): Answer {
  const { access } = service;
  return async (c, { caller, toolset, exchange }) => {
    refuseQuery(c.req.url);
    const closed = service.executionClosed;
    if (closed !== undefined) return problemResponse(closed);
    const id = c.req.param("id") ?? "";
    const client = c.req.raw;
    return await service.withBody(c, async (text) => {
      const { callId = crypto.randomUUID(), ...envelope } = readEnvelope(
        text,
        c.req.raw.headers,
      );
      const { principal } = caller;
      const running = service.running.begin({ principal, callId }, client);
      const tool = toolset.get(id);
      const { sessionId } = envelope;
      const span = tool === undefined ? unobserved : access.observe({
        tool,
        callId,
        sessionId,
        headers: c.req.raw.headers,
      });
      const begun: Begun = {
        dispatcher: access.dispatcherOf(toolset),
        call: { name: id, arguments: envelope.arguments, callId },
        context: {
          sessionId,
          messageId: envelope.messageId,
          idempotencyKey: envelope.idempotencyKey,
          principal,
          signal: running.signal,
        },
        running,
        client,
        span,
        exchange,
        settle: exchange.begin(id, callId, span),
      };
      // A tool that is not there is answered with its status, also to those who asked for a stream.
      return tool !== undefined &&
          chooseType(c.req.header("accept"), TYPES) === "text/event-stream"
        ? streamEvents(c, begun, service.limits.heartbeatMs)
        : await answerResult(c, begun);
    });
  };
}

/** Aborts one of the caller's own calls. It ends as soon as its tool stops, or after the grace. */
export function abortExecution(service: ToolService): Answer {
  return (c, { caller: { principal } }) => {
    refuseQuery(c.req.url);
    const closed = service.executionClosed;
    if (closed !== undefined) return problemResponse(closed);
    const callId = c.req.param("callId") ?? "";
    return service.running.abort({ principal, callId })
      ? json({ callId, status: "aborting" }, 202)
      : problemResponse(noSuchCall(callId));
  };
}

async function answerResult(c: Context, begun: Begun): Promise<Response> {
  const { dispatcher, call, context, running, span, settle } = begun;
  const result = span.run(() => dispatcher.dispatch(call, context));
  // The end of the call lets go of the request's signal, whether a response is still wanted or not.
  const ended = result.then((answer) => {
    running.end();
    const response = respond(call, answer);
    const sent = response === undefined ? changed(call.name) : answer;
    settle(sent);
    return response ?? respond(call, sent);
  });
  // Hono throws where there is no platform to ask, which a call that ends at once need not pay for.
  running.whenLong(() => keepAlive(c, ended));
  // A failure is plain data.
  return await ended as Response;
}

/** The response with a result; `undefined` for one that cannot be written. */
function respond({ name, callId }: Begun["call"], answer: ToolResult): Response | undefined {
  if (!answer.ok) {
    return problemResponse(
      answer.error.code === "unknown_tool" ? noSuchTool(name) : problemOfFailure(answer, callId),
    );
  }
  try {
    return json({ callId, ...answer });
  } catch {
    return undefined;
  }
}

/** Results are not copied, so a getter may have another answer than when the dispatcher looked. */
function changed(name: string): ToolFailure {
  const why = "its result changed after it was checked, and cannot be written as JSON any more";
  return ToolResult.error("invalid_result", `Cannot call "${name}": ${why}`);
}

function streamEvents(c: Context, begun: Begun, heartbeatMs: number): Response {
  const { dispatcher, call, context, running, client, span, exchange, settle } = begun;
  const began = systemClock.now();
  const events = dispatcher.stream(call, context);
  const end = (result: ToolResult): void => {
    running.end();
    settle(result);
  };
  const { response, ended } = eventStream({
    async next() {
      // The call begins with the first event that is asked for.
      const { value } = await span.run(() => events.next());
      if (value === undefined) return undefined;
      const { sequence, type } = value;
      try {
        const text = frame(sequence, type, value);
        if (type === "result") end(value.result);
        return text;
      } catch {
        await events.return?.();
        const result = changed(call.name);
        end(result);
        return frame(sequence, "result", { type: "result", sequence, result });
      }
    },
    async cancel() {
      await events.return?.();
      // Its result is nobody's: the stream does not give it to one who has left.
      const { error } = ToolResult.error("aborted", "The client went away");
      end({ ok: false, error, durationMs: systemClock.now() - began });
    },
  }, { heartbeatMs, signal: client.signal, headers: { "x-call-id": call.callId } });
  exchange.ended = ended;
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
