/**
 * The connection to an MCP server: opened with the official SDK, which is loaded on first use, and
 * reopened when it is lost.
 *
 * @module
 */

import type {
  Client,
  JSONRPCResponse,
  JsonSchemaValidator,
  StreamableHTTPClientTransportOptions,
} from "@modelcontextprotocol/client";
import { untilAborted } from "../../tool/mod.ts";

/** A server that is a program: it is started, and speaks over its standard input and output. */
export interface McpCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Environment variables, in addition to the few that the SDK passes on. */
  readonly env?: { readonly [name: string]: string };
  /** The folder that it runs in; by default the current one. */
  readonly cwd?: string;
  /**
   * What happens to its standard error output.
   *
   * @default {"inherit"}
   */
  readonly stderr?: "inherit" | "ignore";
}

/** Where a server is: a program, a URL, or a client of the official SDK that is connected. */
export type McpServerSource = McpCommand | URL | string | Client;

/** How a lost connection is reopened: at once, then after increasing waits. */
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

/** Callbacks of a connection. */
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
  /** How long to wait before the next attempt. */
  #delayMs = 0;
  #connectedAt = 0;

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

  /** The client, once there is a connection. */
  client(signal: AbortSignal): Promise<Client> {
    return untilAborted(this.#current, signal);
  }

  /**
   * Replaces a client that has lost its server.
   *
   * @returns Whether there will be another client; one that was handed in is its owner's to reconnect.
   */
  lose(client: Client): boolean {
    if (this.#live === client && this.#opener.isOwn) {
      this.#live = undefined;
      this.#current = this.#reopen();
      this.#current.catch(() => {});
      end(client);
    }
    return this.#opener.isOwn;
  }

  /** Ends the connection, and a program with it. A client that was handed in stays connected. */
  async close(): Promise<void> {
    this.#stop.abort(closed());
    const live = this.#live;
    this.#live = undefined;
    this.#current = Promise.reject(closed());
    this.#current.catch(() => {});
    if (this.#opener.isOwn) await live?.close();
  }

  async #open(signal: AbortSignal): Promise<Client> {
    const client = await this.#opener.open(signal);
    try {
      signal.throwIfAborted();
      this.#live = client;
      if (this.#opener.isOwn) client.onclose = () => void this.lose(client);
      await this.#events.onConnected(client);
      // The client may have been lost during `onConnected`.
      if (this.#live !== client) throw closed();
    } catch (error) {
      if (this.#live === client) this.#live = undefined;
      if (this.#opener.isOwn) end(client);
      throw error;
    }
    this.#connectedAt = Date.now();
    return client;
  }

  async #reopen(): Promise<Client> {
    const { signal } = this.#stop;
    // Only a connection that lasted resets the waits.
    if (Date.now() - this.#connectedAt > this.#maxDelayMs) this.#delayMs = 0;
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
    await untilAborted(new Promise<void>((resolve) => timer = setTimeout(resolve, ms)), signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Opens connections to one server. */
export interface ClientOpener {
  readonly transport: "http" | "stdio";
  /** Whether the import owns its connections, and so closes and reopens them. */
  readonly isOwn: boolean;
  open(signal: AbortSignal): Promise<Client>;
}

const INFO = { name: "plue", version: "0.1.0" };

/** How long opening a connection may take. */
const CONNECT_TIMEOUT_MS = 30_000;

/**
 * Makes the opener of a source's connections.
 *
 * @throws {TypeError} If the source is not a server.
 */
export function clientOpener(
  source: McpServerSource,
  http: StreamableHTTPClientTransportOptions | undefined,
): ClientOpener {
  if (isClient(source)) {
    return { transport: "http", isOwn: false, open: () => Promise.resolve(source) };
  }
  if (source instanceof URL || typeof source === "string") {
    const url = httpUrl(source);
    return { transport: "http", isOwn: true, open: (signal) => openHttp(url, http, signal) };
  }
  if (typeof source === "object" && source !== null && typeof source.command === "string") {
    return { transport: "stdio", isOwn: true, open: (signal) => openCommand(source, signal) };
  }
  throw new TypeError(
    "Cannot import an MCP server: it must be a URL, a command such as " +
      '{ command: "npx", args: ["…"] }, or a connected client',
  );
}

async function newClient(): Promise<Client> {
  const { Client } = await import("@modelcontextprotocol/client");
  /**
   * The SDK handles progress one microtask after reading it, and a response at once, which removes
   * the progress handler. A delayed response keeps progress that arrives together with it.
   */
  class OrderlyClient extends Client {
    protected override _onresponse(response: JSONRPCResponse): void {
      void Promise.resolve().then(() => super._onresponse(response));
    }
  }
  return new OrderlyClient(INFO, {
    versionNegotiation: { mode: "auto" },
    // The dispatcher checks results, with the same engine on every runtime.
    jsonSchemaValidator: {
      getValidator: <T>(): JsonSchemaValidator<T> => (value) => ({
        valid: true,
        data: value as T,
        errorMessage: undefined,
      }),
    },
  });
}

async function openHttp(
  url: URL,
  options: StreamableHTTPClientTransportOptions | undefined,
  signal: AbortSignal,
): Promise<Client> {
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const client = await newClient();
  await client.connect(new StreamableHTTPClientTransport(url, options), {
    signal,
    timeout: CONNECT_TIMEOUT_MS,
  });
  return client;
}

async function openCommand(source: McpCommand, signal: AbortSignal): Promise<Client> {
  const { getDefaultEnvironment, StdioClientTransport } = await loadStdio();
  const { command, args = [], env = {}, cwd, stderr = "inherit" } = source;
  const client = await newClient();
  await client.connect(
    new StdioClientTransport({
      command,
      args: [...args],
      env: { ...getDefaultEnvironment(), ...env },
      stderr,
      ...(cwd === undefined ? {} : { cwd }),
    }),
    { signal, timeout: CONNECT_TIMEOUT_MS },
  );
  return client;
}

/**
 * Loads the transport that starts programs. Bundlers must not see the specifier: they would put
 * Node's modules into a bundle for Workers.
 */
async function loadStdio(): Promise<typeof import("@modelcontextprotocol/client/stdio")> {
  return await import(["@modelcontextprotocol", "client", "stdio"].join("/"));
}

function isClient(source: McpServerSource): source is Client {
  return typeof (source as Partial<Client> | null | undefined)?.callTool === "function";
}

function httpUrl(source: URL | string): URL {
  if (URL.canParse(source)) {
    const url = new URL(source);
    if (url.protocol === "http:" || url.protocol === "https:") return url;
  }
  throw new TypeError(
    'Cannot import an MCP server: its URL must begin with "http://" or "https://"',
  );
}
