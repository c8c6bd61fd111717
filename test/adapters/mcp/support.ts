/** The official client, and plain requests, on an endpoint in this process. */

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { ImportMcpServerOptions, McpEndpoint } from "@plue/tools/mcp";
import { importMcpServer } from "../../../src/adapters/mcp/mod.ts";

export const URL_OF_MCP = "http://localhost/mcp";
export const MODERN = "2026-07-28";
const TYPES = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** The `authorize` of endpoints whose callers name themselves. */
export const byWho = (request: Request): { readonly principal: string } => ({
  principal: request.headers.get("x-who") ?? "nobody",
});

/** The `fetch` of a client's transport. */
export function fetchFrom(mcp: Pick<McpEndpoint, "fetch">) {
  return (url: string | URL, init?: RequestInit): Promise<Response> =>
    mcp.fetch(new Request(url, init));
}

/** Imports the endpoint with the namespace `far`. */
export function importFar(
  mcp: Pick<McpEndpoint, "fetch">,
  options: Partial<ImportMcpServerOptions> = {},
): ReturnType<typeof importMcpServer> {
  const http = { fetch: fetchFrom(mcp) };
  return importMcpServer(URL_OF_MCP, { namespace: "far", http, ...options });
}

/** A client that is connected to the endpoint. */
export async function connect(
  mcp: Pick<McpEndpoint, "fetch">,
  mode: "auto" | "legacy" = "auto",
  headers: Record<string, string> = {},
  capabilities: Record<string, unknown> = {},
): Promise<Client> {
  const options = { capabilities, versionNegotiation: { mode } };
  const client = new Client({ name: "test", version: "1.0.0" }, options);
  await client.connect(
    new StreamableHTTPClientTransport(new URL(URL_OF_MCP), {
      fetch: fetchFrom(mcp),
      requestInit: { headers },
    }),
  );
  return client;
}

/** A request of the newest revision. */
export function modernRequest(
  method: string,
  params: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Request {
  const { name } = params;
  return new Request(URL_OF_MCP, {
    method: "POST",
    headers: {
      ...TYPES,
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : {}),
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": MODERN,
          "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
          "io.modelcontextprotocol/clientCapabilities": {},
          ...params["_meta"] as Record<string, unknown> | undefined,
        },
      },
    }),
  });
}

/** A message of the older revisions. */
export function legacyRequest(message: unknown, headers: Record<string, string> = {}): Request {
  return new Request(URL_OF_MCP, {
    method: "POST",
    headers: { ...TYPES, ...headers },
    body: typeof message === "string" ? message : JSON.stringify(message),
  });
}

/** The JSON-RPC message that a response has, as JSON or as the last event of a stream. */
export async function messageIn(response: Response): Promise<{
  // The type of the result is up to the test.
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}> {
  const text = await response.text();
  const last = text.startsWith("{")
    ? text
    : text.split("\n").filter((line) => line.startsWith("data: ")).at(-1)?.slice(6);
  return JSON.parse(last ?? "null");
}

/** Sends a request of the newest revision, and returns the message of its response. */
export async function askModern(
  mcp: McpEndpoint,
  ...request: Parameters<typeof modernRequest>
): ReturnType<typeof messageIn> {
  return await messageIn(await mcp.fetch(modernRequest(...request)));
}

/** Sends a request of the older revisions. */
export function fetchLegacy(
  mcp: McpEndpoint,
  method: string,
  params: object = {},
  headers: Record<string, string> = {},
): Promise<Response> {
  return mcp.fetch(legacyRequest({ jsonrpc: "2.0", id: 1, method, params }, headers));
}

/** Opens a stream of the older revisions. */
export function openStream(
  mcp: McpEndpoint,
  headers: Record<string, string> = {},
): Promise<Response> {
  return mcp.fetch(
    new Request(URL_OF_MCP, { headers: { accept: "text/event-stream", ...headers } }),
  );
}

/** Begins a session of the older revisions. Returns its id and the server's capabilities. */
export async function beginSession(
  mcp: McpEndpoint,
  headers: Record<string, string> = {},
  capabilities: unknown = {},
): Promise<{ readonly session: string; readonly capabilities: unknown }> {
  const clientInfo = { name: "test", version: "1.0.0" };
  const params = { protocolVersion: "2025-11-25", capabilities, clientInfo };
  const message = { jsonrpc: "2.0", id: 0, method: "initialize", params };
  const response = await mcp.fetch(legacyRequest(message, headers));
  const { result } = await messageIn(response);
  return {
    session: response.headers.get("mcp-session-id") ?? "",
    capabilities: result?.["capabilities"],
  };
}

/** A question with a form, for the context of a tool. */
export const NAME = {
  message: "What is your name?",
  schema: {
    type: "object",
    properties: { name: { type: "string", minLength: 2 } },
    required: ["name"],
  },
} as const;

/** An answer to a question. */
export const accept = (content: unknown) => ({ action: "accept", content });
