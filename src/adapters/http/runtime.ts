/** Detects the runtime, explains its request errors, and reads bodies of bounded size. */

import { describeThrown, isFunction, isObject } from "../../tool/mod.ts";

const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: unknown } };
const agent = String(navigator?.userAgent);

/** Cloudflare Workers detect a disconnected client only on a write, and drop unfinished work. */
export const IS_WORKERS: boolean = agent === "Cloudflare-Workers";

export const IS_BUN: boolean = agent.startsWith("Bun/");

export const IS_DENO: boolean = agent.startsWith("Deno/");

export const DEFAULT_HEARTBEAT_MS: number = IS_WORKERS ? 1_500 : IS_BUN ? 5_000 : 15_000;

interface BunServer {
  timeout(request: Request, seconds: number): void;
  requestIP(request: Request): unknown;
}

export function isBunServer(env: unknown): env is BunServer {
  return isObject(env) && isFunction(env["timeout"]) && isFunction(env["requestIP"]);
}

const BUN_IDLE_S = 10;

/** Lets Bun keep a connection open without traffic until work has settled. */
export function keepOpen(server: BunServer, request: Request, work: Promise<unknown>): void {
  server.timeout(request, 0);
  const reset = (): void => server.timeout(request, BUN_IDLE_S);
  work.then(reset, reset);
}

/**
 * `fetch`, which on Deno would send a text again if a connection that was used before is lost. The
 * server may have run the first request.
 */
export async function fetchOnce(url: string | URL, init: RequestInit = {}): Promise<Response> {
  const { method, body = method === "POST" ? "" : undefined } = init;
  const isText = typeof body === "string";
  return await fetch(url, IS_DENO && isText ? { ...init, body: new Blob([body]) } : init);
}

/** A reader of any implementation of `fetch`. */
export interface ChunkReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
}

/** Reads a text up to `maxBytes` bytes. If there are more, they stay unread. */
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

/**
 * Reads the text of a body; `undefined` if it exceeds `maxBytes`. The signal ends the body, which the
 * signal of the request does not do on Deno after a garbage collection.
 */
export async function boundedText(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  signal?: AbortSignal | null,
): Promise<string | undefined> {
  const ending = signal ? body?.pipeThrough(new TransformStream(), { signal }) : body;
  const reader = ending?.getReader();
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

/** Returns the messages of an error and of its innermost cause, which has the reason of `fetch`. */
export function messagesOf(error: unknown, length = 300): string {
  const inmost = causesOf(error).at(-1);
  const outer = describeThrown(error, length);
  const inner = describeThrown(inmost?.cause ?? inmost ?? error, length);
  return outer.includes(inner) ? outer : `${outer} (${inner})`;
}

export function wasNotSent(error: unknown): boolean {
  return causesOf(error).some((cause) =>
    // Deno sets no code.
    NOT_SENT.has((cause as { readonly code?: unknown }).code) ||
    cause.message.includes("client error (Connect)")
  );
}
