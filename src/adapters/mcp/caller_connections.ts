/** Connections to one server for its callers: one for each principal and credential. */

import type {
  Client,
  FetchLike,
  StreamableHTTPClientTransportOptions,
  Tool,
} from "@modelcontextprotocol/client";
import { digestOf } from "../../execute/durable/mod.ts";
import { type Call, CallFailure } from "../../execute/mod.ts";
import { redactWith } from "../../execute/layers/mod.ts";
import * as check from "../../tool/mod.ts";
import type { ToolContext, ToolCredential } from "../../tool/mod.ts";
import { withoutSecrets } from "../http/redact.ts";
import { fetchOnce } from "../http/runtime.ts";
import { type ClientOpener, McpConnection, type ReconnectOptions } from "./connection.ts";

/** Options for the connections of callers. */
export interface CallerConnectionOptions {
  /**
   * Returns the caller's token for the server, such as `call.credential("github")`. Called once for
   * each call. Calls with the same principal and token use the same connection, and no others do.
   * The header `authorization` and the `authProvider` of the option `http` are for the import's own
   * connection only. The other headers are sent for callers, too.
   */
  authorize(call: ToolContext): string | ToolCredential | Promise<string | ToolCredential>;
  /**
   * True if all callers share the list that the import has read. With `false`, a tool is callable only
   * if the server lists it unchanged for the caller's own token.
   *
   * @default {false}
   */
  readonly sharesList?: boolean | undefined;
  /** The maximum number of connections; an eighth of it for one principal. @default {256} */
  readonly maxConnections?: number | undefined;
  /** The time after which an unused connection is closed, in milliseconds. @default {60_000} */
  readonly idleMs?: number | undefined;
}

export const CALLER_CHECKS: Readonly<Record<keyof CallerConnectionOptions, check.Check>> = {
  authorize: check.checkFunction,
  sharesList: check.checkFlag,
  maxConnections: check.wholeFrom(1),
  idleMs: check.numberFrom(0, check.MAX_TIMEOUT_MS),
};

/** The settings of an import that its callers' connections share. */
interface ImportSettings {
  readonly http: StreamableHTTPClientTransportOptions;
  readonly open: (http: StreamableHTTPClientTransportOptions) => ClientOpener;
  readonly reconnect: ReconnectOptions;
  readonly onError: (error: unknown) => void;
  /** Called if the server does not list a tool, unchanged, for a caller. Never rejects. */
  readonly onUnlisted: () => Promise<void>;
  /** Returns a tool, as the import has read it. */
  readonly listed: (name: string) => Tool | undefined;
}

interface CallerConnection {
  readonly connection: McpConnection;
  readonly principal: string | undefined;
  readonly ready: Promise<void>;
  readonly list: CallerList;
  calls: number;
  stopTimer: () => void;
  /** The last reported error: several calls wait for the same attempt to connect. */
  reported?: unknown;
}

/** The time that a call of an unlisted tool waits for the list of the import, in milliseconds. */
const UNLISTED_MS = 2_000;
/** The first and the longest interval between reads of a caller's list for tools that it lacks. */
const [READ_AGAIN_MS, MAX_READ_AGAIN_MS] = [1_000, 60_000] as const;
const READ_TIMEOUT_MS = 30_000;
/** The open streams of all imports for messages that answer no request, by the signals that end them. */
const STREAMS: Set<AbortSignal> = new Set();
const MAX_STREAMS = 64;

/**
 * Returns a `fetch` that opens a stream for notifications only if fewer than 64 are open: only some
 * servers send the progress of calls to it, and Bun limits the concurrent requests to 256.
 */
function limitStreams(fetch: FetchLike): FetchLike {
  return async (url, init = {}) => {
    const { method, headers, signal } = init;
    const isStream = method === "GET" && !new Headers(headers).has("last-event-id");
    if (!isStream || !signal) return await fetch(url, init);
    const end = (): void => void STREAMS.delete(signal);
    if (!STREAMS.has(signal)) {
      if (STREAMS.size >= MAX_STREAMS) return new Response(null, { status: 405 });
      STREAMS.add(signal);
      signal.addEventListener("abort", end);
    }
    const response = await fetch(url, init).catch((error) => {
      end();
      throw error;
    });
    if (signal.aborted || !response.ok) end();
    return response;
  };
}

