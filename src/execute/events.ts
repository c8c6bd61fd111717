/**
 * What a tool sends while it runs: the events, what sends them, and the stream that hands them out.
 *
 * @module
 */

import { callHook, clip, type HookLog, type ToolFailure, type ToolResult } from "../tool/mod.ts";
import { describeRefusal, frozenCopy, type JsonAccepted, readJson } from "./json_value.ts";
import type { DispatchPhase } from "./options.ts";
import type { DispatchContext, ToolProgress } from "./request.ts";

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

/** A call, as the sender of its events needs it. */
export interface SendingCall {
  readonly options: DispatchContext;
  readonly events: EventQueue | undefined;
  /** The result is decided: values that are sent from here on are dropped. */
  readonly over: boolean;
  readonly maxOutputBytes: number;
  /** How many values that the tool sent were lost. */
  dropped: number;
  report(phase: DispatchPhase, error: unknown): void;
}

/** A call, as the stream of its events needs it. */
export interface StreamedCall {
  readonly callId: string;
  readonly dropped: number;
  readonly deadline: { abort(reason: unknown): void };
  run(): ToolResult | Promise<ToolResult>;
}

type Unnumbered<Event> = Omit<Event, keyof EventBase>;

/** An event that has no number yet: numbers are given when it is taken. */
export type QueuedEvent =
  | Unnumbered<MetadataEvent>
  | Unnumbered<ProgressEvent>
  | Unnumbered<OutputEvent>;

/** A bounded queue of events, as a call fills it. */
export interface EventQueue {
  /**
   * Adds an event. Progress replaces progress that has not been taken, so it always has room.
   *
   * @returns `false` if there was no room.
   */
  push(event: QueuedEvent): boolean;
  /**
   * Adds an event, and resolves when there is room for one more.
   *
   * @param size As how many events it counts.
   */
  pushAndWait(event: QueuedEvent, size: number): Promise<void>;
  /** The call is over: lets everything go on that waits for room. */
  release(): void;
}

const MAX_PROGRESS_MESSAGE = 1_000;
/** Outputs larger than this count as several events. */
const BYTES_OF_EVENT = 16_384;

/**
 * Tells the host's `metadata` callback that a call has failed. A stream has its result for that.
 *
 * @param tool The name in the call.
 */
export function tellFailure(
  context: DispatchContext,
  tool: string,
  { error: { code, message, issues } }: ToolFailure,
  log: HookLog,
): void {
  callHook(
    () => context.metadata?.(frozenCopy({ type: "error", tool, error: code, message, issues })),
    log,
  );
}

/** Sends what the tool says. A value that is not JSON is dropped and counted: it never fails the tool. */
export function sendMetadata(call: SendingCall, value: unknown): void {
  const { events, options } = call;
  const copy = copyFor(options.metadata, call, value)?.value;
  if (copy === undefined) return;
  if (events?.push({ type: "metadata", value: copy }) === false) call.dropped++;
  callHook(() => options.metadata?.(copy), (error) => call.report("metadata", error));
}

export function sendProgress(
  call: SendingCall,
  done: number,
  total: number | undefined,
  message: string | undefined,
): void {
  const { events, options } = call;
  if (!isHeard(options.progress, call)) return;
  if (![done, total ?? 0].every(Number.isFinite)) {
    return drop(call, new RangeError("Cannot send progress: it must be finite numbers"));
  }
  const words = typeof message === "string" ? clip(message, MAX_PROGRESS_MESSAGE) : undefined;
  const progress: ToolProgress = Object.freeze({
    done,
    ...(total !== undefined && { total }),
    ...(words !== undefined && { message: words }),
  });
  events?.push({ type: "progress", progress });
  callHook(() => options.progress?.(progress), (error) => call.report("metadata", error));
}

/** Sends what a generator yielded. Resolves when the generator may go on. */
export async function sendOutput(call: SendingCall, value: unknown): Promise<void> {
  const { events, options } = call;
  const copy = copyFor(options.output, call, value);
  if (copy === undefined) return;
  try {
    await options.output?.(copy.value);
  } catch (error) {
    call.report("metadata", error);
  }
  await events?.pushAndWait(
    { type: "output", value: copy.value },
    Math.ceil(copy.bytes / BYTES_OF_EVENT),
  );
}

