/**
 * How many calls run at once. Calls over the limits wait, first come, first served, in a queue that
 * is bounded.
 *
 * @module
 */

/** A call that waits for its turn. */
interface Waiter {
  readonly key: string;
  readonly enter: () => void;
}

/** A turn that is waited for. */
export interface Turn {
  /** Resolves when the call may run; it then holds a place. */
  readonly entered: Promise<void>;
  /** Gives up waiting, or gives the place back if it has been given. Once. */
  cancel(): void;
}

/** Limits how many calls run, in all and per key. */
export class Gate {
  readonly #maxTotal: number;
  readonly #maxPerKey: number;
  readonly #maxQueued: number;
  readonly #running: Map<string, number> = new Map();
  #total = 0;
  /** In order of arrival. None of them has room now: each call that leaves lets the next one in. */
  readonly #queue: Waiter[] = [];

  constructor(maxTotal: number, maxPerKey: number, maxQueued: number) {
    this.#maxTotal = maxTotal;
    this.#maxPerKey = maxPerKey;
    this.#maxQueued = maxQueued;
  }

  /** How many calls wait. */
  get queued(): number {
    return this.#queue.length;
  }

  /**
   * Asks for a place.
   *
   * @returns `true` if it is given at once, a turn to wait for, or `false` if the queue is full.
   */
  enter(key: string): true | false | Turn {
    // A newcomer overtakes no one: if a call of this key is waiting, there is no room for this one.
    if (this.#hasRoom(key)) {
      this.#count(key, 1);
      return true;
    }
    if (this.#queue.length >= this.#maxQueued) return false;
    let enter = (): void => {};
    const entered = new Promise<void>((resolve) => enter = resolve);
    const waiter: Waiter = { key, enter };
    this.#queue.push(waiter);
    return {
      entered,
      cancel: () => {
        const index = this.#queue.indexOf(waiter);
        if (index === -1) this.leave(key);
        else this.#queue.splice(index, 1);
      },
    };
  }

  /** Gives a place back. */
  leave(key: string): void {
    this.#count(key, -1);
    // One place became free, so at most one call can take it.
    const next = this.#queue.find((waiter) => this.#hasRoom(waiter.key));
    if (next === undefined) return;
    this.#queue.splice(this.#queue.indexOf(next), 1);
    this.#count(next.key, 1);
    next.enter();
  }

  #hasRoom(key: string): boolean {
    return this.#total < this.#maxTotal && (this.#running.get(key) ?? 0) < this.#maxPerKey;
  }

  #count(key: string, change: 1 | -1): void {
    const running = (this.#running.get(key) ?? 0) + change;
    this.#total += change;
    if (running === 0) this.#running.delete(key);
    else this.#running.set(key, running);
  }
}
