/**
 * Which runtime this is, where that decides how a server behaves.
 *
 * @module
 */

const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: unknown } };
const agent = String(navigator?.userAgent);

/**
 * Cloudflare Workers: a disconnected client is detected on a write only, and unfinished work is
 * dropped.
 */
export const IS_WORKERS: boolean = agent === "Cloudflare-Workers";

/** Bun, which closes a connection that was silent for ten seconds unless a longer time is set. */
export const IS_BUN: boolean = agent.startsWith("Bun/");

export const IS_DENO: boolean = agent.startsWith("Deno/");

/** True on Workers. */
export function isWorkers(): boolean {
  return IS_WORKERS;
}

/** Workers detect a disconnected client on a write only; other runtimes report it. */
const WORKERS_MS = 1_500;
/** Bun closes a connection after ten silent seconds, unless a longer time is set. */
const BUN_MS = 5_000;
const DEFAULT_MS = 15_000;

/** The heartbeat that fits this runtime, in milliseconds. */
export function defaultHeartbeatMs(): number {
  if (IS_WORKERS) return WORKERS_MS;
  return IS_BUN ? BUN_MS : DEFAULT_MS;
}