/** Whether a value is wanted: not without a consumer, and not after the result was decided. */
function isHeard(callback: unknown, call: SendingCall): boolean {
  return !call.over && (call.events ?? callback) !== undefined;
}

/** A frozen copy for a consumer; `undefined` if there is none, or the value must be dropped. */
function copyFor(
  callback: unknown,
  call: SendingCall,
  value: unknown,
): JsonAccepted | undefined {
  if (!isHeard(callback, call)) return undefined;
  const limit = call.maxOutputBytes;
  const verdict = readJson(value, limit);
  if (verdict.kind === "json") return { ...verdict, value: frozenCopy(verdict.value) };
  const why = verdict.kind === "large"
    ? `it is larger than ${limit} bytes of JSON`
    : describeRefusal(verdict);
  drop(call, new TypeError(`Cannot send a value: ${why}`));
  return undefined;
}

function drop(call: SendingCall, error: Error): void {
  call.dropped++;
  call.report("metadata", error);
}

type Answer = IteratorResult<ToolEvent, undefined>;

const DONE: Answer = Object.freeze({ done: true, value: undefined });

/**
 * The events of one call, to be taken once.
 *
 * @param most How many events wait for their consumer. Large outputs count as several.
 * @param begin Makes the call, which sends into the queue, or says why there is none.
 * @param nextCallId Gives an id to a call that there is no tool for.
 */
export function streamEvents(
  most: number,
  begin: (queue: EventQueue) => StreamedCall | ToolFailure | Promise<StreamedCall | ToolFailure>,
  nextCallId: () => string,
): AsyncIterableIterator<ToolEvent, undefined> {
  const events: (readonly [event: QueuedEvent, size: number])[] = [];
  /** The sum of their sizes. */
  let waiting = 0;
  /** Consumers that asked for an event before there was one. */
  const asked: ((answer: Answer) => void)[] = [];
  /** Called when there is room again. */
  let onRoom: (() => void)[] = [];
  let call: StreamedCall | undefined;
  let callId: string | undefined;
  let ended: Promise<void> | undefined;
  let result: ToolResult | undefined;
  let sequence = 0;
  let isReleased = false;
  let isFinished = false;

  const queue: EventQueue = {
    push(event) {
      if (event.type === "progress") {
        const stale = events.findIndex(([{ type }]) => type === "progress");
        if (stale !== -1) waiting -= events.splice(stale, 1).length;
      } else if (waiting >= most) return false;
      add(event, 1);
      return true;
    },
    async pushAndWait(event, size) {
      add(event, size);
      while (waiting >= most && !isReleased) {
        await new Promise<void>((resolve) => onRoom.push(resolve));
      }
    },
    release() {
      isReleased = true;
      letGo();
    },
  };

  function add(event: QueuedEvent, size: number): void {
    waiting += size;
    events.push([event, size]);
    serve();
  }

  function letGo(): void {
    const waiting = onRoom;
    onRoom = [];
    for (const go of waiting) go();
  }

  async function run(): Promise<void> {
    const beginning = begin(queue);
    const begun = beginning instanceof Promise ? await beginning : beginning;
    result = "run" in begun ? await (call = begun).run() : begun;
    // A generator may still wait for room in the queue.
    queue.release();
    serve();
  }

  function serve(): void {
    while (asked.length > 0 && !isFinished) {
      const [event, size] = events.shift() ??
        [result && { type: "result" as const, result, dropped: call?.dropped ?? 0 }, 0];
      if (event === undefined) return;
      waiting -= size;
      if (waiting < most) letGo();
      callId ??= call?.callId ?? nextCallId();
      const value = Object.freeze({ ...event, callId, sequence: sequence++ });
      asked.shift()?.({ done: false, value });
      if (event.type === "result") finish();
    }
  }

  function finish(): void {
    isFinished = true;
    queue.release();
    for (const resolve of asked.splice(0)) resolve(DONE);
  }

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      if (isFinished) return Promise.resolve(DONE);
      const answer = new Promise<Answer>((resolve) => asked.push(resolve));
      if (ended === undefined) ended = run();
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
