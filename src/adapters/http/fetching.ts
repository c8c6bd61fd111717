/**
 * Helpers for clients of HTTP services: they read a body within a bound, and recognise requests
 * that were not sent.
 *
 * @module
 */

/** Reads a body chunk by chunk. The readers of all implementations of `fetch` fit. */
export interface ChunkReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
}

/**
 * Reads a text.
 *
 * @returns The text, at most its first `maxBytes` bytes; `isWhole` is false if there are more. The
 * rest stays unread.
 */
export async function readText(
  reader: ChunkReader | undefined,
  maxBytes: number,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  let left = maxBytes;
  for (;;) {
    const { value } = await reader?.read() ?? {};
    if (value === undefined) return { text: text + decoder.decode(), isWhole: true };
    text += decoder.decode(value.subarray(0, left), { stream: true });
    left -= value.byteLength;
    if (left < 0) return { text, isWhole: false };
  }
}

/** Reads the text of a body; `undefined` if it exceeds `maxBytes`. The rest is cancelled then. */
export async function boundedText(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<string | undefined> {
  const reader = body?.getReader();
  const { text, isWhole } = await readText(reader, maxBytes);
  if (isWhole) return text;
  await reader?.cancel();
  return undefined;
}

/** The codes of errors for requests that were not sent. */
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

/** The maximum number of nested causes that are checked. */
const MAX_CAUSES = 5;

/** Returns true if a request was not sent, because there was no connection. */
export function wasNotSent(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return false;
  const { code } = error as { readonly code?: unknown };
  // Deno sets no code.
  return NOT_SENT.has(code) || error.message.includes("client error (Connect)") ||
    wasNotSent(error.cause, depth + 1);
}
