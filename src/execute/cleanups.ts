/**
 * What a tool deferred, run however its call ends.
 *
 * @module
 */

import type { Call } from "./call.ts";
import { INTERRUPTED, within } from "./deadline.ts";

/** A cleanup that a tool deferred. */
export type Cleanup = () => void | Promise<void>;

/**
 * Runs cleanups, the last one deferred first, each whatever the others do. Resolves when they have
 * ended, or their time is over; they go on then, and nobody waits for them.
 */
export async function runCleanups(call: Call, cleanups: readonly Cleanup[]): Promise<void> {
  const { clock, closeTimeoutMs } = call.settings;
  const run = async (): Promise<void> => {
    for (const cleanup of cleanups.toReversed()) await runCleanup(call, cleanup);
  };
  if (await within(clock, closeTimeoutMs, run()) === INTERRUPTED) {
    call.report("cleanup", new RangeError(`The cleanups took longer than ${closeTimeoutMs} ms`));
  }
}

/** Runs one cleanup. Never rejects: what it throws is reported. */
export async function runCleanup(call: Call, cleanup: Cleanup): Promise<void> {
  try {
    await cleanup();
  } catch (error) {
    call.report("cleanup", error);
  }
}
