/**
 * Observes requests: how long they took, how their calls ended, and their place in a trace. The calls
 * themselves are traced and measured by the dispatcher's `telemetry`.
 *
 * @module
 */

import type { TraceParent } from "../../execute/mod.ts";
import {
  atOnce,
  callHook,
  type Check,
  checkFlag,
  checkFunction,
  systemClock,
} from "../../tool/mod.ts";
import { checkOptions } from "./options.ts";
import { untilRead } from "./event_stream.ts";
import type { HttpPart } from "./handler.ts";
import { type AccessCall, records, type RequestObserver, RequestRecord } from "./running_calls.ts";
import { withHeaders } from "./responses.ts";

/** Version 00. A later version may have more after another "-". */
const HEADER = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = "0".repeat(32);
const NO_SPAN = "0".repeat(16);

/** Reads the header; `undefined` if it is malformed, as the specification requires. */
export function readTraceParent(header: string | null): TraceParent | undefined {
  if (header === null || header.length > 512) return undefined;
  const [, version, traceId, spanId, flags = "", rest] = HEADER.exec(header.trim()) ?? [];
  if (traceId === undefined || spanId === undefined || version === "ff") {
    return undefined;
  }
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  if (version === "00" && rest !== undefined) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Writes the header. */
export function writeTraceParent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** A new place in the trace of `parent`; without one, in a new trace that is not recorded. */
export function nextTraceParent(parent: TraceParent | undefined): TraceParent {
  return {
    traceId: parent?.traceId ?? randomHex(16),
    spanId: randomHex(8),
    sampled: parent?.sampled ?? false,
  };
}

function randomHex(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes));
  return [...values].map((value) => value.toString(16).padStart(2, "0")).join("");
}

/**
 * One request, for an access log. Queries, headers and bodies are omitted: they may contain
 * secrets.
 */
export interface AccessEntry {
  /** When the request came, in milliseconds since 1970. */
  readonly time: number;
  readonly method: string;
  readonly path: string;
  /** The route, such as `/tools/:id`; `undefined` if no route answered. */
  readonly route: string | undefined;
  readonly status: number;
  /** The time until the response was ready, or until an event stream had ended, in milliseconds. */
  readonly durationMs: number;
  readonly traceId: string;
  readonly principal: string | undefined;
  /** The calls of the request, in order: one call, or the calls of a turn. */
  readonly calls: readonly AccessCall[];
}

/** The observers of requests. */
export interface ObserveOptions {
  /**
   * True to send the durations of `authorize` and of the tool in `Server-Timing`. Every caller can
   * read them.
   *
   * @default {false}
   */
  readonly serverTiming?: boolean;
  /** Is called after the response to every request. Its errors go to the handler's log. */
  access?(entry: AccessEntry): void;
  /** Gives the time, in milliseconds since 1970. @default {Date.now} */
  readonly now?: () => number;
}

const CHECKS = {
  serverTiming: checkFlag,
  access: checkFunction,
  now: checkFunction,
} satisfies { readonly [Option in keyof ObserveOptions]-?: Check };

/**
 * The part that traces, measures and logs requests. The response gets the `traceparent` of the call if
 * the call is traced, otherwise a new one in the trace of the request. A request that one handler
 * passes to another is observed once.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 */
export function observeRequests(options: ObserveOptions): HttpPart {
  const { serverTiming = false, now = Date.now } = checkOptions(
    "observe requests",
    options,
    CHECKS,
  );
  const access = options.access?.bind(options);
  return (server) => {
    const onError = (error: unknown): void => server.log(error);
    const around: RequestObserver = async (request, answer) => {
      if (records.has(request)) return await answer();
      const time = timeOf(now, onError);
      // The same clock measures calls, so a request does not seem shorter than its calls.
      const began = systemClock.now();
      const record = new RequestRecord();
      records.set(request, record);
      const { method, url, headers } = request;
      let response = await answer();
      const place = legalPlace(record.place) ??
        nextTraceParent(readTraceParent(headers.get("traceparent")));
      response = withHeaders(response, [
        ["traceparent", writeTraceParent(place)],
        ...(serverTiming
          ? [["server-timing", timing(record, systemClock.now() - began)] as const]
          : []),
      ]);
      if (record.ended === undefined && isEventStream(response)) {
        ({ response, ended: record.ended } = untilRead(response));
      }
      const { status } = response;
      const report = (): void => {
        const { route, principal, calls } = record;
        const entry: AccessEntry = {
          time,
          method,
          // A request that names two hosts has no URL; it is logged all the same.
          path: URL.canParse(url) ? new URL(url).pathname : "",
          route,
          status,
          durationMs: systemClock.now() - began,
          traceId: place.traceId,
          principal,
          calls,
        };
        callHook(() => access?.(entry), onError);
      };
      if (record.ended === undefined) report();
      else void record.ended.then(report);
      return response;
    };
    return { around };
  };
}

/** Returns the time. An observer never changes the response: a clock that fails is not used. */
function timeOf(now: () => unknown, onError: (error: unknown) => void): number {
  let time: unknown;
  callHook(() => time = atOnce(now()), onError);
  return typeof time === "number" ? time : Date.now();
}

/** Returns a position that the header can express; `undefined` if telemetry uses another form. */
function legalPlace(place: TraceParent | undefined): TraceParent | undefined {
  return place && readTraceParent(writeTraceParent(place));
}

function isEventStream({ headers, body }: Response): boolean {
  return body !== null && headers.get("content-type")?.startsWith("text/event-stream") === true;
}

function timing({ authorizeMs, toolMs }: RequestRecord, totalMs: number): string {
  return [["auth", authorizeMs], ["tool", toolMs], ["total", totalMs]]
    .flatMap(([name, ms]) => typeof ms === "number" ? [`${name};dur=${ms.toFixed(1)}`] : [])
    .join(", ");
}
