/** Imports the tools of a running MCP server into a registry, and follows their changes. */

import type {
  Client,
  StreamableHTTPClientTransportOptions,
  Tool as ListedTool,
} from "@modelcontextprotocol/client";
import * as formats from "../../formats/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import {
  callHook,
  canonicalJson,
  checkFlag,
  clip,
  defined,
  fail,
  isObject,
  Mutex,
  noop,
  readFields,
  systemClock,
  type Tool,
  wholeFrom,
} from "../../tool/mod.ts";
import {
  CALLER_CHECKS,
  type CallerConnectionOptions,
  CallerConnections,
} from "./caller_connections.ts";
import {
  callServer,
  type ClientOpener,
  McpConnection,
  type ReconnectOptions,
} from "./connection.ts";
import { type ImportedSkill, listSkills, readSkills, skillNamespace } from "./import_skills.ts";
import { clientOpener, isUrl, type McpServerSource } from "./open_client.ts";
import { MAX_MESSAGE_BYTES, Pace, UnsolicitedMessages } from "./server_bounds.ts";
import type { SkillCatalog } from "./skills.ts";

/** Options for {@linkcode importMcpServer}. */
export interface ImportMcpServerOptions
  extends
    Omit<formats.ImportOptions, "namespace" | "execute" | "pins">,
    Partial<CallerConnectionOptions> {
  /** The namespace of the tools. Names are unique within one server only. */
  readonly namespace: string;
  /** Receives the tools, and follows the server's changes. */
  readonly registry?: Registry;
  /** Headers, `fetch` and authentication, for a URL. */
  readonly http?: StreamableHTTPClientTransportOptions;
  /**
   * Receives the server's skills, in a folder with the name of the namespace. `pins` also hold back
   * changed skills, with ids such as `namespace.skills:refunds`.
   */
  readonly skills?: SkillCatalog;
  /** Holds back tools that have changed since they were approved: `toolPins` of `@plue/tools/pins`. */
  readonly pins?: formats.ImportPins | undefined;
  /** The delays before a lost connection is reopened. A client as source is not reconnected. */
  readonly reconnect?: ReconnectOptions;
  /**
   * The maximum size of one message of the server, in bytes. A whole list of tools or skills may have
   * a quarter of it. Does not apply to a client as source.
   *
   * @default {16_777_216}
   */
  readonly maxMessageBytes?: number;
  /**
   * True if the server may ask the callers of its tools. The server's questions become questions of
   * the tool (`context.ask`), and name the server. Only servers of MCP 2026-07-28 can ask. Without
   * `authorize`, a call with a principal is denied if the server asks for a visit of a URL: the
   * permission would be for all callers.
   *
   * @default {false}
   */
  readonly mayAsk?: boolean;
  /**
   * True to return before the first connection, which is then opened in the background with the delays
   * of `reconnect`, until it succeeds. By default, a failure of the first connection is thrown.
   *
   * @default {false}
   */
  readonly background?: boolean;
  /** Aborts the wait for the first connection and list. */
  readonly signal?: AbortSignal;
  /** Receives errors after the import, such as a lost connection or a list that cannot be read. */
  onError?(error: unknown): void;
  /** Receives `undefined` after each connection, and the reason when it is lost or cannot be opened. */
  onState?(error: unknown): void;
}

/** A running server whose tools are imported. */
export interface ImportedMcpServer extends AsyncDisposable {
  /** The server's current tools, in the server's order, without the tools that are held back. */
  readonly tools: readonly Tool[];
  /** The tools that the option `pins` holds back. Empty without `pins`. */
  readonly held: readonly formats.HeldTool[];
  /** Warnings about the current tools. */
  readonly warnings: readonly formats.ImportWarning[];
  /** Listed tools that could not be imported. */
  readonly rejected: readonly formats.RejectedImport[];
  /**
   * Approves tools that are held back, and stores the approval.
   *
   * @param tools The tools' ids, or entries of `held` or `onHeld`. An entry does not approve changes that
   * the server makes later.
   * @throws {TypeError} If a tool is not held back, or has changed since the entry was made.
   * @throws {Error} If the pins cannot be read or stored.
   */
  approve(...tools: readonly (string | formats.HeldTool)[]): Promise<void>;
  /** Reads the list again. Notifications of the server do the same. */
  refresh(): Promise<void>;
  /** Removes the tools from the registry, and ends the connection and the program. */
  close(): Promise<void>;
}

