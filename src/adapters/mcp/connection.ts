/**
 * A connection that is made anew when it is lost.
 *
 * @module
 */

import type { Client } from "@modelcontextprotocol/client";
import type { ReconnectOptions } from "./import_options.ts";
import type { ClientOpener } from "./open_client.ts";

/** What a connection tells. */
export interface ConnectionEvents {
  /** A client is connected. What it rejects with ends the connection again. */
  onConnected(client: Client): Promise<void>;
  /** Something went wrong that nobody waits for. Must not throw. */
  onError(error: unknown): void;
}

/** One server's connection. */
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
   * A client has lost its server: a new one takes its place, unless one does already.
   *
   * @returns Whether one does. A client that was handed in is its owner's to connect.
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
      // It may have been lost meanwhile, and another be on its way.
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
    // A connection that did not last does not begin the waits anew.
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
  // It is in nobody's way if it cannot be ended: what it was connected to is gone.
  client.close().catch(() => {});
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
