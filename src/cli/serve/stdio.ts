/**
 * `plue serve --stdio`: an MCP server on standard input and output. Each message becomes a request
 * to the endpoint of HTTP clients, so that both respond in the same way.
 */

import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { McpEndpoint } from "../../adapters/mcp/mod.ts";
import { exportTools } from "../../formats/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import { cleanText, describeThrown, isObject, type JsonSchema } from "../../tool/mod.ts";
import { eventsIn } from "../sources/service.ts";
import { type CommandIo, EXIT } from "../terminal.ts";

/** Not a real address: the endpoint is called as a function. */
const ADDRESS = "http://localhost/mcp";

/** The member in which a request of 2026-07-28 names its revision. */
const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const INTERNAL_ERROR = -32_603;

/**
 * Serves until standard input ends, or Ctrl-C.
 *
 * @param served Returns the tools, for the schemas of their arguments.
 */
export async function serveStdio(
  endpoint: Endpoint,
  served: () => Toolset,
  io: CommandIo,
): Promise<number> {
  if (io.signal.aborted) return EXIT.ok;
  const schemaOf = (name: string): JsonSchema | undefined => {
    const toolset = served();
    return toolset.get(exportTools(toolset, "mcp").names.idOf(name) ?? "")?.parameters;
  };
  const connection = new Connection(endpoint, schemaOf, io);
  const lines = createInterface({ input: io.stdin, crlfDelay: Infinity });
  const close = (): void => lines.close();
  io.signal.addEventListener("abort", close, { once: true });
  const running = new Set<Promise<void>>();
  for await (const line of lines) {
    if (line.trim() === "") continue;
    const work = connection.take(line);
    running.add(work);
    void work.finally(() => running.delete(work));
    // Waits, because later messages need the session that this message begins.
    if (connection.isBeginning) await work;
  }
  // Pending requests still get responses. Streams of changes are closed.
  connection.abort(io.signal.aborted);
  await Promise.all(running);
  return EXIT.ok;
}

type Endpoint = Pick<McpEndpoint, "fetch">;
type SchemaOf = (name: string) => JsonSchema | undefined;

class Connection {
  readonly #endpoint: Endpoint;
  readonly #schemaOf: SchemaOf;
  readonly #io: Pick<CommandIo, "stdout" | "stderr">;
  readonly #running = new Map<unknown, AbortController>();
  readonly #streams = new Set<AbortController>();
  #session: Readonly<Record<string, string>> = {};
  isBeginning = false;

  constructor(endpoint: Endpoint, schemaOf: SchemaOf, io: Pick<CommandIo, "stdout" | "stderr">) {
    this.#endpoint = endpoint;
    this.#schemaOf = schemaOf;
    this.#io = io;
  }

  /** Handles one line. Never rejects. */
  async take(line: string): Promise<void> {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return await this.#fail(null, PARSE_ERROR, "Cannot read the line: it is not valid JSON");
    }
    const { id = null, method, params: given } = isObject(message) ? message : {};
    const params = isObject(given) ? given : {};
    const version = versionIn(params);
    if (version !== undefined && !(isHeader(version) && isHeader(String(method)))) {
      const wanted = "a method and a revision of printable ASCII, as over HTTP";
      return await this.#fail(id, INVALID_REQUEST, `Invalid request: it must have ${wanted}`);
    }
    if (method === "notifications/cancelled") this.#running.get(params["requestId"])?.abort();
    this.isBeginning = method === "initialize";
    const controller = new AbortController();
    if (id !== null) this.#running.set(id, controller);
    if (method === "subscriptions/listen") this.#streams.add(controller);
    try {
      const response = await this.#post(method, params, line, controller.signal);
      const session = response.headers.get("mcp-session-id");
      if (this.isBeginning && session !== null) this.#session = { "mcp-session-id": session };
      await this.#answer(response, id, controller.signal);
      if (method === "notifications/initialized") void this.#follow();
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#io.stderr.write(`${cleanText(describeThrown(error), 1_000)}\n`);
      await this.#fail(id, INTERNAL_ERROR, "Internal error");
    } finally {
      this.isBeginning = false;
      if (this.#running.get(id) === controller) this.#running.delete(id);
      this.#streams.delete(controller);
    }
  }

