/**
 * What a handler must know of the runtime that it runs on.
 *
 * @module
 */

const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: unknown } };
const agent = String(navigator?.userAgent);

/** Cloudflare's: it says only to those who write that a client is gone, and drops unfinished work. */
export function isWorkers(): boolean {
  return agent === "Cloudflare-Workers";
}

/** Bun: it closes connections that are silent for ten seconds. */
export function isBun(): boolean {
  return agent.startsWith("Bun/");
}
