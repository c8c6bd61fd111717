/**
 * Lets other work run while a call computes.
 *
 * @module
 */

/** How long calls compute before timers, requests and answers have their turn, in milliseconds. */
const MAX_TURN_MS = 10;

let turnBegan = performance.now();
let lastTurn = Promise.resolve();

/**
 * Waits for the event loop if it has not had its turn for a while. Call it between steps that take
 * a few milliseconds at most. Calls that wait go on one by one, each after the loop has run.
 *
 * @throws The signal's reason, if the call was aborted.
 */
export async function pause(signal: AbortSignal): Promise<void> {
  if (performance.now() - turnBegan < MAX_TURN_MS) return;
  await (lastTurn = lastTurn.then(() => new Promise((resolve) => setImmediate(resolve))));
  turnBegan = performance.now();
  signal.throwIfAborted();
}
