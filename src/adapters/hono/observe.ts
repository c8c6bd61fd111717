/**
 * Observes requests: the trace they belong to, how long they took, and what came of them.
 *
 * @module
 */

import { type Check, checkFlag, checkFunction, systemClock } from "../../tool/mod.ts";
import { checkOptions, having } from "./checks.ts";
import { untilRead } from "./event_stream.ts";
import { type AccessCall, Exchange } from "./exchange.ts";
import { withHeaders } from "./headers.ts";
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
  /** The calls that it made, in their order: one, or those of a turn or of a batch. */
  readonly calls: readonly AccessCall[];
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
  /** Tells when a request came, in milliseconds since 1970. */
  readonly now?: () => number;
}

/** Observes a request while `answer` answers it, filling in the exchange that it is given. */
export type RequestObserver = (
  request: Request,
  answer: (exchange: Exchange) => Response | Promise<Response>,
) => Promise<Response>;

const CHECKS = {
  telemetry: having("begin", "what openTelemetry makes"),
  serverTiming: checkFlag,
  access: checkFunction,
  now: checkFunction,
} satisfies { readonly [Option in keyof ObserveOptions]-?: Check };

/** What is known of the requests that are observed now. */
const exchanges = new WeakMap<Request, Exchange>();

/** The exchange of a request that is observed. */
export function exchangeOf(request: Request): Exchange | undefined {
  return exchanges.get(request);
}

/**
 * Makes what observes requests. A `traceparent` goes in and comes out: that of the call where it is
 * traced, else a new one in the same trace. A request that is observed already, because one handler
 * hands it to another, is observed once.
 *
 * @param onError Is told what `access` throws.
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function createObserver(
  options: ObserveOptions,
  onError: (error: unknown) => void,
): RequestObserver {
  checkOptions("observe requests", options, CHECKS);
  const { serverTiming = false, now = Date.now } = options;
  return async (request, answer) => {
    const outer = exchanges.get(request);
    if (outer !== undefined) return await answer(outer);
    const time = now();
    // By the clock that calls are measured with: the whole is not shorter than its parts.
    const began = systemClock.now();
    const elapsed = (): number => systemClock.now() - began;
    const exchange = new Exchange();
    exchanges.set(request, exchange);
    const { method, url, headers } = request;
    let response = await answer(exchange);
    const place = exchange.place ?? nextTraceParent(readTraceParent(headers.get("traceparent")));
    response = withHeaders(response, [
      ["traceparent", writeTraceParent(place)],
      ...(serverTiming ? [["server-timing", timing(exchange, elapsed())] as const] : []),
    ]);
    if (exchange.ended === undefined && isEventStream(response)) {
      ({ response, ended: exchange.ended } = untilRead(response));
    }
    const { status } = response;
    const tell = (): void => {
      const { route, principal, calls } = exchange;
      try {
        options.access?.({
          time,
          method,
          path: new URL(url).pathname,
          route,
          status,
          durationMs: elapsed(),
          traceId: place.traceId,
          principal,
          calls,
        });
      } catch (error) {
        onError(error);
      }
    };
    if (exchange.ended === undefined) tell();
    else void exchange.ended.then(tell);
    return response;
  };
}

function isEventStream({ headers, body }: Response): boolean {
  return body !== null && headers.get("content-type")?.startsWith("text/event-stream") === true;
}

function timing({ enteredMs, toolMs }: Exchange, totalMs: number): string {
  return [["auth", enteredMs], ["tool", toolMs], ["total", totalMs]]
    .flatMap(([name, ms]) => typeof ms === "number" ? [`${name};dur=${ms.toFixed(1)}`] : [])
    .join(", ");
}
