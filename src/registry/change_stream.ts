/**
 * A registry's changes as an async iterator, for `for await`.
 *
 * @module
 */

import { wholeFrom } from "../tool/mod.ts";
import type { ChangeFeed, ToolChange } from "./change_feed.ts";

/** Options for `registry.changes()`. */
export interface ToolChangesOptions {
  /** Ends the iteration. Changes that were not read yet are dropped. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How many changes may wait to be read. When there are more, the iteration stops following,
   * gives the ones that wait, and then throws a `RangeError`: read the registry anew.
   *
   * @default {1024}
   */
  readonly capacity?: number | undefined;
}

const checkCapacity = wholeFrom(1);

type Reader = (result: IteratorResult<ToolChange, undefined>) => void;

const DONE: IteratorResult<ToolChange, undefined> = { done: true, value: undefined };

/** Follows a feed from now on, also before the first `next()`. */
export class ChangeStream implements AsyncIterableIterator<ToolChange, undefined, void> {
  readonly #waiting: ToolChange[] = [];
  readonly #readers: Reader[] = [];
  readonly #detach: () => void;
  #ended = false;
  #error: RangeError | undefined;

  constructor(feed: ChangeFeed, options: ToolChangesOptions = {}) {
    const { signal, capacity = 1024 } = options;
    checkCapacity("follow the changes", capacity, "the capacity");
    const unsubscribe = feed.subscribe(
      (change) => this.#take(change, capacity),
      () => this.#end(false),
    );
    const onAbort = (): void => this.#end(true);
    this.#detach = () => {
      unsubscribe();
      signal?.removeEventListener("abort", onAbort);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next change. */
  next(): Promise<IteratorResult<ToolChange, undefined>> {
    const change = this.#waiting.shift();
    if (change !== undefined) return Promise.resolve({ done: false, value: change });
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#ended) return Promise.resolve(DONE);
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /** Stops following. `for await` calls it when the loop is left. */
  return(): Promise<IteratorResult<ToolChange, undefined>> {
    this.#end(true);
    return Promise.resolve(DONE);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #take(change: ToolChange, capacity: number): void {
    const reader = this.#readers.shift();
    if (reader !== undefined) reader({ done: false, value: change });
    else if (this.#waiting.length < capacity) this.#waiting.push(change);
    else {
      this.#error = new RangeError(
        `Cannot follow the changes: more than ${capacity} wait to be read, so some are lost`,
      );
      this.#end(false);
    }
  }

  #end(drop: boolean): void {
    this.#ended = true;
    this.#detach();
    if (drop) {
      this.#waiting.length = 0;
      this.#error = undefined;
    }
    for (const reader of this.#readers.splice(0)) reader(DONE);
  }
}
