/**
 * The words of an import of a running MCP server.
 *
 * @module
 */

import type { Client, StreamableHTTPClientTransportOptions } from "@modelcontextprotocol/client";
import type { ImportWarning, McpImportOptions, RejectedImport } from "../../formats/mod.ts";
import type { ToolRegistry } from "../../registry/mod.ts";
import type { Tool } from "../../tool/mod.ts";

/** A server that is a program: it is started, and spoken to over its input and output. */
export interface McpCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Beside the few variables that every program is given. */
  readonly env?: { readonly [name: string]: string };
  /** The folder that it runs in; by default the current one. */
  readonly cwd?: string;
  /**
   * What becomes of what it prints for people.
   *
   * @default {"inherit"}
   */
  readonly stderr?: "inherit" | "ignore";
}

/** Where a server is: a program, a URL, or a client of the official SDK that is connected. */
export type McpServerSource = McpCommand | URL | string | Client;

/** How a lost connection is made anew: at once, then after longer and longer waits. */
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

/** Options for {@linkcode importMcpServer}. */
export interface ImportMcpServerOptions
  extends Omit<McpImportOptions, "namespace" | "execute" | "transport"> {
  /** The namespace of the tools. Names are unique within one server only. */
  readonly namespace: string;
  /** Takes the tools in, and is kept up to date as the server changes them. */
  readonly registry?: ToolRegistry;
  /** For a URL: headers, `fetch`, authentication. */
  readonly http?: StreamableHTTPClientTransportOptions;
  /** How a lost connection is made anew. A client that is handed in is its owner's to reconnect. */
  readonly reconnect?: ReconnectOptions;
  /** Gives up waiting for the first connection and list. */
  readonly signal?: AbortSignal;
  /** Is told what goes wrong later: a lost connection, a list that cannot be read. */
  onError?(error: unknown): void;
}

/** A running server whose tools are imported. */
export interface ImportedMcpServer extends AsyncDisposable {
  /** The server's tools of the moment, in its order. */
  readonly tools: readonly Tool[];
  /** What to know about them. */
  readonly warnings: readonly ImportWarning[];
  /** What did not become a tool. */
  readonly rejected: readonly RejectedImport[];
  /** Reads the list again. The server's own notifications do so by themselves. */
  refresh(): Promise<void>;
  /** Takes the tools out of the registry and ends the connection, and a program with it. */
  close(): Promise<void>;
}
