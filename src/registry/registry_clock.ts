/**
 * Time, handed in: a test brings its own clock.
 *
 * @module
 */

/** What a registry asks of a clock. The dispatcher's `Clock` has it too, so one serves both. */
export interface RegistryClock {
  /** Milliseconds since 1970. */
  timestamp(): number;
  /** Calls `wake` once, after `ms` milliseconds. What it returns cancels that. */
  setTimeout(wake: () => void, ms: number): () => void;
}

/** The clock of the runtime. */
export const runtimeClock: RegistryClock = Object.freeze({
  timestamp: (): number => Date.now(),
  setTimeout(wake: () => void, ms: number): () => void {
    const handle = setTimeout(wake, ms);
    return () => clearTimeout(handle);
  },
});
