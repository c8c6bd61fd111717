/**
 * Time, handed in: a test brings its own clock, and no test waits.
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
