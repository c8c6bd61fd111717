/**
 * A call as a stream of events. The call begins when the first event is asked for; a consumer that
 * leaves early aborts it.
 *
 * @module
 */

import type { ToolFailure, ToolResult } from "../tool/mod.ts";
import { Call } from "./call.ts";
import type { EventQueue } from "./event_queue.ts";
import type { ToolEvent } from "./tool_event.ts";

type Answer = IteratorResult<ToolEvent, undefined>;

const DONE: Answer = Object.freeze({ done: true, value: undefined });

/** The events of one call, to be taken once. */
export class ToolEventStream implements AsyncIterableIterator<ToolEvent, undefined> {
  readonly #queue: EventQueue;
  readonly #resolve: () => Call | ToolFailure;
  readonly #nextCallId: () => string;
  /** The call, when it has begun and there is such a tool. */
  #call: Call | undefined;
  #callId: string | undefined;
  #sequence = 0;
  #ended: Promise<void> | undefined;
  #result: ToolResult | undefined;
  #finished = false;
  /** Consumers that asked for an event before there was one. */
  #asked: ((answer: Answer) => void)[] = [];

  /**
   * @param queue What the call sends into.
   * @param resolve Makes the call, or says why there is none.
   * @param nextCallId Names what there is no call for.
   */
  constructor(queue: EventQueue, resolve: () => Call | ToolFailure, nextCallId: () => string) {
    this.#queue = queue;
    this.#resolve = resolve;
    this.#nextCallId = nextCallId;
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
          this.#call?.abort(new DOMException("The consumer left the stream", "AbortError"));
        }
        await this.#ended;
      }
    }
    return DONE;
  }

  async #begin(): Promise<void> {
    const call = this.#resolve();
    if (call instanceof Call) this.#call = call;
    this.#result = call instanceof Call ? await call.run() : call;
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
    const result = this.#result;
    const event = this.#queue.take() ??
      (result && { type: "result" as const, result, dropped: this.#call?.dropped ?? 0 });
    if (event === undefined) return undefined;
    const callId = this.#callId ??= this.#call?.callId ?? this.#nextCallId();
    return Object.freeze({ ...event, callId, sequence: this.#sequence++ });
  }

  #finish(): void {
    this.#finished = true;
    this.#queue.release();
    for (const resolve of this.#asked.splice(0)) resolve(DONE);
  }
}