/**
 * Imports the tools of a running MCP server into a registry. Calls, progress and cancellation go to
 * the server. The registry follows the server's list, and a lost connection is reopened.
 *
 * A tool returns the server's `structuredContent`, else its text. Content with images or files is
 * returned as `ToolResult.blocks`, and `_meta` as metadata. A server may change its tools at any time:
 * set `risk` and `pins` for a server that you do not trust.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { createMcpEndpoint, importMcpServer } from "@plue/tools/mcp";
 *
 * const tools = [{ name: "now", description: "Returns the time.", execute: () => "noon" }];
 * const mcp = createMcpEndpoint(new ToolRegistry({ tools }), { openExecution: true });
 * const registry = new ToolRegistry();
 * const server = await importMcpServer("http://localhost/mcp", {
 *   ...{ namespace: "clock", registry },
 *   http: { fetch: (url, init) => mcp.fetch(new Request(url, init)) },
 * });
 * const result = await new ToolDispatcher(registry).dispatch({ name: "clock:now" });
 * assert.equal(result.ok && result.content, "noon");
 * await server.close();
 * ```
 *
 * @param source A program to start, the URL of a server, or a connected client of the official SDK
 * 2.x, whose handler of `notifications/tools/list_changed` is replaced.
 * @returns The server. Close it when its tools are no longer needed.
 * @throws {TypeError} If an option is invalid, or the registry rejects a tool.
 * @throws {Error} If the server cannot be reached, or does not list its tools. The message names it, and
 * its HTTP status or the exit code of the program.
 * @throws The signal's reason.
 */
export async function importMcpServer(
  source: McpServerSource,
  options: ImportMcpServerOptions,
): Promise<ImportedMcpServer> {
  const server = new McpImport(source, options);
  try {
    await server.connect();
  } catch (error) {
    // Not awaited, because a program may take seconds to end.
    server.close().catch(() => {});
    throw error;
  }
  return server;
}

class McpImport implements ImportedMcpServer {
  readonly #options: ImportMcpServerOptions;
  readonly #importing: Omit<formats.ImportToolsOptions, "execute">;
  readonly #transport: "http" | "stdio";
  readonly #connection: McpConnection;
  readonly #callers: CallerConnections | undefined;
  readonly #sync: RegistrySync;
  readonly #maxBytes: number;
  #imported: formats.PinnedImport | undefined;
  #skills: readonly ImportedSkill[] = [];
  /** The last imported list as JSON, and the registry's revision after the import. */
  #text: string | undefined;
  #revision: number | undefined;
  #listed: ReadonlyMap<string, ListedTool> = new Map();
  /** For reads and approvals. */
  readonly #turns = new Mutex();
  readonly #pace = new Pace();
  #cancelRead: (() => void) | undefined;
  /** The time of the last read that a caller caused. */
  #readAt = -Infinity;
  #cancelFollow: (() => void) | undefined;
  #isClosed = false;