class CallerList {
  readonly #listed: ImportSettings["listed"];
  /** The input schemas. Those that the import has, too, are its own objects, to save memory. */
  #schemas: ReadonlyMap<string, object> = new Map();
  #again: Promise<void> = Promise.resolve();
  #againAt = -Infinity;
  #delayMs: number = READ_AGAIN_MS;

  constructor(listed: ImportSettings["listed"]) {
    this.#listed = listed;
  }

  async read(connection: McpConnection, client: Client): Promise<void> {
    const schemas = new Map<string, object>();
    // A list for each caller would take gigabytes.
    for (const { name, inputSchema } of await connection.list(client, undefined, "bypass")) {
      const listed = this.#listed(name)?.inputSchema;
      schemas.set(name, listed && check.jsonEqual(listed, inputSchema) ? listed : inputSchema);
    }
    this.#schemas = schemas;
  }

  /** Returns true if the list has a tool unchanged. The server may have changed its list meanwhile. */
  async has(tool: Tool | undefined, connection: McpConnection): Promise<boolean> {
    if (this.#isListed(tool)) return true;
    const now = check.systemClock.now();
    if (now >= this.#againAt) {
      this.#againAt = now + this.#delayMs;
      this.#delayMs = Math.min(2 * this.#delayMs, MAX_READ_AGAIN_MS);
      // Without the signal of this call, because other calls wait for the same list.
      const signal = AbortSignal.timeout(READ_TIMEOUT_MS);
      this.#again = connection.use(signal, (client) => this.read(connection, client));
    }
    // Each call catches it: on Workers, the read rejects if the request that began it has ended.
    await this.#again.catch((error) => {
      this.#delayMs = READ_AGAIN_MS;
      this.#againAt = Math.min(this.#againAt, check.systemClock.now() + READ_AGAIN_MS);
      throw error;
    });
    const isListed = this.#isListed(tool);
    if (isListed) this.#delayMs = READ_AGAIN_MS;
    return isListed;
  }

  #isListed(tool: Tool | undefined): boolean {
    const own = this.#schemas.get(tool?.name ?? "");
    return own !== undefined && check.jsonEqual(own, tool?.inputSchema);
  }
}

export class CallerConnections {
  readonly #options: CallerConnectionOptions & ImportSettings;
  /** By the digest of principal and token. The least recently used connection is first. */
  readonly #connections: Map<string | McpConnection, CallerConnection> = new Map();

  constructor(options: CallerConnectionOptions & ImportSettings) {
    this.#options = options;
  }