  abort(isAll: boolean): void {
    const controllers = [...this.#streams, ...isAll ? this.#running.values() : []];
    for (const controller of controllers) controller.abort();
  }

  async #post(
    method: unknown,
    params: Readonly<Record<string, unknown>>,
    body: string,
    signal: AbortSignal,
  ): Promise<Response> {
    const { name, uri, taskId, arguments: args } = params;
    const version = versionIn(params);
    const target = name ?? uri ?? taskId;
    const headers = version !== undefined
      ? {
        "mcp-protocol-version": version,
        "mcp-method": String(method),
        ...(typeof target === "string" ? { "mcp-name": headerOf(target) } : {}),
        ...(method === "tools/call" ? argumentHeaders(this.#schemaOf(String(name)), args) : {}),
      }
      : this.#session;
    return await this.#fetch({ method: "POST", body, signal }, {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    });
  }

  async #fetch(request: RequestInit, more: Readonly<Record<string, string>>): Promise<Response> {
    const headers = { host: "localhost", ...more };
    return await this.#endpoint.fetch(new Request(ADDRESS, { ...request, headers }));
  }

  async #answer(response: Response, id: unknown, signal: AbortSignal): Promise<void> {
    const type = response.headers.get("content-type") ?? "";
    if (type.startsWith("text/event-stream") && response.body !== null) {
      return await this.#pump(response.body, signal);
    }
    const body: unknown = type.includes("json") ? await response.json() : await response.text();
    // A client does not expect a response to a cancelled request, or to its own response.
    if (signal.aborted || response.status === 202) return;
    const messages = Array.isArray(body) ? body : [body];
    if (messages.every((one) => isObject(one) && one["jsonrpc"] === "2.0")) {
      for (const one of messages) await this.#write(one);
    } else if (id !== null) {
      const { detail = `The endpoint answered ${response.status}` } = body as { detail?: string };
      await this.#fail(id, INTERNAL_ERROR, detail);
    }
  }

  async #pump(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
    for await (const { data } of eventsIn(body, signal)) {
      if (signal.aborted) return;
      if (data !== "") await this.#write(JSON.parse(data));
    }
  }

  /** Sends the changes of the list to an older client, from the endpoint's `GET` stream. */
  async #follow(): Promise<void> {
    const controller = new AbortController();
    this.#streams.add(controller);
    const { signal } = controller;
    try {
      const headers = { accept: "text/event-stream", ...this.#session };
      const response = await this.#fetch({ signal }, headers);
      if (response.ok && response.body !== null) await this.#pump(response.body, signal);
    } catch {
      // Errors are ignored: the tools work without notifications.
    } finally {
      this.#streams.delete(controller);
    }
  }

  async #fail(id: unknown, code: number, message: string): Promise<void> {
    await this.#write({ jsonrpc: "2.0", id, error: { code, message } });
  }

  async #write(message: unknown): Promise<void> {
    const { result } = message as { readonly result?: { readonly protocolVersion?: unknown } };
    const version = result?.protocolVersion;
    if (this.isBeginning && typeof version === "string") {
      this.#session = { ...this.#session, "mcp-protocol-version": version };
    }
    const { stdout } = this.#io;
    if (!stdout.write(`${JSON.stringify(message)}\n`)) await once(stdout, "drain");
  }
}

/** The headers for the arguments that a schema marks with `x-mcp-header`. */
function argumentHeaders(schema: unknown, args: unknown): Record<string, string> {
  if (!isObject(schema) || !isObject(schema["properties"]) || !isObject(args)) return {};
  const headers: Record<string, string> = {};
  for (const [name, property] of Object.entries(schema["properties"])) {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    const header = isObject(property) ? property["x-mcp-header"] : undefined;
    if (typeof header === "string" && ["string", "number", "boolean"].includes(typeof value)) {
      headers[`mcp-param-${header}`] = headerOf(String(value));
    } else Object.assign(headers, argumentHeaders(property, value));
  }
  return headers;
}

function versionIn({ _meta: meta }: Readonly<Record<string, unknown>>): string | undefined {
  const version = isObject(meta) ? meta[VERSION_KEY] : undefined;
  return typeof version === "string" ? version : undefined;
}

function isHeader(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text);
}

/** Returns a value for a header: the protocol requires Base64 outside of ASCII. */
function headerOf(name: string): string {
  if (isHeader(name) && !name.startsWith("=?")) return name;
  return `=?base64?${Buffer.from(name).toString("base64")}?=`;
}
