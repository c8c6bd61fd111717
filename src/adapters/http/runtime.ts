/**
 * Which runtime this is, where that decides how a server behaves, and how requests fail on each. And a
 * reader of bodies within a bound, for clients and servers.
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

const MAX_CAUSES = 5;

/** Returns an error and its causes, from the outer to the inner one. */
export function causesOf(error: unknown): readonly Error[] {
  const causes: Error[] = [];
  let cause = error;
  while (cause instanceof Error && causes.length <= MAX_CAUSES) {
    causes.push(cause);
    cause = cause.cause;
  }
  return causes;
}

/** Returns true if a request was not sent, because there was no connection. */
export function wasNotSent(error: unknown): boolean {
  return causesOf(error).some((cause) =>
    // Deno sets no code.
    NOT_SENT.has((cause as { readonly code?: unknown }).code) ||
    cause.message.includes("client error (Connect)")
  );
}
