/** One source of `plue.json`: its tools, its state, and its return after a failure. */

import { basename, resolve } from "node:path";
import process from "node:process";
import { type ImportedMcpServer, importMcpServer } from "../../adapters/mcp/mod.ts";
import { ToolRegistry } from "../../adapters/typebox/mod.ts";
import { viewOf } from "../../finding/mod.ts";
import type { HeldTool, ImportPins, PinnedImport } from "../../formats/mod.ts";
import type { SourceStatus } from "../../explorer/page/api.ts";
import type { Registry } from "../../registry/mod.ts";
import {
  abortable,
  defined,
  describeThrown,
  fail,
  makeTool,
  noop,
  once,
  systemClock,
  TIME_OVER,
  type Tool,
  type ToolDefinition,
  within,
} from "../../tool/mod.ts";
import { type DocumentOptions, END_MS, type LoadedTools, loadTools } from "../sources/mod.ts";
import type { CommandIo } from "../terminal.ts";
import { fullName, type NamedSource, type SourceSettings } from "./file.ts";
import { namesOf, type Problem, unknownNames } from "./names.ts";

export interface SourceContext {
  readonly io: CommandIo;
  /** Aborts at the end of plue. */
  readonly signal: AbortSignal;
  readonly folder: string;
  /** The tools of the other sources, which a name must not imitate. */
  readonly beside: Iterable<Tool>;
  readonly pins: ImportPins | undefined;
  /** The time that the first attempt to connect delays the other sources, in milliseconds. */
  readonly firstAttemptMs: number;
  log(text: string, isReady: boolean): void;
  /** Returns the tools of the first load of a module. They are disposed of when plue ends. */
  keep(key: string, loaded: LoadedTools): LoadedTools;
  onChange(source: Source): void;
}

/** The delays before a document or a service at a URL is read again; the last one for large documents. */
const [RETRY_MS, MAX_RETRY_MS, LONGEST_RETRY_MS] = [5_000, 30_000, 300_000] as const;
/** The interval between two reads of a remote server's list. */
const LIST_AGAIN_MS = 300_000;
/** The sources that may come back after a failure. A wrong file, or a module, must be mended first. */
const REMOTE = /^((openapi|tools|plue):)?https?:/i;
/** The maximum number of stored names, with which the names in the filters are compared. */
const MAX_NAMES = 10_000;

/** A source of tools. It opens immediately, and again after a failure until it is closed. */
export class Source implements AsyncDisposable {
  readonly named: NamedSource;
  /** Resolves after the first attempt. Rejects if no other attempt can succeed. */
  readonly opened: Promise<void>;
  readonly #context: SourceContext;
  readonly #views = new WeakMap<Tool, ReturnType<typeof viewsOf>>();
  /** The names of all tools of the source, if it has filters. */
  readonly #names = new Set<string>();
  #registry: Registry = new ToolRegistry();
  #tools: ReadonlyMap<string, Tool> | undefined;
  #imported: ImportedMcpServer | undefined;
  #loaded: LoadedTools | undefined;
  #pinned: PinnedImport | undefined;
  #reason: string | undefined = "it is not connected yet";
  #since = systemClock.timestamp();
  #hasFailed = false;
  #isClosed = false;
  #closed: Promise<void> | undefined;
  #calls = 0;
  #onIdle: (() => void) | undefined;
  #retryMs: number = RETRY_MS;
  /** Ends the next attempt, or the subscription to a loaded registry. */
  #stop = (): void => {};
  /** The current attempt to connect, or to load. */
  #attempt: Promise<void>;
  /** Ends an attempt to load. */
  readonly #end = new AbortController();

  constructor(named: NamedSource, context: SourceContext) {
    this.named = named;
    this.#context = context;
    const { from } = named.settings;
    this.#attempt = from === undefined ? this.#connect() : this.#load(from);
    this.opened = REMOTE.test(from ?? "") ? this.#first(this.#attempt) : this.#attempt;
    this.opened.catch(noop);
  }

  /** The registry of the original tools, which runs them. */
  get registry(): Registry {
    return this.#registry;
  }

  get module(): Pick<LoadedTools, "dispatch" | "callbacks"> | undefined {
    return this.#loaded;
  }

  /** The tools to serve: views instead of their tools, and placeholders while the source is down. */
  get tools(): ReadonlyMap<string, Tool> {
    return this.#tools ??= new Map(this.#serve().map((tool) => [tool.id, tool]));
  }

