/**
 * Calls whose events are streamed: `POST /tools/:id/execute` with `Accept: text/event-stream`.
 *
 * @module
 */

import { withAllLayers } from "./request.ts";
import { isSuspended, systemClock, ToolResult } from "../../tool/mod.ts";
import { eventStream, frame } from "./event_stream.ts";
import { type PreparedCall, resultChanged } from "./execute_tool.ts";

/** Runs a call, and streams its events. For the option `streamCall` of `serveExecution`. */
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
      // The stream gives no result to a reader that has left, and the record needs an outcome.
      const { error } = ToolResult.error("aborted", "The client went away");
      end({ ok: false, error, durationMs: systemClock.now() - began });
    },
  }, { heartbeatMs, signal: request.raw.signal, headers: { "x-call-id": callId } });
  request.streamsUntil(ended);
  return response;
}

/** The questions of a call, as an event of its own before the result. */
function questionFrame(result: ToolResult): string {
  if (!isSuspended(result)) return "";
  const { questions, ticket } = result;
  return `event: question\ndata: ${JSON.stringify({ type: "question", questions, ticket })}\n\n`;
}