  /**
   * Runs work with the connection for a call's principal and token.
   *
   * @param tool The called tool, as the import has read it.
   */
  async use<Result>(
    tool: Tool | undefined,
    context: ToolContext,
    work: (connection: McpConnection) => Promise<Result>,
  ): Promise<Result | check.ToolFailure> {
    const credential = await this.#options.authorize(context);
    const { principal = null, signal } = context;
    const token: unknown = check.isText(credential) ? credential : Object(credential).token;
    if (!check.isText(token) || token === "") {
      throw new CallFailure("denied", "authorize returned no token for its caller");
    }
    // A module may have its own copy of the package, whose class does not know this context.
    const call: Call | undefined = Object(context.constructor).callOf?.(context);
    if (call !== undefined) redactWith(call, (value) => withoutSecrets(value, [token]));
    const key = await digestOf(JSON.stringify([principal, token]));
    const own: CallerConnection = this.#connections.get(key) ??
      this.#add(context, credential, token, key);
    this.#connections.delete(key);
    this.#connections.set(key, own);
    own.calls++;
    own.stopTimer();
    try {
      let retryable = true;
      const why = await this.#begin(key, own, tool, signal).catch((error) => {
        if (own.reported !== error && !signal.aborted) {
          this.#options.onError(withoutSecrets(error, [token]));
          own.reported = error;
        }
        retryable = Object(error).status !== 401;
        return `the MCP server cannot be reached. ${check.describeThrown(error)}`;
      });
      if (why === undefined) return await work(own.connection);
      const message = `Cannot call "${call?.tool.id ?? tool?.name}": ${why}`;
      return check.ToolResult.error("unavailable", message, { ran: "no", retryable });
    } finally {
      if (--own.calls === 0) {
        const idleMs = this.#connections.get(key) === own ? this.#options.idleMs ?? 60_000 : 0;
        own.stopTimer = check.systemClock.setTimeout(() => this.#remove(key, own), idleMs);
      }
    }
  }

  /** Waits for the connection. Returns the reason why the tool cannot be called, if there is one. */
  async #begin(
    key: string,
    own: CallerConnection,
    tool: Tool | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    // Each call removes it: on Workers, its promise rejects if the first request has ended.
    const ready = own.ready.catch((error) => {
      this.#remove(key, own);
      throw error;
    });
    await check.abortable(ready, signal);
    const isCallable = this.#options.sharesList === true ||
      await check.abortable(own.list.has(tool, own.connection), signal);
    if (isCallable) return undefined;
    // Awaited, because Workers end the work of a request with its response.
    const read = check.abortable(this.#options.onUnlisted(), signal);
    await check.within(check.systemClock, UNLISTED_MS, read);
    return "the server does not list it for its caller";
  }

  close(): void {
    for (const [key, own] of this.#connections) this.#remove(key, own);
  }

  #add({ principal }: ToolContext, given: string | ToolCredential, token: string, key: string) {
    this.#limitConnections(principal);
    // The provider and the session belong to the import's own connection.
    const { authProvider: _, sessionId: _own, ...http } = this.#options.http;
    const { fetch = fetchOnce, requestInit } = http;
    const limited = limitStreams(fetch);
    const headers = new Headers(requestInit?.headers);
    headers.set("authorization", `Bearer ${token}`);
    // A server may repeat the token in its errors.
    const onError = (error: unknown): void => this.#options.onError(withoutSecrets(error, [token]));
    const opener = this.#options.open({
      ...http,
      requestInit: { ...requestInit, headers },
      fetch: async (...request) => {
        const response = await limited(...request);
        // The end of an old session must not replace a newer token.
        if (response.status !== 401 || request[1]?.method === "DELETE") return response;
        // The next call gets another connection: the Rust SDK sends this status for a lost session.
        const own = this.#connections.get(key);
        if (own?.connection === connection) {
          this.#connections.delete(key);
          this.#connections.set(connection, own);
        }
        if (typeof given !== "string") given.reject().catch(onError);
        return response;
      },
    });
    const list = new CallerList(this.#options.listed);
    const connection = new McpConnection(opener, this.#options.reconnect, {
      onConnected: async (client) => {
        if (this.#options.sharesList !== true) await list.read(connection, client);
      },
      onError,
      onState: check.noop,
    });
    // Without the signal of this call, because other calls wait for the same connection.
    const ready = connection.connect(undefined);
    return { connection, principal, ready, list, calls: 0, stopTimer: () => {} };
  }

  /** Closes an unused connection if there are too many, or else rejects the call. */
  #limitConnections(principal: string | undefined): void {
    const { maxConnections = 256 } = this.#options;
    const all = [...this.#connections];
    const ofPrincipal = all.filter(([, own]) => own.principal === principal);
    const isFull = ofPrincipal.length >= Math.ceil(maxConnections / 8);
    if (!isFull && all.length < maxConnections) return;
    const unused = (isFull ? ofPrincipal : all).find(([, { calls }]) => calls === 0);
    if (unused === undefined) {
      throw new CallFailure("overloaded", "too many connections to its server are in use");
    }
    this.#remove(...unused);
  }

  #remove(key: string | McpConnection, own: CallerConnection): void {
    own.stopTimer();
    if (this.#connections.get(key) === own) this.#connections.delete(key);
    this.#connections.delete(own.connection);
    own.connection.close().catch(this.#options.onError);
  }
}
