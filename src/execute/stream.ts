/** A call as a stream of events: the output of its tool, and its result. */

import { callHook, type ToolResult } from "../tool/mod.ts";
import type { Call, Outcome } from "./layer.ts";
import type { DispatchContext, ToolProgress } from "./request.ts";
import { countDropped } from "./layers/emissions.ts";

interface EventBase {
  readonly callId: string;
  /** The number of the event in its call: 0, 1, 2 and so on, without gaps. */
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

/** The call has ended. This is the last event, and occurs exactly once. */
export interface ResultEvent extends EventBase {
  readonly type: "result";
  readonly result: ToolResult;
  /** The number of lost events: values that are not JSON, and metadata that was read too late. */
  readonly dropped: number;
}

/** An event of a streamed call. Values are frozen copies. */
export type ToolEvent = MetadataEvent | ProgressEvent | OutputEvent | ResultEvent;

type Unnumbered<Event> = Omit<Event, keyof EventBase>;

/** An event without its sequence number, which is set when the event is read. */
type QueuedEvent = Unnumbered<MetadataEvent> | Unnumbered<ProgressEvent> | Unnumbered<OutputEvent>;

const BYTES_OF_EVENT = 16_384;

/**
 * Returns the events of one call, which can be read once.
 *
 * @param run Runs the call with a context. `started` receives the call before it runs.
 * @param maxEvents The maximum number of unread events. A large output counts as several events.
 * @param context The host's context for the call. Its callbacks are also called.
 * @param nextCallId Creates an id for a call without a tool.
 */
export function streamCall(
  run: (context: DispatchContext, started: (call: Call) => void) => Outcome,
  context: DispatchContext,
  maxEvents: number,
  nextCallId: () => string,
): AsyncIterableIterator<ToolEvent> {
  const stream = new CallStream();
  const events = stream.events(async () => {
    stream.result = await run(stream.contextOf(context, maxEvents), (call) => stream.start(call));
    stream.wake();
  }, nextCallId);
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => events.next(),
    /** Leaves the stream and aborts the call. Resolves when the call and its cleanups end. */
    async return() {
      await stream.leave();
      return await events.return(undefined);
    },
  };
}

/** The unread events of a call. */
class CallStream {
  readonly #queue: (readonly [event: QueuedEvent, size: number])[] = [];
  #size = 0;
  #call: Call | undefined;
  #dropped = 0;
  #hasLeft = false;
  #ended: Promise<void> | undefined;
  /** Callbacks that wake the waiting consumer and the waiting producers. */
  readonly #waiting: (() => void)[] = [];
  result: ToolResult | undefined;

  /** Returns a context whose callbacks add events, and call the callbacks of `context`. */
  contextOf(context: DispatchContext, maxEvents: number): DispatchContext {
    const report = (error: unknown): void => this.#call?.report("metadata", error);
    return {
      ...context,
      metadata: (value) => {
        // The notice of a failure is not an event, because the stream ends with the result.
        if (this.#call?.isOver === false) {
          if (this.#size < maxEvents) this.#add({ type: "metadata", value }, 1);
          else this.#dropped++;
        }
        callHook(() => context.metadata?.(value), report);
      },
      progress: (progress) => {
        // New progress replaces unread progress, so new progress always fits.
        const stale = this.#queue.findIndex(([{ type }]) => type === "progress");
        if (stale !== -1) this.#size -= this.#queue.splice(stale, 1).length;
        this.#add({ type: "progress", progress }, 1);
        callHook(() => context.progress?.(progress), report);
      },
      output: async (value, bytes) => {
        try {
          await context.output?.(value, bytes);
        } catch (error) {
          report(error);
        }
        this.#add({ type: "output", value }, Math.ceil(bytes / BYTES_OF_EVENT));
        while (this.#size >= maxEvents && this.result === undefined && !this.#hasLeft) {
          await this.#change();
        }
      },
    };
  }

  start(call: Call): void {
    this.#call = call;
    // The consumer may leave while the call's ticket is looked up.
    if (this.#hasLeft) this.#abort();
  }

  /** Aborts the call, and resolves after its end. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    this.#abort();
    this.wake();
    await this.#ended;
  }

  #abort(): void {
    if (this.result !== undefined) return;
    this.#call?.deadline.abort(new DOMException("The consumer left the stream", "AbortError"));
  }

  #add(event: QueuedEvent, size: number): void {
    this.#size += size;
    this.#queue.push([event, size]);
    this.wake();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  wake(): void {
    for (const go of this.#waiting.splice(0)) go();
  }

  /** Runs the call when the first event is requested, and yields the events. */
  async *events(
    run: () => Promise<void>,
    nextCallId: () => string,
  ): AsyncGenerator<ToolEvent, undefined> {
    this.#ended = run();
    for (let sequence = 0, callId: string | undefined; !this.#hasLeft;) {
      const [next, size] = this.#queue.shift() ?? [undefined, 0];
      const event = next ?? this.#end();
      if (event === undefined) {
        await this.#change();
        continue;
      }
      this.#size -= size;
      this.wake();
      callId ??= this.#call?.callId ?? nextCallId();
      yield Object.freeze({ ...event, callId, sequence: sequence++ });
      if (event.type === "result") return;
    }
  }

  #end(): Unnumbered<ResultEvent> | undefined {
    const { result } = this;
    if (result === undefined) return undefined;
    const ofCall = this.#call === undefined ? 0 : countDropped(this.#call);
    return { type: "result", result, dropped: this.#dropped + ofCall };
  }
}
