/** The services of a `plue.json`: one for each tenant, and their replacement by a new file. */

import { resolve } from "node:path";
import { Hono } from "hono/tiny";
import { memoryCallStore } from "../../adapters/calls/mod.ts";
import { type Authorize, MemoryRateLimitStore } from "../../adapters/hono/mod.ts";
import { problemResponse } from "../../adapters/http/mod.ts";
import type { Journal } from "../../adapters/journal/mod.ts";
import type { SkillCatalog } from "../../adapters/mcp/mod.ts";
import { toolPins } from "../../adapters/pins/mod.ts";
import { readRules, rules, type RulesOptions } from "../../adapters/rules/mod.ts";
import type { ToolDispatcher, ToolDispatcherOptions } from "../../execute/mod.ts";
import type { SourceStatus } from "../../explorer/page/api.ts";
import type { ImportPins } from "../../formats/mod.ts";
import type { Selection, Toolset } from "../../select/mod.ts";
import {
  defined,
  describeThrown,
  fail,
  noop,
  once,
  type Tool,
  type ToolLabels,
  toolsBehind,
} from "../../tool/mod.ts";
import { createService, type Service, tokenCaller } from "../serve/service.ts";
import type { ServeFlags, ServeSettings } from "../serve/settings.ts";
import { type ServeState, type ServiceState, stateIn, tenantStore } from "../serve/state.ts";
import type { Terminal } from "../terminal.ts";
import { authorizeCallers, forTenant } from "./callers.ts";
import type { NamedSource, PlueFile } from "./file.ts";
import { type UnknownName, unknownTools } from "./names.ts";
import { GatewayRegistry } from "./registry.ts";
import { type Approval, serveSources, serveTenantMetrics } from "./operators.ts";
import { Source } from "./source.ts";

/** The parts of a gateway that a new file cannot change. */
export interface GatewayHost {
  readonly terminal: Terminal;
  /** The selection of the flags, which narrows the selection of the file. */
  readonly selection: Selection;
  readonly flags: Pick<ServeFlags, "bridge" | "code">;
  readonly state: ServeState;
  readonly records: Journal | undefined;
  readonly skills: SkillCatalog | undefined;
  readonly log: (error: unknown) => void;
}

/** The fields of a file that apply at the start only. */
const FIXED = ["host", "port", "store", "journal"] as const;

/** The name of the service for tenants that do not exist, which looks like that of another tenant. */
const NOBODY = "";

/** A tenant, or the part of the file without a tenant: its tools and its state. */
interface Scope {
  readonly tenant: string | undefined;
  readonly registry: GatewayRegistry;
  readonly state: ServiceState;
  readonly stop: AbortController;
  isRecovering: boolean;
}

/** The service of a scope, with the rights of the current file. */
interface ScopeService extends Service {
  readonly selection: Selection;
  readonly mounted: Hono;
}

type Services = ReadonlyMap<string | undefined, ScopeService>;

export class Gateway implements AsyncDisposable {
  readonly #host: GatewayHost;
  readonly #scopes = new Map<string | undefined, Scope>();
  readonly #rates = new MemoryRateLimitStore();
  /** The pins by file. Two objects for one file would overwrite each other's approvals. */
  readonly #pins = new Map<string, ImportPins>();
  #services: Services = new Map();
  #file: PlueFile | undefined;
  #sources: ReadonlyMap<string, Source> = new Map();
  /** The sources of the file, and the sources that are being opened for a next file, or closed. */
  readonly #unclosed = new Set<Source>();
  /** Ends the streams of changes of replaced services. */
  #following = new AbortController();
  /** The sources, and the file, whose problems are printed. */
  readonly #reported = new WeakSet<object>();
  hasProblems = false;

  constructor(host: GatewayHost) {
    this.#host = host;
  }

  get service(): ScopeService {
    return this.#serviceOf(undefined);
  }

