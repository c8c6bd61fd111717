/**
 * How often a stream shows that it is alive.
 *
 * @module
 */

/** workerd notices only when it writes that a client is gone; elsewhere the runtime says so. */
const WORKERS_MS = 1_500;
const DEFAULT_MS = 15_000;

/** The heartbeat that fits this runtime, in milliseconds. */
export function defaultHeartbeatMs(): number {
  const { navigator } = globalThis as {
    readonly navigator?: { readonly userAgent?: unknown };
  };
  return navigator?.userAgent === "Cloudflare-Workers" ? WORKERS_MS : DEFAULT_MS;
}