  constructor(source: McpServerSource, options: ImportMcpServerOptions) {
    const { registry, http, reconnect = {}, maxMessageBytes, mayAsk = false, ...rest } = options;
    const { pins: _, signal: _signal, onError: _onError, onState: _onState, ...others } = rest;
    const { skills: _skills, background = false, ...more } = others;
    const { authorize, sharesList, maxConnections, idleMs, ...importing } = more;
    checkFlag(ACTION, background, "background");
    if (typeof importing.namespace !== "string") fail(ACTION, "the option namespace is required");
    const maxBytes = maxMessageBytes === undefined
      ? MAX_MESSAGE_BYTES
      : checkBytes(ACTION, maxMessageBytes, "maxMessageBytes");
    const limits = { maxBytes, mayAsk: checkFlag(ACTION, mayAsk, "mayAsk") };
    // The list may have changed while there was no stream.
    const opener = clientOpener(source, http, limits, () => this.#readLater());
    const onError = (error: unknown): void => this.#report(error);
    const callers = defined({ authorize, sharesList, maxConnections, idleMs });
    readFields(ACTION, callers, CALLER_CHECKS, String);
    if (authorize !== undefined) {
      if (!isUrl(source)) fail(ACTION, "authorize has no effect: the source must be a URL");
      // Together, the connections of callers have the bounds of one.
      const shared = { ...limits, unsolicited: new UnsolicitedMessages() };
      const open = (http: StreamableHTTPClientTransportOptions): ClientOpener =>
        clientOpener(source, http, shared);
      const onUnlisted = (): Promise<void> => this.#readForCaller();
      const listed = (name: string): ListedTool | undefined => this.#listed.get(name);
      const settings = { http: http ?? {}, open, reconnect, onError, onUnlisted, listed };
      this.#callers = new CallerConnections({ ...callers, authorize, ...settings });
    } else if (Object.keys(callers).length > 0) {
      fail(ACTION, "sharesList, maxConnections and idleMs have no effect without authorize");
    }
    this.#options = options;
    this.#maxBytes = maxBytes;
    this.#importing = importing;
    this.#transport = opener.transport;
    this.#sync = new RegistrySync(registry, onError);
    this.#connection = new McpConnection(opener, reconnect, {
      onConnected: (client) => this.#begin(client),
      onError,
      onState: (error) => {
        if (!this.#isClosed) callHook(() => this.#options.onState?.(error), noop);
      },
    });
  }

  get tools(): ImportedMcpServer["tools"] {
    return this.#sync.tools.filter(({ isAvailable }) => isAvailable !== false);
  }

  get held(): ImportedMcpServer["held"] {
    return this.#imported?.held ?? [];
  }

  get warnings(): ImportedMcpServer["warnings"] {
    return this.#imported?.warnings ?? [];
  }

  get rejected(): ImportedMcpServer["rejected"] {
    return this.#imported?.rejected ?? [];
  }