  #serve(): readonly Tool[] {
    const tools = this.#registry.tools.flatMap((tool) =>
      once(this.#views, tool, () => viewsOf(tool, this.named.settings)).tools
    );
    if (this.#reason === undefined) return tools;
    // Without the reason, which may have an internal address: callers read this.
    const unavailableReason = `the source "${this.named.name}" is unavailable`;
    return tools.map((tool) =>
      // A tool that the pins hold back stays out of all toolsets.
      tool.isAvailable === false
        ? tool
        : makeTool({ ...tool, isAvailable: () => false, unavailableReason } as ToolDefinition)
    );
  }

  status(): SourceStatus {
    const { name, tenant } = this.named;
    return {
      name,
      ...defined({ tenant, reason: this.#reason }),
      ...{ from: describeSource(this.named), since: this.#since },
      state: this.isReady ? "ready" : "unavailable",
      tools: this.isReady
        ? [...this.tools.values()].filter(({ isAvailable }) => isAvailable !== false).length
        : 0,
      held: this.#held.map(({ tool: _, ...entry }) => entry),
      problems: this.problems.map(({ message }) => message),
    };
  }

  get isReady(): boolean {
    return this.#reason === undefined;
  }

  /** The warnings about the source and, once it has answered, the names that no tool has. */
  get problems(): readonly Problem[] {
    const { warnings = [], rejected = [] } = this.#offered ?? {};
    const { tools } = this.#registry;
    const messages = [
      ...[...rejected, ...warnings].map(({ message }) => message),
      ...tools.flatMap((tool) => this.#views.get(tool)?.problems ?? []),
    ];
    return [
      ...messages.map((message) => ({ message })),
      ...this.isReady ? unknownNames(this.named, tools, this.#names) : [],
    ];
  }

  /** @throws {TypeError} If a tool is not held back, or has changed since its digest was seen. */
  async approve(tools: readonly Pick<HeldTool, "id" | "digest">[]): Promise<void> {
    const entries = tools.map(({ id, digest }) => {
      const entry = this.#held.find((one) => one.id === id && one.digest === digest);
      return entry ?? fail(`approve "${id}"`, "it is not held back, or has changed; list it again");
    });
    await this.#imported?.approve(...entries);
    this.#pinned = await this.#pinned?.approve(...entries);
    for (const tool of this.#pinned?.tools ?? []) {
      if (this.#registry.getTool(tool.id) !== tool) this.#registry.updateTool(tool);
    }
    this.#changed();
  }

  /** Reads the list of a remote server again: many of them cannot notify their clients. */
  refresh(): void {
    if (this.named.settings.url === undefined) return;
    this.#stop();
    this.#stop = systemClock.setTimeout(() => this.refresh(), LIST_AGAIN_MS);
    void this.#imported?.refresh().catch(noop);
  }

  begin(): void {
    this.#calls++;
  }

  end(): void {
    if (--this.#calls === 0) this.#onIdle?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#closed ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    if (this.#loaded === undefined) this.#end.abort();
    if (this.#imported === undefined) await this.#attempt.catch(noop);
    this.#stop();
    const isModule = this.#loaded?.module !== undefined;
    if (isModule && !this.#context.signal.aborted) return;
    const idle = new Promise<void>((resolve) => this.#onIdle = resolve);
    if (this.#calls > 0) {
      // Calls of tasks are not aborted at the end of plue.
      const atEnd = () => within(systemClock, END_MS, idle);
      await abortable(idle, this.#context.signal).catch(atEnd);
    }
    const loaded = isModule ? undefined : this.#loaded;
    await Promise.allSettled([this.#imported?.close(), loaded?.[Symbol.asyncDispose]()]);
  }

  get #offered() {
    return this.#imported ?? this.#pinned ?? this.#loaded?.imports[0];
  }

  get #held(): readonly HeldTool[] {
    return (this.#imported ?? this.#pinned)?.held ?? [];
  }

  /** Waits for the first attempt. A server that does not answer must not stop the other sources. */
  async #first(attempt: Promise<void>): Promise<void> {
    const { firstAttemptMs } = this.#context;
    if (await within(systemClock, firstAttemptMs, attempt) !== TIME_OVER) return;
    this.#setReason(`it has not answered within ${firstAttemptMs / 1_000} s`);
    attempt.catch(this.#fail);
  }

  #fail = (error: unknown): void => this.#setReason(describeThrown(error, 1_000));

  async #load(from: string): Promise<void> {
    const { headers, baseUrl } = this.named.settings;
    const signal = AbortSignal.any([this.#context.io.signal, this.#end.signal]);
    const io = { ...this.#context.io, signal };
    const before = process.cpuUsage();
    try {
      const loaded = await loadTools([this.named.from ?? from], io, {
        ...{ headers, baseUrl, importing: this.#importing(), pins: this.#context.pins },
      });
      // The next source of this module gets the same tools from the module cache: do not dispose of them.
      const key = `${fullName(this.named)}=${loaded.module}`;
      this.#loaded = loaded.module === undefined ? loaded : this.#context.keep(key, loaded);
    } catch (error) {
      if (!REMOTE.test(from) || this.#isClosed) throw error;
      this.#fail(error);
      const again = (): void => {
        this.#attempt = this.#load(from);
        this.#attempt.catch(this.#fail);
      };
      // A document that cannot be used must not take more than a tenth of the time of the other sources.
      const busyMs = process.cpuUsage(before).user / 1_000;
      const delayMs = Math.min(Math.max(this.#retryMs, 10 * busyMs), LONGEST_RETRY_MS);
      this.#stop = systemClock.setTimeout(again, delayMs);
      this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
      return;
    }
    this.#pinned = this.#loaded.pinned[0];
    const unused = (["namespace", "labels"] as const)
      .find((field) => this.named.settings[field] !== undefined);
    if (this.#offered === undefined && unused !== undefined) {
      fail(`use "${unused}" for "${from}"`, "it applies to servers and documents only; remove it");
    }
    if (Object.keys(this.#loaded.selection).length > 0) {
      fail(`use "${from}"`, 'it exports "selection"; write it into the file instead');
    }
    this.#registry = this.#loaded.registry;
    this.#stop = this.#registry.subscribe(() => this.#changed());
    this.#setReason(undefined);
  }

  async #connect(): Promise<void> {
    const { command = "", args, env, cwd, url, headers, namespace = this.named.name } =
      this.named.settings;
    const folder = resolve(this.#context.folder, cwd ?? ".");
    const program = { command, cwd: folder, ...defined({ args, env }) };
    let attempt = (): void => {};
    const attempted = new Promise<void>((resolve) => attempt = resolve);
    this.#registry.subscribe(() => this.#changed());
    this.#imported = await importMcpServer(url ?? program, {
      ...this.#importing(),
      ...{ pins: this.#context.pins, namespace, registry: this.#registry, background: true },
      ...(headers && { http: { requestInit: { headers } } }),
      onState: (error) => {
        this.#setReason(error === undefined ? undefined : describeThrown(error, 1_000));
        attempt();
      },
    });
    if (url !== undefined) this.#stop = systemClock.setTimeout(() => this.refresh(), LIST_AGAIN_MS);
    await this.#first(abortable(attempted, this.#context.signal).catch(noop));
  }

  #importing(): DocumentOptions {
    const { include, exclude, risk, roles, scopes, views = [] } = this.named.settings;
    const { beside } = this.#context;
    const filter = (name: string): boolean => {
      if (this.#names.size < MAX_NAMES) this.#names.add(name);
      return isServed(this.named.settings, name) || views.some(({ tool }) => tool === name);
    };
    const filters = (include ?? exclude) && { include: filter };
    return { ...filters, ...defined({ risk, roles, scopes }), beside };
  }

  #setReason(reason: string | undefined): void {
    if (reason === this.#reason || this.#isClosed) return;
    this.#reason = reason;
    this.#since = systemClock.timestamp();
    const text = reason === undefined ? "ready" : `unavailable: ${reason}`;
    const isNews = this.#hasFailed || reason !== undefined;
    if (isNews) this.#context.log(`source "${fullName(this.named)}" is ${text}`, this.isReady);
    this.#hasFailed = reason !== undefined;
    this.#changed();
  }

  #changed(): void {
    this.#tools = undefined;
    if (!this.#isClosed) this.#context.onChange(this);
  }
}

/** Returns true if the filters do not omit a tool. Its views are served in any case. */
function isServed({ include, exclude }: SourceSettings, name: string, here = name): boolean {
  return include?.includes(name) !== false && ![name, here].some((one) => exclude?.includes(one));
}

/** Returns a tool and its views; without the tool, if a view replaces it. */
function viewsOf(tool: Tool, settings: SourceSettings) {
  const { views = [] } = settings;
  const names = namesOf(tool);
  const isReplaced = views.some((view) =>
    view.name === undefined ? names.includes(view.tool) : view.name === tool.name
  );
  const tools = isReplaced || !isServed(settings, ...names) ? [] : [tool];
  const problems: string[] = [];
  for (const { tool: name, ...options } of views) {
    try {
      if (names.includes(name)) tools.push(viewOf(tool, options));
    } catch (error) {
      problems.push(describeThrown(error, 1_000));
    }
  }
  return { tools, problems };
}

/** Describes a source without its arguments, path and query, which may contain secrets. */
function describeSource({ settings: { command = "", url, from } }: NamedSource): string {
  if (from !== undefined) return URL.canParse(from) ? new URL(from).host : basename(from);
  return url === undefined
    ? `MCP over stdio: ${basename(command)}`
    : `MCP over HTTP: ${new URL(url).host}`;
}
