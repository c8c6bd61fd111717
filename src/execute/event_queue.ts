/**
 * The events of a streamed call between the tool that sends them and the consumer that takes them.
 *
 * @module
 */

import type { ToolProgress } from "./tool_call.ts";

/** An event that has no number yet: numbers are given when it is taken. */
export type QueuedEvent =
  | { readonly type: "metadata"; readonly value: unknown }
  | { readonly type: "progress"; readonly progress: ToolProgress }
  | { readonly type: "output"; readonly value: unknown };

/** A bounded queue of events. */
export class EventQueue {
  readonly #size: number;
  #events: QueuedEvent[] = [];
  #released = false;
  #onEvent: (() => void) | undefined;
  /** Those who wait until there is room again. */
  #onRoom: (() => void)[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  /** Is called when there is something to take. */
  set onEvent(listener: () => void) {
    this.#onEvent = listener;
  }

  /**
   * Adds an event. Progress replaces progress that nobody has taken, so it always has room.
   *
   * @returns `false` if there was no room.
   */
  push(event: QueuedEvent): boolean {
    if (event.type === "progress") {
      const stale = this.#events.findIndex(({ type }) => type === "progress");
      if (stale !== -1) this.#events.splice(stale, 1);
    } else if (this.#events.length >= this.#size) return false;
    this.#events.push(event);
    this.#onEvent?.();
    return true;
  }

  /** Adds an event when there is room, and resolves when there is room for one more. */
  async pushAndWait(event: QueuedEvent): Promise<void> {
    while (!this.push(event)) {
      if (this.#released) return;
      await this.#room();
    }
    while (this.#events.length >= this.#size && !this.#released) await this.#room();
  }

  /** The next event, if there is one. */
  take(): QueuedEvent | undefined {
    const event = this.#events.shift();
    if (event !== undefined && this.#events.length < this.#size) this.#letGo();
    return event;
  }

  /** Nobody waits for room any more: the call is over. */
  release(): void {
    this.#released = true;
    this.#letGo();
  }

  #room(): Promise<void> {
    return new Promise((resolve) => this.#onRoom.push(resolve));
  }

  #letGo(): void {
    const waiting = this.#onRoom;
    this.#onRoom = [];
    for (const go of waiting) go();
  }
}
