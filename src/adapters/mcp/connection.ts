/** The connection to an MCP server, which is reopened when it is lost. */

import type { Client } from "@modelcontextprotocol/client";
import { causesOf } from "../http/runtime.ts";
import { abortable, clip, describeThrown, systemClock } from "../../tool/mod.ts";

/** How a server is called in messages, and what must not be in them. */
export interface ServerName {
  /** `at https://…`, or a program in quotes. */
  readonly words: string;
  readonly secrets: readonly string[];
}

/** How a program ended. */
export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** Parts of a path that are as long as this may be keys. */
const LONG_STEP = /[^/]{20,}/g;

/** Shorter values are not secrets, and would be removed from other words. */
const MIN_SECRET = 6;

/** The name of a server at an address: without credentials, query, and long parts of its path. */
export function nameOfUrl(url: URL, headers: Iterable<readonly [string, string]>): ServerName {
  const path = url.pathname.replace(LONG_STEP, "…");
  const values = [...headers].flatMap(([, value]) => [value, ...value.split(/\s+/)]);
  const params = [...url.searchParams.values()];
  return {
    words: `at ${url.origin}${path}`,
    secrets: secretsOf([
      url.href,
      url.search,
      url.username,
      url.password,
      ...url.pathname.match(LONG_STEP) ?? [],
      ...params,
      ...params.map(encodeURIComponent),
      ...values,
    ]),
  };
}

/** The name of a program: without its arguments and its environment. */
export function nameOfCommand(
  command: string,
  args: readonly string[],
  env: { readonly [name: string]: string },
): ServerName {
  return {
    words: `"${clip(command, 200)}"`,
    secrets: secretsOf([...args, ...Object.values(env)]),
  };
}

/** Longest first, so that no part of one is left. */
function secretsOf(values: readonly string[]): readonly string[] {
  return values.filter((value) => value.length >= MIN_SECRET).sort((a, b) => b.length - a.length);
}

/** Says why a server cannot be imported: its HTTP status, how its program ended, or what happened. */
export function serverError(
  { words, secrets }: ServerName,
  error: unknown,
  ended: ProgramEnd | undefined,
): Error {
  const status = statusOf(error);
  const why = status !== undefined
    ? `it answered with HTTP status ${status}`
    : ended !== undefined
    ? ended.signal === null
      ? `it ended with exit code ${ended.code}`
      : `it was ended by ${ended.signal}`
    : withoutSecrets(messagesOf(error), secrets);
  // The cause is omitted: it may contain headers, the address, or data of the server.
  return new Error(`Cannot import the MCP server ${words}: ${why}`);
}

function statusOf(error: unknown): number | undefined {
  const statuses = causesOf(error).map((cause) => (cause as { readonly status?: unknown }).status);
  return statuses.find((status) => typeof status === "number");
}

/** Returns the messages of an error and of its innermost cause: fetch gives its reason there. */
export function messagesOf(error: unknown): string {
  const inmost = causesOf(error).at(-1);
  const outer = describeThrown(error, 300);
  const inner = describeThrown(inmost?.cause ?? inmost ?? error, 300);
  return outer.includes(inner) ? outer : `${outer} (${inner})`;
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) clean = clean.replaceAll(secret, "…");
  return clean.replace(/[\p{Cc}\p{Cf}]+/gu, " ");
}

/** Opens connections to one server. */
export interface ClientOpener {
  readonly transport: "http" | "stdio";
  /** Whether the import owns its connections, and so closes and reopens them. */
  readonly isOwn: boolean;
  /** The name of the server in errors; `undefined` for a client that was passed in. */
  readonly name?: ServerName;
  /** How the program ended that was started last, if it has. */
  ended?(): ProgramEnd | undefined;
  /** Rejects immediately when the signal aborts, and ends what it has begun. */
  open(signal: AbortSignal): Promise<Client>;
}

/** The delays before a lost connection is reopened: none, then increasing ones. */
export interface ReconnectOptions {
  /**
   * The first wait, in milliseconds. Each is twice the one before.
   *
   * @default {250}
   */
  readonly firstDelayMs?: number;
  /**
   * The longest wait, in milliseconds.
   *
   * @default {30_000}
   */
  readonly maxDelayMs?: number;
}

