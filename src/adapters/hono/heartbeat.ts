/**
 * How often a stream shows that it is alive.
 *
 * @module
 */

import { isBun, isWorkers } from "./runtime.ts";

/** Workers notice only when they write that a client is gone; elsewhere the runtime says so. */
const WORKERS_MS = 1_500;
/** Bun closes a connection that was silent for ten seconds, unless it is told otherwise. */
const BUN_MS = 5_000;
const DEFAULT_MS = 15_000;

/** The heartbeat that fits this runtime, in milliseconds. */
export function defaultHeartbeatMs(): number {
  if (isWorkers()) return WORKERS_MS;
  return isBun() ? BUN_MS : DEFAULT_MS;
}
