/**
 * Imports the tools of a running MCP server into a registry, and follows their changes.
 *
 * @module
 */

import type {
  Client,
  ListToolsResult,
  StreamableHTTPClientTransportOptions,
} from "@modelcontextprotocol/client";
import {
  type ImportResult,
  importTools,
  type ImportWarning,
  type McpImportOptions,
  type RejectedImport,
} from "../../formats/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
import { callHook, NO_LOG, type Tool } from "../../tool/mod.ts";
import { callServer } from "./call_server.ts";
import {
  clientOpener,
  McpConnection,
  type McpServerSource,
  type ReconnectOptions,
} from "./connection.ts";

/** Options for {@linkcode importMcpServer}. */
export interface ImportMcpServerOptions
  extends Omit<McpImportOptions, "namespace" | "execute" | "transport"> {
  /** The namespace of the tools. Names are unique within one server only. */
  readonly namespace: string;
  /** Receives the tools, and follows the server's changes. */
  readonly registry?: ToolRegistry;
  /** For a URL: headers, `fetch`, authentication. */
  readonly http?: StreamableHTTPClientTransportOptions;
  /** How a lost connection is reopened. A client that is handed in is its owner's to reconnect. */
  readonly reconnect?: ReconnectOptions;
  /** Aborts the wait for the first connection and list. */
  readonly signal?: AbortSignal;
  /** Receives later errors: a lost connection, a list that cannot be read. */
  onError?(error: unknown): void;
}

/** A running server whose tools are imported. */
export interface ImportedMcpServer extends AsyncDisposable {
  /** The server's current tools, in its order. */
  readonly tools: readonly Tool[];
  /** Warnings about the current tools. */
  readonly warnings: readonly ImportWarning[];
  /** Listed tools that could not be imported. */
  readonly rejected: readonly RejectedImport[];
  /** Reads the list again. The server's own notifications do so by themselves. */
  refresh(): Promise<void>;
  /** Takes the tools out of the registry and ends the connection, and a program with it. */
  close(): Promise<void>;
}

/**
 * Brings the tools of a running MCP server into a registry: calls, progress and cancellation go to
 * the server, changes of its list are followed, and a lost connection is reopened.
 *
 * A tool answers the server's `structuredContent`, else its text, else its content as
 * `mcpContent`. A server describes its own tools: give `risk` for a server that you do not trust.
 *
 * @example A program
 * ```ts ignore
 * await using files = await importMcpServer(
 *   { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/work"] },
 *   { namespace: "files", registry },
 * );
 * ```
 *
 * @example A client that is connected
 * ```ts
 * import assert from "node:assert/strict";
 * import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
 * import { McpServer } from "@modelcontextprotocol/server";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { importMcpServer } from "@plue/tools/mcp";
 *
 * const server = new McpServer({ name: "clock", version: "1.0.0" });
 * server.registerTool("now", { description: "Tells the time." }, () => ({
 *   content: [{ type: "text", text: "noon" }],
 * }));
 * const [near, far] = InMemoryTransport.createLinkedPair();
 * const client = new Client({ name: "example", version: "1.0.0" });
 * await Promise.all([server.connect(far), client.connect(near)]);
 *
 * const registry = new ToolRegistry();
 * await importMcpServer(client, { namespace: "clock", registry });
 *
 * const result = await new ToolDispatcher(registry).dispatch({ name: "clock:now" });
 * assert.equal(result.ok && result.content, "noon");
 * await client.close();
 * ```
 *
 * @param source A program to start, the URL of a server, or a connected client of the official SDK
 * 2.x, whose handler of `notifications/tools/list_changed` this takes.
 * @param options The namespace, and where the tools go.
 * @returns The server, to be closed.
 * @throws {TypeError} If an option is wrong, or the registry refuses a tool.
 * @throws If the server cannot be reached, or does not answer its tools.
 */
