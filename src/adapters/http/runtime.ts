/**
 * Which runtime this is, where that decides how a server behaves.
 *
 * @module
 */

const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: unknown } };
const agent = String(navigator?.userAgent);

/** Cloudflare's: it reports only to a writer that a client is gone, and drops unfinished work. */
export const IS_WORKERS: boolean = agent === "Cloudflare-Workers";

/** Bun, which closes a connection that was silent for ten seconds unless a longer time is set. */
export const IS_BUN: boolean = agent.startsWith("Bun/");

export const IS_DENO: boolean = agent.startsWith("Deno/");

/** True on Workers. */
export function isWorkers(): boolean {
  return IS_WORKERS;
}

/** Workers notice only when they write that a client is gone; elsewhere the runtime says so. */
const WORKERS_MS = 1_500;
/** Bun closes a connection that was silent for ten seconds, unless it is told otherwise. */
const BUN_MS = 5_000;
const DEFAULT_MS = 15_000;

/** The heartbeat that fits this runtime, in milliseconds. */
export function defaultHeartbeatMs(): number {
  if (IS_WORKERS) return WORKERS_MS;
  return IS_BUN ? BUN_MS : DEFAULT_MS;
}
