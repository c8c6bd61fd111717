/** A call as a stream of events: the output of its tool, and its result. */

import { callHook, type ToolResult } from "../tool/mod.ts";
import type { Call, Outcome } from "./layer.ts";
import type { DispatchContext, ToolProgress } from "./request.ts";
import { countDropped } from "./layers/emissions.ts";

interface EventBase {
  readonly callId: string;
  /** 0 for the first event of the call, then 1, 2, 3, without a gap. */
  readonly sequence: number;
}

/** The tool sent a value with `context.metadata`. */
export interface MetadataEvent extends EventBase {
  readonly type: "metadata";
  readonly value: unknown;
}

/** The tool reported its progress. */
export interface ProgressEvent extends EventBase {
  readonly type: "progress";
  readonly progress: ToolProgress;
}

/** The tool, a generator, yielded a value. */
export interface OutputEvent extends EventBase {
  readonly type: "output";
  readonly value: unknown;
}

/** The call has ended. The last event, exactly once. */
export interface ResultEvent extends EventBase {
  readonly type: "result";
  readonly result: ToolResult;
  /**
   * The number of lost events: values that are not JSON, and metadata that was not read in time.
   */
  readonly dropped: number;
}

/** An event of a streamed call. Values are frozen copies. */
export type ToolEvent = MetadataEvent | ProgressEvent | OutputEvent | ResultEvent;

type Unnumbered<Event> = Omit<Event, keyof EventBase>;

/** An event without a number; it receives one when it is read. */
type QueuedEvent = Unnumbered<MetadataEvent> | Unnumbered<ProgressEvent> | Unnumbered<OutputEvent>;

const BYTES_OF_EVENT = 16_384;

/**
 * Yields the events of one call, once.
 *
 * @param run Runs the call with a context. `started` receives the call before it runs.
 * @param maxEvents The maximum number of unread events. Large outputs count as several.
 * @param context The host's context for the call. Its own callbacks are called as well.
 * @param nextCallId Creates an id for a call without a tool.
 */
export function streamCall(
  run: (context: DispatchContext, started: (call: Call) => void) => Outcome,
  context: DispatchContext,
  maxEvents: number,
  nextCallId: () => string,
): AsyncIterableIterator<ToolEvent> {
  const queue: (readonly [event: QueuedEvent, size: number])[] = [];
  let sum = 0;
  let call: Call | undefined;
  let dropped = 0;
  let result: ToolResult | undefined;
  let hasLeft = false;
  let ended: Promise<void> | undefined;
  /** The waiting consumer, and the waiting producers. */
  const waiting: (() => void)[] = [];
  const change = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));
  const wake = (): void => {
    for (const go of waiting.splice(0)) go();
  };
  const add = (event: QueuedEvent, size: number): void => {
    sum += size;
    queue.push([event, size]);
    wake();
  };
  const report = (error: unknown): void => call?.report("metadata", error);

  const streamed: DispatchContext = {
    ...context,
    metadata(value) {
      // The notice of a failure is not an event, because the stream ends with the result.
      if (call?.isOver === false) {
        if (sum < maxEvents) add({ type: "metadata", value }, 1);
        else dropped++;
      }
      callHook(() => context.metadata?.(value), report);
    },
    progress(progress) {
      // New progress replaces unread progress, so it always fits.
      const stale = queue.findIndex(([{ type }]) => type === "progress");
      if (stale !== -1) sum -= queue.splice(stale, 1).length;
      add({ type: "progress", progress }, 1);
      callHook(() => context.progress?.(progress), report);
    },
    async output(value, bytes) {
      try {
        await context.output?.(value, bytes);
      } catch (error) {
        report(error);
      }
      add({ type: "output", value }, Math.ceil(bytes / BYTES_OF_EVENT));
      while (sum >= maxEvents && result === undefined && !hasLeft) await change();
    },
  };

  const leave = (): void => {
    if (result !== undefined) return;
    call?.deadline.abort(new DOMException("The consumer left the stream", "AbortError"));
  };

  async function begin(): Promise<void> {
    result = await run(streamed, (started) => {
      call = started;
      // The consumer may leave while the call's ticket is looked up.
      if (hasLeft) leave();
    });
    wake();
  }

  async function* take(): AsyncGenerator<ToolEvent, undefined> {
    ended = begin();
    for (let sequence = 0, callId: string | undefined; !hasLeft;) {
      const [next, size] = queue.shift() ?? [undefined, 0];
      const event = next ?? (result && {
        type: "result" as const,
        result,
        dropped: dropped + (call === undefined ? 0 : countDropped(call)),
      });
      if (event === undefined) {
        await change();
        continue;
      }
      sum -= size;
      wake();
      callId ??= call?.callId ?? nextCallId();
      yield Object.freeze({ ...event, callId, sequence: sequence++ });
      if (event.type === "result") return;
    }
  }

  const events = take();
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => events.next(),
    /**
     * Leaves the stream and aborts the call. Resolves when the call and its cleanups have ended.
     */
    async return() {
      hasLeft = true;
      leave();
      wake();
      await ended;
      return await events.return(undefined);
    },
  };
}
