/** Clocks, which tests replace so that no test waits for real time, and waits with a timeout. */

/** The clock of a registry. */
export interface RegistryClock {
  /** Milliseconds since 1970, for people and logs. */
  timestamp(): number;
  /** Calls `wake` once, after `ms` milliseconds. Returns a function that cancels the timer. */
  setTimeout(wake: () => void, ms: number): () => void;
}

/** The clock of dispatchers and registries: the time and timers. */
export interface Clock extends RegistryClock {
  /** Milliseconds since a fixed moment; monotonic. */
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

/** The result of {@linkcode within} after a timeout. */
export const TIME_OVER: unique symbol = Symbol();

/**
 * The number of turns of the microtask queue before a timer and a listener are set up. Tools that
 * only read memory end within them: their signal then costs 0.1 µs instead of 1.2.
 */
const TURNS_BEFORE_WATCH = 4;

/** A resolved promise. Its `then` counts turns as fast as `queueMicrotask`, or faster. */
const SETTLED = Promise.resolve();

/** A wait that often ends within a few turns of the microtask queue, so that it needs no timer. */
export interface QuickWait<What> {
  waitsFor(what: What): boolean;
  watch(): void;
}

/** Watches a wait, unless it ends within a few turns of the microtask queue. */
export function watchLater<What>(
  waiter: QuickWait<What>,
  what: What,
  turns: number = TURNS_BEFORE_WATCH,
): void {
  let left = turns;
  // An async function would make a call 5 % slower on Bun.
  const poll = (): void => {
    if (!waiter.waitsFor(what)) return;
    if (--left > 0) void SETTLED.then(poll);
    else waiter.watch();
  };
  void SETTLED.then(poll);
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.setTimeout(resolve, ms));
}

/** Waits for `promise` for at most `ms` milliseconds, then returns {@linkcode TIME_OVER}. */
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
    // A host in JavaScript may pass a value that is not a promise.
    Promise.resolve(promise).then(end(resolve), end(reject));
    watchLater({
      waitsFor: () => !isOver,
      watch: () => void (disarm = clock.setTimeout(() => resolve(TIME_OVER), ms)),
    }, promise);
  });
}

/** Waits for `work`. If the signal aborts first, rejects with the signal's reason. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return signal === undefined ? work : new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
