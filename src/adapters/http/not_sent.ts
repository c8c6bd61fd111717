/**
 * Which requests never reached their server.
 *
 * @module
 */

/** Codes for requests that were not sent. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  "NOT_CONNECTED",
  "ECONNREFUSED",
  "ConnectionRefused",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** How many nested causes are looked at. */
const MAX_CAUSES = 5;

/** True if a request was not sent, because there was no connection. */
export function wasNotSent(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return false;
  const { code } = error as { readonly code?: unknown };
  // Deno gives no code.
  return NOT_SENT.has(code) || error.message.includes("client error (Connect)") ||
    wasNotSent(error.cause, depth + 1);
}
