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

/** The heartbeat that fits this runtime, in milliseconds. */
export const DEFAULT_HEARTBEAT_MS: number = IS_WORKERS ? 1_500 : IS_BUN ? 5_000 : 15_000;