  #serviceOf(tenant: string | undefined): ScopeService {
    return this.#services.get(tenant) as ScopeService;
  }

  /** The tools that a caller of a tenant can have. */
  toolset(tenant?: string): Toolset {
    const { shown, selection } = this.#serviceOf(tenant);
    return shown((this.#scopes.get(tenant) as Scope).registry.select(selection));
  }

  get tenants(): readonly string[] {
    return [...this.#file?.tenants.keys() ?? []];
  }

  /** The states of the sources that a tenant uses; by default, of all sources. */
  status(tenant?: string): readonly SourceStatus[] {
    const file = this.#file as PlueFile;
    const keys = tenant === undefined
      ? [...this.#sources.keys()]
      : sourcesOf(file, tenant).map((one) => sourceKey(file, one));
    return keys.flatMap((key) => this.#sources.get(key)?.status() ?? []);
  }

  /** Prints once the problems of each source that has answered, and then those of the rules. */
  #report(): void {
    const file = this.#file as PlueFile;
    const { terminal } = this.#host;
    const warn = (text: string): void => {
      this.hasProblems = true;
      terminal.warn(text);
    };
    const print = (names: readonly UnknownName[], start = ""): void =>
      names.forEach(({ pointer, message }) =>
        warn(`${file.json.place(start + pointer)}: ${message}`)
      );
    const isNew = (part: object): boolean =>
      !this.#reported.has(part) && this.#reported.add(part).has(part);
    const all = [file.sources, ...file.tenants.values()].flat()
      .map((named) => [this.#sources.get(sourceKey(file, named)) as Source, named] as const);
    const ready = all.filter(([{ isReady }]) => isReady);
    for (const [source, { name, pointer }] of ready) {
      if (!isNew(source)) continue;
      for (const problem of source.problems) warn(`source "${name}": ${problem}`);
      print(source.unknownNames(), pointer);
    }
    if (ready.length < all.length || !isNew(file)) return;
    const tools = [...this.#scopes].flatMap(([tenant, { registry }]) =>
      [...registry.tools, ...this.toolset(tenant).available()].flatMap(toolsBehind)
    );
    print(unknownTools(file.settings.rules ?? [], tools));
  }

  /** @throws {TypeError} If the file has no such source, or a tool has changed. */
  async #approve({ source: name, tenant, tools }: Approval, principal: string): Promise<void> {
    const source = [...this.#sources.values()]
      .find((one) => one.name === name && one.tenant === tenant) ??
      fail(`approve tools of "${name}"`, "the file has no such source");
    await source.approve(tools);
    const ids = tools.map(({ id }) => `"${id}"`).join(", ");
    this.#host.terminal.note(`"${principal}" approved ${ids} of source "${name}"`);
  }

  refresh(): void {
    for (const { registry } of this.#scopes.values()) registry.refresh();
  }

  /**
   * Serves the settings of a file instead of the current ones. Running calls continue. Sources with
   * the same settings stay open.
   *
   * @param settings The settings of the flags and of the file.
   * @throws {CommandError} If the file cannot be used. Nothing has changed then.
   */
  async apply(file: PlueFile, settings: ServeSettings): Promise<void> {
    const before = this.#file;
    const fixed = before &&
      FIXED.find((field) =>
        JSON.stringify(before.settings[field]) !== JSON.stringify(file.settings[field])
      );
    if (fixed !== undefined) {
      throw file.json.error(`/${fixed}`, `a change of "${fixed}" needs a restart of plue`);
    }
    const authorize = authorizeCallers(file, tokenCaller(settings));
    const next = this.#open(file);
    let services = this.#services;
    try {
      await Promise.all([...next].map(([, [source, named]]) => opened(file, source, named)));
      if (before === undefined || serviceText(before) !== serviceText(file)) {
        services = await this.#createServices(file, settings, authorize, next);
      }
    } catch (error) {
      const known = new Set(this.#sources.values());
      await this.#close(
        [...next.values()].map(([source]) => source).filter((one) => !known.has(one)),
      );
      for (const tenant of this.#scopes.keys()) {
        if (!this.#services.has(tenant)) this.#scopes.delete(tenant);
      }
      throw error;
    }
    this.#replace(file, services, next);
  }

  /**
   * Answers a request with the current service of its tenant. A new file ends `GET /events`, which
   * browsers open again. Other clients would not, so their streams of changes continue.
   */
  async fetch(request: Request, env?: unknown): Promise<Response> {
    const { url, method, headers } = request;
    const isMcp = /\/mcp(\?|$)/.test(url) &&
      (method === "GET" || headers.get("mcp-method") === "subscriptions/listen");
    if (!isMcp && !/\/events(\?|$)/.test(url)) return await this.#answer(request, env);
    const copy = request.clone();
    const response = await this.#answer(request, env);
    if (streamOf(response) === null) return response;
    const body = method === "GET" ? null : await copy.text();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const follow = async (): Promise<void> => {
      for (let stream = streamOf(response); stream !== null;) {
        const { signal } = this.#following;
        await stream.pipeTo(writable, { signal, preventAbort: true, preventClose: true })
          .catch(noop);
        // Without a new signal, the gateway ends; without an abort, the client or the stream has ended.
        if (!isMcp || !signal.aborted || this.#following.signal.aborted) break;
        stream = streamOf(await this.#answer(new Request(copy, { body }), env));
        const writer = writable.getWriter();
        if (stream !== null) await writer.write(listChanged(body));
        writer.releaseLock();
      }
      await writable.close();
    };
    void follow().catch(noop);
    return new Response(readable, response);
  }

  async #answer(request: Request, env: unknown): Promise<Response> {
    const [, tenant] = /^\w+:\/\/[^/]+\/t\/([^/?#]+)/.exec(request.url) ?? [];
    const mounted = tenant === undefined || this.tenants.length === 0
      ? undefined
      : this.#services.get(tenant) ?? this.#services.get(NOBODY);
    return await (mounted?.mounted ?? this.service.app).fetch(request, env as object);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#following.abort();
    for (const { registry, stop } of this.#scopes.values()) {
      registry.setSources([]);
      stop.abort();
    }
    await this.#close([...this.#unclosed]);
  }

  async #close(sources: readonly Source[]): Promise<void> {
    await Promise.all(sources.map(async (source) => {
      await source[Symbol.asyncDispose]();
      this.#unclosed.delete(source);
    }));
  }

  /** Replaces everything in one turn, so that no request sees a part of the change. */
  #replace(file: PlueFile, services: Services, next: OpenSources): void {
    const sources = new Map([...next].map(([key, [source]]) => [key, source]));
    const kept = new Set(sources.values());
    const removed = [...this.#sources.values()].filter((source) => !kept.has(source));
    const isNew = services !== this.#services;
    this.#file = file;
    this.#services = services;
    this.#sources = sources;
    for (const [tenant, scope] of this.#scopes) {
      const named = sourcesOf(file, tenant);
      scope.registry.setSources(named.map((one) => sources.get(sourceKey(file, one)) as Source));
      if (services.has(tenant)) {
        this.#recover(scope);
        continue;
      }
      scope.stop.abort();
      this.#scopes.delete(tenant);
    }
    // Not awaited, because the calls of a removed source may run for long.
    void this.#close(removed);
    this.#report();
    if (!isNew) return;
    this.#following.abort();
    this.#following = new AbortController();
  }

  async #createServices(
    file: PlueFile,
    settings: ServeSettings,
    authorize: Authorize | undefined,
    next: OpenSources,
  ): Promise<Services> {
    const names = [undefined, ...file.tenants.keys(), ...file.tenants.size > 0 ? [NOBODY] : []];
    const services = new Map<string | undefined, ScopeService>();
    for (const tenant of names) {
      const scope = this.#scopeOf(tenant);
      const own = authorize && forTenant(authorize, tenant);
      services.set(tenant, await this.#createService(file, settings, own, next, scope));
    }
    addCallbacks(file, services.get(undefined)?.app, next);
    return services;
  }

  async #createService(
    file: PlueFile,
    settings: ServeSettings,
    authorize: Authorize | undefined,
    next: OpenSources,
    { tenant, registry, state }: Scope,
  ): Promise<ScopeService> {
    const { records, skills, log, flags, selection: narrowed } = this.#host;
    const { selection, limits: { requestsPerMinute } = {}, tenants = {}, ...more } = file.settings;
    const { maxRisk, role = null } = settings;
    const own = tenants[tenant ?? ""]?.selection;
    const all = { ...selection, ...{ maxRisk }, ...own, ...narrowed };
    const allowed = authorize === undefined ? { ...all, role, scopes: all.scopes ?? [] } : all;
    const rate = requestsPerMinute === undefined
      ? undefined
      : { limit: requestsPerMinute, windowMs: 60_000, store: this.#rates };
    const sources = serveSources({
      tenant,
      status: () => this.status(tenant),
      approve: (approval, principal) => this.#approve(approval, principal),
    });
    const metrics = serveTenantMetrics(() =>
      new Map(this.tenants.map((name) => [name, this.#serviceOf(name).dispatcher.metrics()]))
    );
    const service = await createService(registry, {
      ...{ selection: allowed, settings, state, log, authorize, records, skills },
      dispatch: {
        ...(authorize === undefined && { approve: "ask" }),
        ...dispatchOf(file, tenant, next, state),
      },
      ...{ bridge: flags.bridge ?? more.bridge, code: flags.code ?? more.code },
      explorer: more.explorer,
      more: {
        ...(rate && { rateLimit: rate }),
        parts: tenant === undefined ? [sources, metrics] : [sources],
      },
    });
    // The app of the service does not answer for paths that it does not have, once it is mounted.
    const mounted = new Hono().route("/t/:tenant", service.app).notFound(() =>
      problemResponse({ status: 404, code: "not_found", detail: "There is no such route" })
    );
    return { ...service, selection: allowed, mounted };
  }

  #scopeOf(tenant: string | undefined): Scope {
    const known = this.#scopes.get(tenant);
    if (known !== undefined) return known;
    const { terminal, state: shared } = this.#host;
    const { isInMemory, store, logins } = shared;
    // In memory, a tenant must not use the space of another one.
    const own = (name: string) => isInMemory ? memoryCallStore() : tenantStore(store, name);
    const state = tenant === undefined ? shared : stateIn(own(tenant), terminal, logins);
    const stop = new AbortController();
    const registry = new GatewayRegistry(
      (message) => terminal.warn(message),
      // Not in the middle of a change of several registries.
      () => queueMicrotask(() => this.#report()),
    );
    const scope = { tenant, registry, state, stop, isRecovering: false };
    this.#scopes.set(tenant, scope);
    return scope;
  }

  /** Runs the tasks of earlier processes with the tools of their tenant. */
  #recover(scope: Scope): void {
    if (scope.isRecovering) return;
    scope.isRecovering = true;
    const { tenant, state, stop } = scope;
    const dispatcher = (): ToolDispatcher => {
      const { dispatcher } = this.#serviceOf(tenant);
      return dispatcher.withToolset(this.toolset(tenant)) as ToolDispatcher;
    };
    state.recover(dispatcher, AbortSignal.any([this.#host.terminal.io.signal, stop.signal]));
  }

  #pinsOf(
    { folder }: PlueFile,
    { name, tenant, settings: { pins } }: NamedSource,
  ): ImportPins | undefined {
    if (pins === undefined) return undefined;
    const path = resolve(folder, pins);
    const all = once(this.#pins, path, () => toolPins(path));
    const key = tenant === undefined ? name : `tenant:${tenant}:${name}`;
    return { check: (imported) => all.check(imported, key) };
  }

  /** Opens the sources of a file, except those that are open. */
  #open(file: PlueFile): OpenSources {
    const { terminal } = this.#host;
    const next = new Map<string, readonly [Source, NamedSource]>();
    for (const named of [file.sources, ...file.tenants.values()].flat()) {
      const key = sourceKey(file, named);
      if (next.has(key)) continue;
      const { name, tenant, settings: { namespace = name } } = named;
      const others = (): Iterator<Tool> =>
        (this.#scopes.get(tenant)?.registry.tools ?? [])
          .filter((tool) => tool.namespace !== namespace).values();
      const source = this.#sources.get(key) ?? new Source(named, {
        ...{ io: terminal.io, folder: file.folder, log: (text) => terminal.warn(text) },
        pins: this.#pinsOf(file, named),
        beside: { [Symbol.iterator]: others },
      });
      this.#unclosed.add(source);
      next.set(key, [source, named]);
    }
    return next;
  }
}

type OpenSources = ReadonlyMap<string, readonly [Source, NamedSource]>;

async function opened(file: PlueFile, source: Source, { pointer }: NamedSource): Promise<void> {
  try {
    await source.opened;
  } catch (cause) {
    throw file.json.error(pointer, describeThrown(cause, 2_000), cause);
  }
}

function sourcesOf(file: PlueFile, tenant: string | undefined): readonly NamedSource[] {
  return tenant === undefined ? file.sources : file.tenants.get(tenant) ?? [];
}

function sourceKey({ folder }: PlueFile, { name, tenant, settings }: NamedSource): string {
  return JSON.stringify([folder, tenant ?? null, name, settings]);
}

/** Returns the settings of a file that its services are made from. */
function serviceText({ settings, sources }: PlueFile): string {
  const { sources: _, mcpServers: _servers, ...own } = settings;
  // A module may have options of calls, and rules use labels.
  const made = sources.filter(({ settings: { from, labels } }) => from ?? labels);
  return JSON.stringify([own, made]);
}

/** Serves the routes of modules for the browsers of callers that give permission. */
function addCallbacks({ json }: PlueFile, app: Hono | undefined, sources: OpenSources): void {
  const paths = new Set<string>();
  for (const [source, { pointer }] of sources.values()) {
    const callback = source.module?.callback;
    if (callback === undefined) continue;
    const { path } = callback;
    if (paths.has(path)) throw json.error(pointer, `another module has a callback at ${path}`);
    paths.add(path);
    app?.get(path, ({ req }) => callback(req.raw));
  }
}

/** Returns the options of calls: the rules and limits of the file, and the rules and limits of a module. */
function dispatchOf(
  file: PlueFile,
  tenant: string | undefined,
  next: OpenSources,
  { store }: ServiceState,
): ToolDispatcherOptions {
  const { json, settings: { rules: documents = [], limits = {} } } = file;
  const named = sourcesOf(file, tenant);
  const labels: Record<string, ToolLabels> = {};
  let own: ToolDispatcherOptions | undefined;
  for (const one of named) {
    const { pointer, name, settings } = one;
    if (settings.labels !== undefined) labels[`${settings.namespace ?? name}:*`] = settings.labels;
    const dispatch = next.get(sourceKey(file, one))?.[0].module?.dispatch ?? {};
    if (Object.keys(dispatch).length === 0) continue;
    if (own !== undefined || (dispatch.rules !== undefined && documents.length > 0)) {
      throw json.error(pointer, "its module and another part export options of all calls");
    }
    own = dispatch;
  }
  const { timeoutMs, callsAtOnce, callsAtOncePerTool } = limits;
  return {
    ...(documents.length > 0 && { approve: "ask", rules: checkRules(file, { labels, store }) }),
    ...defined({ timeoutMs }),
    limits: defined({ maxConcurrent: callsAtOnce, maxConcurrentPerTool: callsAtOncePerTool }),
    ...own,
  };
}

/**
 * Reads the rules of a file.
 *
 * @throws {CommandError} If a rule is invalid. The message has its line and column.
 */
export function checkRules(
  { json, settings: { rules: documents = [] } }: PlueFile,
  options: RulesOptions = {},
): NonNullable<ToolDispatcherOptions["rules"]> {
  try {
    return rules(readRules(documents), options);
  } catch (cause) {
    const why = describeThrown(cause);
    const [, pointer = ""] = /"(\/\d+[^"]*)"/.exec(why) ?? [];
    throw json.error(`/rules${pointer}`, why, cause);
  }
}

function streamOf({ headers, body }: Response): Response["body"] {
  return headers.get("content-type")?.startsWith("text/event-stream") === true ? body : null;
}

/**
 * Writes the notification that the tools have changed.
 *
 * @param listen The request of the stream; `null` for a stream of an earlier revision of MCP.
 */
function listChanged(listen: string | null): Uint8Array {
  const meta = listen !== null &&
    { "io.modelcontextprotocol/subscriptionId": JSON.parse(listen).id };
  const message = {
    ...{ jsonrpc: "2.0", method: "notifications/tools/list_changed" },
    ...(meta && { params: { _meta: meta } }),
  };
  return new TextEncoder().encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}
