/**
 * Calls whose events are streamed: `POST /tools/:id/execute` with `Accept: text/event-stream`.
 *
 * @module
 */

import { isSuspended, systemClock, ToolResult } from "../../tool/mod.ts";
import { eventStream, frame } from "./event_stream.ts";
import {
  type CallMode,
  type PreparedCall,
  resultChanged,
  targetIn,
  wantsStream,
} from "./execute_tool.ts";

/** Streams the events of a call to clients that accept `text/event-stream`. */
export function streamCalls(): CallMode {
  return (prepared) =>
    // An unknown tool is answered with a status, also if the client accepts a stream.
    wantsStream(prepared.request.raw.headers) && targetIn(prepared).tool !== undefined
      ? streamEvents(prepared)
      : undefined;
}

/** Runs a call, and streams its events. */
export function streamEvents(prepared: PreparedCall): Response {
  const { request, dispatcher, call, callId, context, running, recorded } = prepared;
  const { heartbeatMs } = request.server;
  const began = systemClock.now();
  const events = dispatcher.stream(call, context);
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
