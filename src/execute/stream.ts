/**
 * A call as a stream of events. The call begins when the first event is asked for; a consumer that
 * leaves early aborts it.
 *
 * @module
 */

import type { ToolResult } from "../tool/mod.ts";
import type { EventQueue, QueuedEvent } from "./event_queue.ts";
import type { ResultEvent, ToolEvent } from "./tool_event.ts";

/** The call behind a stream. */
export interface StreamedCall {
  readonly callId: string;
  readonly dropped: number;
  run(): ToolResult | Promise<ToolResult>;
  abort(reason: unknown): void;
}

type Answer = IteratorResult<ToolEvent, undefined>;

const DONE: Answer = Object.freeze({ done: true, value: undefined });

/** The events of one call, to be taken once. */
export class ToolEventStream implements AsyncIterableIterator<ToolEvent, undefined> {
  readonly #call: StreamedCall;
  readonly #queue: EventQueue;
  #sequence = 0;
  #ended: Promise<void> | undefined;
  #result: ToolResult | undefined;
  #finished = false;
  /** Consumers that asked for an event before there was one. */
  #asked: ((answer: Answer) => void)[] = [];

  constructor(call: StreamedCall, queue: EventQueue) {
    this.#call = call;
    this.#queue = queue;
    queue.onEvent = () => this.#serve();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Answer> {
    if (this.#finished) return Promise.resolve(DONE);
    const answer = new Promise<Answer>((resolve) => this.#asked.push(resolve));
    if (this.#ended === undefined) this.#ended = this.#begin();
    else this.#serve();
    return answer;
  }

  /** Leaves the stream: the call is aborted. Resolves when it has ended, cleanups and all. */
  async return(): Promise<Answer> {
    if (!this.#finished) {
      this.#finish();
      if (this.#ended !== undefined) {
        if (this.#result === undefined) {
          this.#call.abort(new DOMException("The consumer left the stream", "AbortError"));
        }
        await this.#ended;
      }
    }
    return DONE;
  }

  async #begin(): Promise<void> {
    this.#result = await this.#call.run();
    // What a generator waits to send has no one to wait for it now.
    this.#queue.release();
    this.#serve();
  }

  #serve(): void {
    while (this.#asked.length > 0 && !this.#finished) {
      const event = this.#nextEvent();
      if (event === undefined) return;
      this.#asked.shift()?.({ done: false, value: event });
      if (event.type === "result") this.#finish();
    }
  }

  #nextEvent(): ToolEvent | undefined {
    const queued = this.#queue.take();
    if (queued !== undefined) return this.#numbered(queued);
    const result = this.#result;
    if (result === undefined) return undefined;
    const { callId, dropped } = this.#call;
    const last: ResultEvent = {
      type: "result",
      callId,
      sequence: this.#sequence++,
      result,
      dropped,
    };
    return Object.freeze(last);
  }

  #numbered(event: QueuedEvent): ToolEvent {
    const { callId } = this.#call;
    return Object.freeze({ ...event, callId, sequence: this.#sequence++ });
  }

  #finish(): void {
    this.#finished = true;
    this.#queue.release();
    for (const resolve of this.#asked.splice(0)) resolve(DONE);
  }
}
