/**
 * Opens a connection to an MCP server with the official SDK, which is loaded when it is needed.
 *
 * @module
 */

import type {
  Client,
  JSONRPCResponse,
  JsonSchemaValidator,
  StreamableHTTPClientTransportOptions,
} from "@modelcontextprotocol/client";
import type { McpCommand, McpServerSource } from "./import_options.ts";

/** How a server is reached, and how a connection to it is opened. */
export interface ClientOpener {
  readonly transport: "http" | "stdio";
  /** Whether the connection is ours to end and to make anew. */
  readonly isOwn: boolean;
  open(signal: AbortSignal): Promise<Client>;
}

const INFO = { name: "plue", version: "0.1.0" };

/** The client's default gives up early; the one that calls through a dispatcher has limits of its own. */
const CONNECT_TIMEOUT_MS = 30_000;

/**
 * Says how the connections of an import are opened.
 *
 * @throws {TypeError} If the source is none.
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
   * The SDK handles progress a turn after it was read, and an answer at once: it would forget whom
   * the progress is for that it read together with the answer.
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
 * Loads what starts programs. Bundlers must not see the specifier: they would put Node's own modules
 * into a bundle for Workers, which never gets here.
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