  async connect(): Promise<void> {
    if (this.#options.background === true) this.#connection.connectLater();
    else await this.#connection.connect(this.#options.signal);
  }

  async refresh(isNotified: boolean = false): Promise<void> {
    const signal = AbortSignal.timeout(REFRESH_TIMEOUT_MS);
    await this.#connection.use(signal, (client) => this.#read(client, isNotified));
  }

  /** Reads the list after the delay of the pace. One read covers all requests before it. */
  #readLater(): void {
    if (this.#isClosed) return;
    this.#cancelRead ??= systemClock.setTimeout(() => {
      this.#cancelRead = undefined;
      // Reads with the current client, which may be another one by then.
      this.refresh(true).catch((error) => {
        this.#report(error);
        // A new connection reads the list itself.
        if (this.#connection.isLive()) this.#readLater();
      });
    }, this.#pace.next());
  }

  /** Reads the list, which may be old, for a caller whose own list has other tools. */
  async #readForCaller(): Promise<void> {
    const now = systemClock.now();
    if (now - this.#readAt < CALLERS_READ_MS) return;
    this.#readAt = now;
    await this.refresh(true).catch((error) => this.#report(error));
  }

  approve(...tools: readonly (string | formats.HeldTool)[]): Promise<void> {
    return this.#turns.run(async () => {
      const approved = await (this.#imported?.approve ?? withoutPins)(...tools);
      if (!this.#isClosed) await this.#take(approved);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRead?.();
    this.#cancelFollow?.();
    this.#sync.clear();
    this.#callers?.close();
    const { skills, namespace } = this.#options;
    // Together, because a read may wait for the connection.
    await Promise.all([
      this.#connection.close(),
      this.#turns.run(async () => await skills?.import(namespace)),
    ]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Subscribes before it reads the list, so that no change is missed. */
  async #begin(client: Client): Promise<void> {
    const { tools, resources } = client.getServerCapabilities() ?? {};
    const followsSkills = this.#options.skills !== undefined && resources?.listChanged === true;
    if (tools?.listChanged === true || followsSkills) await this.#follow(client, followsSkills);
    await this.#read(client);
  }

  /** @param isAgain True after the end of a stream: changes may have been missed. */
  async #follow(client: Client, followsSkills: boolean, isAgain: boolean = false): Promise<void> {
    const onChanged = (): void => this.#readLater();
    client.setNotificationHandler("notifications/tools/list_changed", onChanged);
    if (followsSkills) {
      client.setNotificationHandler("notifications/resources/list_changed", onChanged);
    }
    if (client.getProtocolEra() !== "modern") return;
    // Proxies end idle streams, and the running calls of the connection must continue then.
    const followLater = (): void => {
      if (!this.#connection.isLive(client)) return;
      this.#cancelFollow?.();
      this.#cancelFollow = systemClock.setTimeout(() => {
        if (this.#connection.isLive(client)) void this.#follow(client, followsSkills, true);
      }, this.#pace.next());
    };
    try {
      const { closed } = await client.listen({
        toolsListChanged: true,
        ...(followsSkills && { resourcesListChanged: true }),
      });
      void closed.then((by) => by === "local" || followLater());
    } catch (error) {
      // The error is only logged, because the tools work without notifications.
      this.#report(this.#connection.describe(error));
      if (isAgain) followLater();
    }
    // Also detects a lost server.
    if (isAgain) this.#readLater();
  }

  /** @param isNotified True if the server reports a change. Otherwise pins and skills are read again. */
  #read(client: Client, isNotified: boolean = false): Promise<void> {
    return this.#turns.run(async () => {
      // The signal is for the first list only.
      const signal = this.#imported === undefined ? this.#options.signal : undefined;
      const listedTools = await this.#connection.list(client, signal).catch((error: unknown) => {
        throw this.#connection.describe(error);
      });
      if (this.#isClosed) return;
      // The list is compared as JSON first, because importing 5,000 tools takes half a second.
      const { skills } = this.#options;
      const listed = skills === undefined ? [] : await listSkills(client);
      // The SDK returns empty lists of a client that was closed meanwhile.
      if (client.transport === undefined) {
        throw this.#connection.describe(new Error("The connection is closed"));
      }
      const text = JSON.stringify([listedTools, listed]);
      const isSame = text === this.#text && this.#sync.revision === this.#revision;
      // The approvals of other processes, and the files of skills, change without the list.
      const hasMore = this.held.length > 0 || listed.length > 0;
      if (isSame && (isNotified || !hasMore)) return;
      const begin = systemClock.now();
      const { pins, mayAsk = false, namespace } = this.#options;
      const { tools, rejected } = callableTools(listedTools);
      const imported = formats.importTools("mcp", { tools }, {
        ...this.#importing,
        beside: [...this.#sync.others(), ...this.#importing.beside ?? []],
        transport: this.#transport,
        execute: (name, args, context) => {
          const listed = this.#listed.get(name);
          const call = { name, arguments: args, isRepeatable: isRepeatable(listed), mayAsk };
          const own = { ...call, tool: listed };
          return this.#callers === undefined
            ? callServer(this.#connection, { ...mayAsk ? own : call, isShared: true }, context)
            : this.#callers.use(listed, context, (client) => callServer(client, own, context));
        },
      });
      const readAt = systemClock.now();
      this.#skills = await readSkills(client, listed, {
        namespace,
        maxBytes: this.#maxBytes,
        onError: (error) => this.#report(error),
      });
      const standIns = this.#skills.map(({ tool }) => tool);
      const offered = {
        ...imported,
        tools: [...imported.tools, ...standIns],
        rejected: [...imported.rejected, ...rejected],
      };
      const checked = await pins?.check(offered, namespace) ??
        { ...offered, held: [], approve: withoutPins };
      const waitedMs = systemClock.now() - readAt;
      if (this.#isClosed) return;
      this.#text = text;
      this.#listed = new Map(listedTools.map((tool) => [tool.name, withoutOutput(tool)]));
      await this.#take(checked);
      this.#pace.took(systemClock.now() - begin - waitedMs);
    });
  }

  async #take(imported: formats.PinnedImport): Promise<void> {
    const { namespace, skills } = this.#options;
    const tools = [...imported.tools, ...imported.held.map(({ tool }) => tool)];
    this.#sync.update(tools.filter((tool) => tool.namespace !== skillNamespace(namespace)));
    this.#imported = imported;
    this.#revision = this.#sync.revision;
    const approved = new Set(imported.tools.map(({ id }) => id));
    const files = this.#skills.flatMap(({ tool, files }) => approved.has(tool.id) ? [files] : []);
    await skills?.import(namespace, Object.assign({}, ...files));
  }

  #report(error: unknown): void {
    if (this.#isClosed) return;
    callHook(() => this.#options.onError?.(error), noop);
  }
}

const ACTION = "import an MCP server";
const checkBytes = wholeFrom(1);

async function withoutPins(): Promise<never> {
  return await fail("approve tools", "the import has no pins");
}

const REFRESH_TIMEOUT_MS = 30_000;
/** The shortest interval between reads that callers cause, in milliseconds. */
const CALLERS_READ_MS = 10_000;

function isRepeatable(tool: ListedTool | undefined): boolean {
  return tool?.annotations?.readOnlyHint === true || tool?.annotations?.idempotentHint === true;
}

/**
 * Removes the references to pages (MCP Apps): clients cannot read pages through plue. Rejects tools
 * for pages only, which no model should see, and tools that must run as tasks.
 */
function callableTools(listed: readonly ListedTool[]) {
  const tools: ListedTool[] = [];
  const rejected: formats.RejectedImport[] = [];
  for (const tool of listed) {
    const { ui, "ui/resourceUri": _uri, ..._meta } = tool._meta ?? {};
    const visibility = isObject(ui) ? ui["visibility"] : undefined;
    const isForPages = Array.isArray(visibility) && !visibility.includes("model");
    if (!isForPages && tool.execution?.taskSupport !== "required") {
      tools.push(tool._meta === undefined ? tool : { ...tool, _meta });
      continue;
    }
    const [rule, why] = isForPages
      ? ["_meta/ui/visibility", "only pages of MCP Apps may call it"]
      : [
        "execution/taskSupport",
        "it must run as a task of its server, which plue does not support",
      ];
    const message = `Cannot import "${clip(tool.name)}": ${why}`;
    rejected.push({ name: tool.name, path: "", rule, message });
  }
  return { tools, rejected };
}

/** Removes the output schema, by which the SDK would reject questions. The dispatcher checks results. */
function withoutOutput({ outputSchema: _outputSchema, ...tool }: ListedTool): ListedTool {
  return tool;
}

class RegistrySync {
  readonly #registry: Registry | undefined;
  readonly #onError: (error: unknown) => void;
  #tools: readonly Tool[] | undefined;

  constructor(registry: Registry | undefined, onError: (error: unknown) => void) {
    this.#registry = registry;
    this.#onError = onError;
  }

  get tools(): readonly Tool[] {
    return this.#tools ?? [];
  }

  get revision(): number | undefined {
    return this.#registry?.revision;
  }

  /** Applies a new list. Unchanged tools stay the same objects. */
  update(listed: readonly Tool[]): void {
    const before = new Map(this.tools.map((tool) => [tool.id, tool]));
    const next = listed.map((tool) => {
      const old = before.get(tool.id);
      return old !== undefined && textOf(old) === textOf(tool) ? old : tool;
    });
    if (this.#tools === undefined) this.#registry?.registerTools(next);
    else this.#apply(before, next);
    this.#tools = Object.freeze(next);
  }

  others(): readonly Tool[] {
    const own = new Set(this.tools);
    return (this.#registry?.tools ?? []).filter((tool) => !own.has(tool));
  }

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

function textOf(tool: Tool): string {
  return canonicalJson(JSON.parse(JSON.stringify(tool)));
}
