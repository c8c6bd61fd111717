/**
 * Which runtime this is, where that decides how a server behaves.
 *
 * @module
 */

const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: unknown } };
const agent = String(navigator?.userAgent);

/** Cloudflare's: it says only to those who write that a client is gone, and drops unfinished work. */
export function isWorkers(): boolean {
  return agent === "Cloudflare-Workers";
}

/** Bun, which closes a connection that was silent for ten seconds unless it is told otherwise. */
export function isBun(): boolean {
  return agent.startsWith("Bun/");
}