export interface ConnectionEvents {
  /** Receives each connected client. A rejection ends the connection. */
  onConnected(client: Client): Promise<void>;
  /** Receives errors of background work. Must not throw. */
  onError(error: unknown): void;
}

/** The connection to one server, which is reopened when it is lost. */
export class McpConnection {
  readonly #opener: ClientOpener;
  readonly #events: ConnectionEvents;
  readonly #firstDelayMs: number;
  readonly #maxDelayMs: number;
  readonly #stop = new AbortController();
  #current: Promise<Client>;
  #live: Client | undefined;
  /** The delay before the next attempt, in milliseconds. */
  #delayMs = 0;
  #connectedAt = 0;
  #trouble: unknown;

  constructor(opener: ClientOpener, reconnect: ReconnectOptions, events: ConnectionEvents) {
    const { firstDelayMs = 250, maxDelayMs = 30_000 } = reconnect;
    this.#opener = opener;
    this.#events = events;
    this.#firstDelayMs = firstDelayMs;
    this.#maxDelayMs = maxDelayMs;
    this.#current = Promise.reject(closed());
    this.#current.catch(() => {});
  }

  /** Connects for the first time, without trying again. */
  async connect(signal: AbortSignal | undefined): Promise<void> {
    const { signal: stopped } = this.#stop;
    this.#current = this.#open(signal === undefined ? stopped : AbortSignal.any([stopped, signal]));
    await this.#current;
  }

  /** Says of an error which server it is from, and how that ended. */
  describe(error: unknown): unknown {
    const { name, ended } = this.#opener;
    return name === undefined ? error : serverError(name, error, ended?.());
  }

  client(signal: AbortSignal): Promise<Client> {
    return abortable(this.#current, signal);
  }

  /**
   * Replaces a client that has lost its server.
   *
   * @returns True if there will be another client; a client that was passed in is reconnected by
   * the host.
   */
  lose(client: Client): boolean {
    if (this.#live === client && this.#opener.isOwn) {
      this.#live = undefined;
      if (this.#trouble !== undefined) this.#events.onError(this.#trouble);
      this.#current = this.#reopen();
      this.#current.catch(() => {});
      end(client);
    }
    return this.#opener.isOwn;
  }

  /** Ends the connection, and a program with it. A client that was passed in stays connected. */
  async close(): Promise<void> {
    this.#stop.abort(closed());
    const live = this.#live;
    this.#live = undefined;
    this.#current = Promise.reject(closed());
    this.#current.catch(() => {});
    if (this.#opener.isOwn) await live?.close();
  }

  async #open(signal: AbortSignal): Promise<Client> {
    const client = await this.#opener.open(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw this.describe(error);
    });
    try {
      signal.throwIfAborted();
      this.#live = client;
      this.#trouble = undefined;
      if (this.#opener.isOwn) {
        client.onclose = () => void this.lose(client);
        // The description is made immediately: the error may end the program.
        client.onerror = (error) => void (this.#trouble = this.describe(error));
      }
      await abortable(this.#events.onConnected(client), signal);
      // The client may have been lost during `onConnected`.
      if (this.#live !== client) throw closed();
    } catch (error) {
      if (this.#live === client) this.#live = undefined;
      if (this.#opener.isOwn) end(client);
      throw error;
    }
    this.#connectedAt = systemClock.now();
    return client;
  }

  async #reopen(): Promise<Client> {
    const { signal } = this.#stop;
    // Only a connection that lasted resets the waits.
    if (systemClock.now() - this.#connectedAt > this.#maxDelayMs) this.#delayMs = 0;
    for (;;) {
      await pause(this.#delayMs, signal);
      this.#delayMs = Math.min(Math.max(this.#delayMs * 2, this.#firstDelayMs), this.#maxDelayMs);
      try {
        return await this.#open(signal);
      } catch (error) {
        signal.throwIfAborted();
        this.#events.onError(error);
      }
    }
  }
}

function closed(): DOMException {
  return new DOMException("The connection to the MCP server is closed", "AbortError");
}

function end(client: Client): void {
  // Ignore errors: the server may be gone already.
  client.close().catch(() => {});
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await abortable(new Promise<void>((resolve) => timer = setTimeout(resolve, ms)), signal);
  } finally {
    clearTimeout(timer);
  }
}
