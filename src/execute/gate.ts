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
  /** In order of arrival. None of them could run now: each leaving call lets in whom it can. */
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
    // Nobody is overtaken: whoever waits for this key, or for any place, could not enter either.
    if (this.#hasRoom(key)) {
      this.#occupy(key);
      return true;
    }
    if (this.#queue.length >= this.#maxQueued) return false;
    return this.#wait(key);
  }

  /** Gives a place back. */
  leave(key: string): void {
    this.#total--;
    const left = (this.#running.get(key) ?? 1) - 1;
    if (left === 0) this.#running.delete(key);
    else this.#running.set(key, left);
    // One place became free, so at most one call can take it.
    const index = this.#queue.findIndex((waiter) => this.#hasRoom(waiter.key));
    if (index === -1) return;
    const [next] = this.#queue.splice(index, 1);
    if (next === undefined) return;
    this.#occupy(next.key);
    next.enter();
  }

  #wait(key: string): Turn {
    let waiter: Waiter | undefined;
    const entered = new Promise<void>((resolve) => {
      waiter = { key, enter: resolve };
      this.#queue.push(waiter);
    });
    return {
      entered,
      cancel: () => {
        const index = this.#queue.findIndex((other) => other === waiter);
        if (index === -1) this.leave(key);
        else this.#queue.splice(index, 1);
      },
    };
  }

  #hasRoom(key: string): boolean {
    return this.#total < this.#maxTotal && (this.#running.get(key) ?? 0) < this.#maxPerKey;
  }

  #occupy(key: string): void {
    this.#total++;
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
  }
}
