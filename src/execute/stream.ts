/**
 * A call as a stream of events: what its tool sends while it runs, and its result.
 *
 * @module
 */

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

/** The tool said how far it has come. */
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
  /** How many events were lost: values that are not JSON, and metadata that was not taken in time. */
  readonly dropped: number;
}

/** What a streamed call says while it runs. Values are frozen copies. */
export type ToolEvent = MetadataEvent | ProgressEvent | OutputEvent | ResultEvent;

type Unnumbered<Event> = Omit<Event, keyof EventBase>;

/** An event that has no number yet: numbers are given when it is taken. */
type QueuedEvent =
  | Unnumbered<MetadataEvent>
  | Unnumbered<ProgressEvent>
  | Unnumbered<OutputEvent>;

/** Outputs larger than this count as several events. */
const BYTES_OF_EVENT = 16_384;

type Answer = IteratorResult<ToolEvent, undefined>;

const DONE: Answer = Object.freeze({ done: true, value: undefined });

/** Runs a call with this context. `started` receives the call before it runs. */
export type RunCall = (
  context: DispatchContext,
  started: (call: Call) => void,
) => Outcome;

/**
 * The events of one call, to be consumed once.
 *
 * @param most How many events wait for their consumer. Large outputs count as several.
 * @param context What the host adds to the call. Its own callbacks are called as well.
 * @param nextCallId Creates an id for a call without a tool.
 */
export function streamCall(
  run: RunCall,
  context: DispatchContext,
  most: number,
  nextCallId: () => string,
): AsyncIterableIterator<ToolEvent> {
  const queue = queueOf(most);
  let call: Call | undefined;
  let isFinished = false;
  let sequence = 0;
  let callId: string | undefined;
  let dropped = 0;
  let result: ToolResult | undefined;
  let ended: Promise<void> | undefined;
  /** Consumers that requested an event before there was one. */
  const waiting: ((answer: Answer) => void)[] = [];

  const streamed: DispatchContext = {
    ...context,
    metadata(value) {
      // The notice of a failure is not an event: the stream has the result for that.
      if (call?.isOver === false) {
        if (!queue.push({ type: "metadata", value })) dropped++;
        serve();
      }
      callHook(() => context.metadata?.(value), report);
    },
    progress(progress) {
      queue.push({ type: "progress", progress });
      serve();
      callHook(() => context.progress?.(progress), report);
    },
    async output(value, bytes) {
      try {
        await context.output?.(value, bytes);
      } catch (error) {
        report(error);
      }
      const room = queue.pushAndWait({ type: "output", value }, Math.ceil(bytes / BYTES_OF_EVENT));
      serve();
      await room;
    },
  };

  function report(error: unknown): void {
    call?.report("metadata", error);
  }

  async function begin(): Promise<void> {
    result = await run(streamed, (started) => call = started);
    // A generator may still wait for room in the queue.
    queue.release();
    serve();
  }

  function serve(): void {
    while (waiting.length > 0 && !isFinished) {
      const event = queue.shift() ?? (result && {
        type: "result" as const,
        result,
        dropped: dropped + (call === undefined ? 0 : countDropped(call)),
      });
      if (event === undefined) return;
      callId ??= call?.callId ?? nextCallId();
      const value = Object.freeze({ ...event, callId, sequence: sequence++ });
      waiting.shift()?.({ done: false, value });
      if (event.type === "result") finish();
    }
  }

  function finish(): void {
    isFinished = true;
    queue.release();
    for (const resolve of waiting.splice(0)) resolve(DONE);
  }

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      if (isFinished) return Promise.resolve(DONE);
      const answer = new Promise<Answer>((resolve) => waiting.push(resolve));
      if (ended === undefined) ended = begin();
      else serve();
      return answer;
    },
    /** Leaves the stream: the call is aborted. Resolves when it has ended, cleanups and all. */
    async return() {
      if (!isFinished) {
        finish();
        if (result === undefined) {
          call?.deadline.abort(new DOMException("The consumer left the stream", "AbortError"));
        }
        await ended;
      }
      return DONE;
    },
  };
}

/** A bounded queue of events. */
interface Queue {
  /**
   * Adds an event. Progress replaces progress that has not been consumed, so it always has room.
   *
   * @returns `false` if there was no room.
   */
  push(event: QueuedEvent): boolean;
  /** Adds an event that counts as `size` events, and resolves when there is room for one more. */
  pushAndWait(event: QueuedEvent, size: number): Promise<void>;
  /** The oldest event; `undefined` if there is none. */
  shift(): QueuedEvent | undefined;
  /** The call is over: nothing waits for room any more. */
  release(): void;
}

function queueOf(most: number): Queue {
  const events: (readonly [event: QueuedEvent, size: number])[] = [];
  /** The sum of their sizes. */
  let sum = 0;
  let isReleased = false;
  /** Called when there is room again. */
  const onRoom: (() => void)[] = [];
  const add = (event: QueuedEvent, size: number): void => {
    sum += size;
    events.push([event, size]);
  };
  const letGo = (): void => {
    for (const go of onRoom.splice(0)) go();
  };
  return {
    push(event) {
      if (event.type === "progress") {
        const stale = events.findIndex(([{ type }]) => type === "progress");
        if (stale !== -1) sum -= events.splice(stale, 1).length;
      } else if (sum >= most) return false;
      add(event, 1);
      return true;
    },
    async pushAndWait(event, size) {
      add(event, size);
      while (sum >= most && !isReleased) {
        await new Promise<void>((resolve) => onRoom.push(resolve));
      }
    },
    shift() {
      const [event, size] = events.shift() ?? [undefined, 0];
      sum -= size;
      if (sum < most) letGo();
      return event;
    },
    release() {
      isReleased = true;
      letGo();
    },
  };
}
