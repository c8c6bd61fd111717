/**
 * Observes requests: the trace they belong to, how long they took, and what came of them.
 *
 * @module
 */

import type { MiddlewareHandler } from "hono";
import { Exchange } from "./exchange.ts";
import type { CallTelemetry } from "./telemetry.ts";
import { nextTraceParent, readTraceParent, writeTraceParent } from "./traceparent.ts";

/** One request, for an access log. Neither query, headers nor bodies: they may hold secrets. */
export interface AccessEntry {
  /** When it came, in milliseconds since 1970. */
  readonly time: number;
  readonly method: string;
  readonly path: string;
  /** The route that answered it, such as `/tools/:id`; `undefined` if there was none. */
  readonly route: string | undefined;
  readonly status: number;
  /** Until the answer was there; for an event stream, until it had ended. In milliseconds. */
  readonly durationMs: number;
  readonly traceId: string;
  readonly principal: string | undefined;
  readonly toolId: string | undefined;
  readonly callId: string | undefined;
  /** What came of the call: `ok`, or the code of its failure. `undefined` if none ended. */
  readonly outcome: string | undefined;
}

/** What is observed. */
export interface ObserveOptions {
  /** Traces and measures the calls: what `openTelemetry` makes. */
  readonly telemetry?: CallTelemetry;
  /**
   * Whether answers say, in `Server-Timing`, how long it took to know the caller and to run the
   * tool. It tells every caller.
   *
   * @default {false}
   */
  readonly serverTiming?: boolean;
  /** Is told of every request once it is answered. What it throws goes to the handler's log. */
  access?(entry: AccessEntry): void;
  /** Tells the time, in milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * Makes the middleware that observes. A `traceparent` goes in and comes out: that of the call where
 * it is traced, else a new one in the same trace.
 *
 * @param begin Is given the exchange that the route is to fill in.
 * @param onError Is told what `access` throws.
 */
export function observeRequests(
  options: ObserveOptions,
  begin: (c: Parameters<MiddlewareHandler>[0], exchange: Exchange) => void,
  onError: (error: unknown) => void,
): MiddlewareHandler {
  const { serverTiming = false, now = Date.now } = options;
  return async (c, next) => {
    const time = now();
    const exchange = new Exchange();
    const { method } = c.req;
    const parent = readTraceParent(c.req.raw.headers.get("traceparent"));
    begin(c, exchange);
    await next();
    const place = exchange.place ?? nextTraceParent(parent);
    c.header("traceparent", writeTraceParent(place));
    if (serverTiming) c.header("server-timing", timing(exchange, now() - time));
    const { path } = c.req;
    const { status } = c.res;
    const tell = (): void => {
      const { route, principal, call, outcome } = exchange;
      try {
        options.access?.({
          time,
          method,
          path,
          route,
          status,
          durationMs: now() - time,
          traceId: place.traceId,
          principal,
          toolId: call?.toolId,
          callId: call?.callId,
          outcome,
        });
      } catch (error) {
        onError(error);
      }
    };
    if (exchange.ended === undefined) tell();
    else void exchange.ended.then(tell);
  };
}

function timing({ enteredMs, toolMs }: Exchange, totalMs: number): string {
  return [["auth", enteredMs], ["tool", toolMs], ["total", totalMs]]
    .flatMap(([name, ms]) => typeof ms === "number" ? [`${name};dur=${ms.toFixed(1)}`] : [])
    .join(", ");
}
