/**
 * Time, handed in: a test brings its own clock, and no test waits. Waits that have an end are here
 * too.
 *
 * @module
 */

/** What a registry asks of a clock. */
export interface RegistryClock {
  /** Milliseconds since 1970, for people and logs. */
  timestamp(): number;
  /** Calls `wake` once, after `ms` milliseconds. What it returns cancels that. */
  setTimeout(wake: () => void, ms: number): () => void;
}

/** Tells the time and wakes callers up. Serves dispatchers and registries. */
export interface Clock extends RegistryClock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number;
}

/** The clock of the runtime. */
export const systemClock: Clock = Object.freeze({
  now: (): number => performance.now(),
  timestamp: (): number => Date.now(),
  setTimeout(wake: () => void, ms: number): () => void {
    const handle = setTimeout(wake, ms);
    return () => clearTimeout(handle);
  },
});

/** What {@linkcode within} answers when the time was over first. */
export const TIME_OVER: unique symbol = Symbol("plue.time_over");

/**
 * How many turns of the microtask queue a wait may take before a timer and a listener are set up.
 * Tools that answer from memory settle within them: a signal then costs 0.1 µs instead of 1.2.
 */
const TURNS_BEFORE_WATCH = 4;

/** Counts turns: on all runtimes as fast as `queueMicrotask`, or faster. */
const SETTLED = Promise.resolve();

/** What waits for something that may come within a few turns. */
export interface QuickWait<What> {
  /** Whether it still waits for this. */
  waitsFor(what: What): boolean;
  /** Sets up a timer and a listener. */
  watch(): void;
}

/** Has a wait watched, unless it is over within a few turns. */
export function watchLater<What>(waiter: QuickWait<What>, what: What): void {
  let turns = TURNS_BEFORE_WATCH;
  const look = (): void => {
    if (!waiter.waitsFor(what)) return;
    if (--turns > 0) void SETTLED.then(look);
    else waiter.watch();
  };
  void SETTLED.then(look);
}

/**
 * Waits for `promise` for at most `ms` milliseconds.
 *
 * @returns What the promise gives, or {@linkcode TIME_OVER}; rejects as the promise does.
 */
export function within<T>(
  clock: RegistryClock,
  ms: number,
  promise: Promise<T>,
): Promise<T | typeof TIME_OVER> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    let disarm: (() => void) | undefined;
    const end = <Value>(settle: (value: Value) => void) => (value: Value): void => {
      isOver = true;
      disarm?.();
      settle(value);
    };
    // A host in JavaScript may have returned something else.
    Promise.resolve(promise).then(end(resolve), end(reject));
    watchLater({
      waitsFor: () => !isOver,
      watch: () => void (disarm = clock.setTimeout(() => resolve(TIME_OVER), ms)),
    }, promise);
  });
}

/** Waits for `work` until the signal aborts; rejects with its reason then. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return signal === undefined ? work : new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
