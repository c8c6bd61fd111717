/**
 * The tools of a running MCP server in a registry.
 *
 * @module
 */

import type { Client } from "@modelcontextprotocol/client";
import { type ImportResult, importTools } from "../../formats/mod.ts";
import { callServer, listServerTools, repeatableTools } from "./call_server.ts";
import { McpConnection } from "./connection.ts";
import type {
  ImportedMcpServer,
  ImportMcpServerOptions,
  McpServerSource,
} from "./import_options.ts";
import { clientOpener } from "./open_client.ts";
import { RegistrySync } from "./registry_sync.ts";

/**
 * Brings the tools of a running MCP server into a registry: calls, progress and cancellation go to
 * the server, its changes come from it, and a lost connection is made anew.
 *
 * A tool answers the server's `structuredContent`, else its text, else its content as
 * `mcpContent`. What the server says of its tools are its own words: give `risk` for a server that
 * you do not trust.
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
  /** The list that is being read, and whether it must be read once more after that. */
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

  /** Follows a new client's server, and reads its list: in this order, so that no change is missed. */
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
      // The tools can be used all the same.
      this.#report(error);
    }
  }

  /** Reads the list. However often that is asked meanwhile, it is read once more. */
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
      const list = await listServerTools(client, signal);
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
    try {
      this.#options.onError?.(error);
    } catch {
      // A log that fails must not change anything.
    }
  }
}

/** How long `refresh` waits for a connection. */
const REFRESH_TIMEOUT_MS = 30_000;