export async function importMcpServer(
  source: McpServerSource,
  options: ImportMcpServerOptions,
): Promise<ImportedMcpServer> {
  const server = new McpImport(source, options);
  try {
    await server.connect();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

class McpImport implements ImportedMcpServer {
  readonly #options: ImportMcpServerOptions;
  readonly #transport: "http" | "stdio";
  readonly #connection: McpConnection;
  readonly #sync: RegistrySync;
  #imported: ImportResult | undefined;
  #repeatable: ReadonlySet<string> = new Set();
  /** The read in progress; a stale list is read once more after it. */
  #reading: Promise<void> | undefined;
  #isStale = false;
  #isClosed = false;

  constructor(source: McpServerSource, options: ImportMcpServerOptions) {
    const { namespace, registry, reconnect = {}, http } = options;
    if (typeof namespace !== "string") {
      throw new TypeError("Cannot import an MCP server: it needs a namespace");
    }
    const opener = clientOpener(source, http);
    const onError = (error: unknown): void => this.#report(error);
    this.#options = options;
    this.#transport = opener.transport;
    this.#sync = new RegistrySync(registry, onError);
    this.#connection = new McpConnection(opener, reconnect, {
      onConnected: (client) => this.#begin(client),
      onError,
    });
  }

  get tools(): ImportedMcpServer["tools"] {
    return this.#sync.tools;
  }

  get warnings(): ImportedMcpServer["warnings"] {
    return this.#imported?.warnings ?? [];
  }

  get rejected(): ImportedMcpServer["rejected"] {
    return this.#imported?.rejected ?? [];
  }

  connect(): Promise<void> {
    return this.#connection.connect(this.#options.signal);
  }

  async refresh(): Promise<void> {
    await this.#read(await this.#connection.client(AbortSignal.timeout(REFRESH_TIMEOUT_MS)));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#sync.clear();
    await this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Subscribes before it reads the list, so that no change is missed. */
  async #begin(client: Client): Promise<void> {
    if (client.getServerCapabilities()?.tools?.listChanged === true) await this.#follow(client);
    await this.#read(client);
  }

  async #follow(client: Client): Promise<void> {
    client.setNotificationHandler("notifications/tools/list_changed", () => {
      this.#read(client).catch((error) => this.#report(error));
    });
    if (client.getProtocolEra() !== "modern") return;
    try {
      const { closed } = await client.listen({ toolsListChanged: true });
      void closed.then((by) => {
        if (by !== "local") this.#connection.lose(client);
      });
    } catch (error) {
      // The tools work without notifications.
      this.#report(error);
    }
  }

  /** Reads the list. Any number of calls during a read lead to one more read. */
  #read(client: Client): Promise<void> {
    if (this.#reading !== undefined) {
      this.#isStale = true;
      return this.#reading;
    }
    return this.#reading = this.#readOn(client).finally(() => this.#reading = undefined);
  }

  async #readOn(client: Client): Promise<void> {
    do {
      this.#isStale = false;
      // The signal is for the first list only.
      const signal = this.#imported === undefined ? this.#options.signal : undefined;
      const list = await client.listTools(undefined, {
        // The client's copy may be as old as the server lets it be.
        cacheMode: "refresh",
        ...(signal === undefined ? {} : { signal }),
      });
      if (this.#isClosed) return;
      const { registry: _registry, http: _http, reconnect: _reconnect, signal: _signal, ...rest } =
        this.#options;
      this.#repeatable = repeatableTools(list);
      const imported = importTools("mcp", list, {
        ...rest,
        transport: this.#transport,
        execute: (name, args, context) =>
          callServer(this.#connection, {
            name,
            arguments: args,
            isRepeatable: this.#repeatable.has(name),
          }, context),
      });
      this.#sync.update(imported.tools);
      this.#imported = imported;
    } while (this.#isStale);
  }

  #report(error: unknown): void {
    if (this.#isClosed) return;
    callHook(() => this.#options.onError?.(error), NO_LOG);
  }
}

/** How long `refresh` waits for a connection. */
const REFRESH_TIMEOUT_MS = 30_000;

/** The names of the tools that the server marks as safe to call twice. */
function repeatableTools({ tools }: ListToolsResult): ReadonlySet<string> {
  return new Set(
    tools.filter(({ annotations }) =>
      annotations?.readOnlyHint === true || annotations?.idempotentHint === true
    ).map(({ name }) => name),
  );
}

/** Keeps a registry's tools of one server as the server lists them. */
class RegistrySync {
  readonly #registry: ToolRegistry | undefined;
  readonly #onError: (error: unknown) => void;
  #tools: readonly Tool[] | undefined;

  constructor(registry: ToolRegistry | undefined, onError: (error: unknown) => void) {
    this.#registry = registry;
    this.#onError = onError;
  }

  get tools(): readonly Tool[] {
    return this.#tools ?? [];
  }

  /**
   * Takes in a new list. Unchanged tools stay the same objects.
   *
   * @throws {TypeError} The first time, if the registry refuses a tool; then it takes none. Later,
   * refused tools are reported, and the others are taken.
   */
  update(listed: readonly Tool[]): void {
    const before = new Map(this.tools.map((tool) => [tool.id, tool]));
    const next = listed.map((tool) => {
      const old = before.get(tool.id);
      return old !== undefined && JSON.stringify(old) === JSON.stringify(tool) ? old : tool;
    });
    if (this.#tools === undefined) this.#registry?.registerTools(next);
    else this.#apply(before, next);
    this.#tools = Object.freeze(next);
  }

  /** Takes all tools out of the registry. */
  clear(): void {
    for (const tool of this.tools) this.#remove(tool);
    this.#tools = Object.freeze([]);
  }

  #apply(before: ReadonlyMap<string, Tool>, next: readonly Tool[]): void {
    const registry = this.#registry;
    if (registry === undefined) return;
    const kept = new Set(next.map(({ id }) => id));
    for (const [id, tool] of before) if (!kept.has(id)) this.#remove(tool);
    for (const tool of next) {
      const old = before.get(tool.id);
      if (old === tool) continue;
      try {
        if (old !== undefined && registry.getTool(tool.id) === old) registry.updateTool(tool);
        else registry.registerTool(tool);
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  /** Removes a tool, unless another one has taken its id in the registry. */
  #remove(tool: Tool): void {
    if (this.#registry?.getTool(tool.id) === tool) this.#registry.unregisterTool(tool.id);
  }
}
