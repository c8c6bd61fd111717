/** The services of a `plue.json`: one for each tenant, and their replacement by a new file. */

import { resolve } from "node:path";
import { Hono } from "hono/tiny";
import { memoryCallStore } from "../../adapters/calls/mod.ts";
import type { OAuthCallback } from "../../adapters/credentials/mod.ts";
import { type Authorize, MemoryRateLimitStore } from "../../adapters/hono/mod.ts";
import { problemResponse, serveProtectedResource } from "../../adapters/http/mod.ts";
import type { Journal } from "../../adapters/journal/mod.ts";
import type { SkillCatalog } from "../../adapters/mcp/mod.ts";
import { readRules, rules, type RulesOptions } from "../../adapters/rules/mod.ts";
import type { ToolDispatcher, ToolDispatcherOptions } from "../../execute/mod.ts";
import type { SourceStatus } from "../../explorer/page/api.ts";
import type { ImportPins } from "../../formats/mod.ts";
import type { Selection, Toolset } from "../../select/mod.ts";
import {
  defined,
  describeThrown,
  escapeInvisible,
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
import { END_MS, type LoadedTools } from "../sources/mod.ts";
import type { Terminal } from "../terminal.ts";
import { authorizeCallers, forTenant, resourcesOf } from "./callers.ts";
import { fullName, type NamedSource, type PlueFile } from "./file.ts";
import { type Problem, unknownIds, unknownTools } from "./names.ts";
import { GatewayRegistry } from "./registry.ts";
import { type Approval, serveOperators } from "./operators.ts";
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
  readonly firstAttemptMs: number;
  pins(path: string): ImportPins | undefined;
}

/** The name of the service for tenants that do not exist, which looks like that of another tenant. */
const NOBODY = "";

/** A tenant, or the part of the file without a tenant: its tools, its state and its service. */
interface Scope extends Service {
  readonly registry: GatewayRegistry;
  readonly state: ServiceState;
  readonly stop: AbortController;
  readonly selection: Selection;
  readonly mounted: Hono;
}

type Scopes = ReadonlyMap<string | undefined, Scope>;
type Sources = ReadonlyMap<string, Source>;

export class Gateway implements AsyncDisposable {
  readonly #host: GatewayHost;
  readonly #rates = new MemoryRateLimitStore();
  /** The pins by file. Two objects for one file would overwrite each other's approvals. */
  readonly #pins = new Map<string, ImportPins>();
  #scopes: Scopes = new Map();
  #file: PlueFile | undefined;
  #sources: Sources = new Map();
  /** The sources of the file, and the sources that are being opened for a next file, or closed. */
  readonly #unclosed = new Set<Source>();
  /** The tools of modules, which stay while their sources close and open. */
  readonly #kept = new Map<string, LoadedTools>();
  /** The sources whose changes the registries have not applied yet. */
  #changed = new Set<Source>();
  readonly #end = new AbortController();
  /** Ends the streams of changes of replaced services. */
  #following = new AbortController();
  /** The sources, and the file, whose problems are printed. */
  readonly #reported = new WeakSet<object>();
  hasProblems = false;

  constructor(host: GatewayHost) {
    this.#host = host;
  }

  #scopeOf(tenant: string | undefined): Scope {
    return this.#scopes.get(tenant) as Scope;
  }

  toolset(tenant?: string): Toolset {
    const { shown, selection, registry } = this.#scopeOf(tenant);
    return shown(registry.select(selection));
  }

  get tenants(): readonly string[] {
    return [...this.#file?.scopes.keys() ?? []].filter((tenant) => tenant !== undefined);
  }

  get callbacks(): readonly OAuthCallback[] {
    return [...this.#sources.values()].flatMap(({ module }) => module?.callbacks ?? []);
  }

  /** The states of the sources that a tenant uses; by default, of all sources. */
  status(tenant?: string): readonly SourceStatus[] {
    const { sources, scopes } = this.#file as PlueFile;
    const named = tenant === undefined ? sources : scopes.get(tenant) ?? [];
    return named.flatMap(({ key }) => this.#sources.get(key)?.status() ?? []);
  }

  /** Prints once the problems of each source that has answered, and then the problems of the file. */
  #report(): void {
    const file = this.#file as PlueFile;
    const isNew = (part: object): boolean =>
      !this.#reported.has(part) && this.#reported.add(part).has(part);
    const print = ({ pointer, message }: Problem, source = ""): void => {
      const place = pointer === undefined ? source : file.json.place(pointer);
      this.hasProblems = true;
      this.#host.terminal.warn(`${place}: ${message}`);
    };
    const sources = [...this.#sources.values()];
    const ready = sources.filter(({ isReady }) => isReady);
    for (const { named, problems } of ready.filter(isNew)) {
      for (const problem of problems) print(problem, `source "${fullName(named)}"`);
    }
    if (ready.length < sources.length || !isNew(file)) return;
    const tools = [...this.#scopes].flatMap(([tenant, { registry }]) =>
      [...registry.tools, ...this.toolset(tenant).available()].flatMap(toolsBehind)
    );
    const { settings } = file;
    const unknown = [...unknownTools(settings.rules ?? [], tools), ...unknownIds(settings, tools)];
    for (const problem of unknown) print(problem);
  }

  /** @throws {TypeError} If the file has no such source, or a tool has changed. */
  async #approve({ source: name, tenant, tools }: Approval, principal: string): Promise<void> {
    const source = [...this.#sources.values()]
      .find(({ named }) => named.name === name && named.tenant === tenant) ??
      fail(`approve tools of "${name}"`, "the file has no such source");
    await source.approve(tools);
    const ids = tools.map(({ id }) => `"${id}"`).join(", ");
    // The name may be of a token, and must not begin a line of its own.
    const who = escapeInvisible(JSON.stringify(principal));
    this.#host.terminal.note(`${who} approved ${ids} of source "${fullName(source.named)}"`);
  }

  refresh(): void {
    for (const { registry } of this.#scopes.values()) registry.refresh();
  }

  /** Running calls continue, and sources with the same settings stay open. An error changes nothing. */
  async apply(file: PlueFile, settings: ServeSettings): Promise<void> {
    const before = this.#file;
    // These fields apply at the start only.
    const fixed = (["host", "port", "store", "journal"] as const).find((field) =>
      before && JSON.stringify(before.settings[field]) !== JSON.stringify(file.settings[field])
    );
    if (fixed !== undefined) {
      file.json.reject(`/${fixed}`, `a change of "${fixed}" needs a restart of plue`);
    }
    const authorize = authorizeCallers(file, tokenCaller(settings));
    const sourceOf = (named: NamedSource): Source =>
      this.#sources.get(named.key) ?? this.#open(named, file);
    const sources = new Map(file.sources.map((named) => [named.key, sourceOf(named)]));
    try {
      await Promise.all([...sources.values()].map(({ opened, named }) =>
        opened.catch((cause) => {
          file.json.reject(named.pointer, describeThrown(cause, 2_000), cause);
        })
      ));
      const scopes = new Map<string | undefined, Scope>();
      for (const tenant of [...file.scopes.keys(), ...file.scopes.size > 1 ? [NOBODY] : []]) {
        const own = authorize && forTenant(authorize, tenant, resourcesOf(file).get(tenant));
        scopes.set(tenant, await this.#createScope(file, settings, own, sources, tenant));
      }
      addCallbacks(file, scopes, sources);
      this.#replace(file, scopes, sources);
    } catch (error) {
      const known = new Set(this.#sources.values());
      await this.#close([...sources.values()].filter((source) => !known.has(source)));
      throw error;
    }
  }

  /**
   * Answers a request with the current service of its tenant. A new file ends `GET /events`, which
   * browsers open again. Other clients would not, so their streams of changes continue.
   */
  async fetch(request: Request, env?: unknown): Promise<Response> {
    const { method, headers } = request;
    // As Hono matches a path: decoded, and with or without a slash at its end.
    const path = this.#scopeOf(undefined).app.getPath(request);
    const [, route] = /^(?:\/t\/[^/]+)?\/(mcp|events)\/?$/.exec(path) ?? [];
    const isMcp = route === "mcp" &&
      (method === "GET" || headers.get("mcp-method") === "subscriptions/listen");
    if (!isMcp && route !== "events") return await this.#answer(request, env);
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
    const { app } = this.#scopeOf(undefined);
    const scope = tenant !== undefined && (this.#scopes.get(tenant) ?? this.#scopes.get(NOBODY));
    return await (scope ? scope.mounted : app).fetch(request, env as object);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#following.abort();
    this.#end.abort();
    const scopes = [...this.#scopes.values()];
    for (const { registry, stop } of scopes) {
      registry.setSources([]);
      stop.abort();
    }
    await this.#close([...this.#unclosed]);
    await Promise.allSettled([
      ...[...this.#kept.values()].map((kept) => kept[Symbol.asyncDispose]()),
      ...scopes.map(({ registry }) => registry.dispose({ signal: AbortSignal.timeout(END_MS) })),
    ]);
  }

  async #close(sources: readonly Source[]): Promise<void> {
    await Promise.all(sources.map(async (source) => {
      await source[Symbol.asyncDispose]();
      this.#unclosed.delete(source);
    }));
  }

  /** Replaces everything in one turn, so that no request sees a part of the change. */
  #replace(file: PlueFile, scopes: Scopes, sources: Sources): void {
    const removed = [...this.#sources].filter(([key]) => !sources.has(key));
    for (const [key, source] of sources) if (this.#sources.has(key)) source.refresh();
    const before = this.#scopes;
    this.#file = file;
    this.#scopes = scopes;
    this.#sources = sources;
    for (const [tenant, { registry, state, stop }] of scopes) {
      const named = file.scopes.get(tenant) ?? [];
      registry.setSources(named.map(({ key }) => sources.get(key) as Source));
      if (before.has(tenant)) continue;
      // Runs the tasks of earlier processes with the tools of their tenant.
      state.recover(
        () => this.#scopeOf(tenant).dispatcher.withToolset(this.toolset(tenant)) as ToolDispatcher,
        AbortSignal.any([this.#host.terminal.io.signal, stop.signal]),
      );
    }
    for (const [tenant, { registry, stop }] of before) {
      if (scopes.has(tenant)) continue;
      registry.setSources([]);
      stop.abort();
    }
    // Not awaited, because the calls of a removed source may run for long.
    void this.#close(removed.map(([, source]) => source));
    this.#report();
    this.#following.abort();
    this.#following = new AbortController();
  }

  async #createScope(
    file: PlueFile,
    settings: ServeSettings,
    authorize: Authorize | undefined,
    sources: Sources,
    tenant: string | undefined,
  ): Promise<Scope> {
    const { records, skills, log, flags, selection: narrowed, terminal } = this.#host;
    const { registry, state, stop } = this.#scopes.get(tenant) ?? {
      registry: new GatewayRegistry((message) => terminal.warn(message)),
      state: this.#stateOf(tenant),
      stop: new AbortController(),
    };
    const { selection, limits: { requestsPerMinute } = {}, tenants = {}, ...more } = file.settings;
    const { maxRisk, role = null } = settings;
    const own = tenants[tenant ?? ""]?.selection;
    const all = { ...selection, ...{ maxRisk }, ...own, ...narrowed };
    const allowed = authorize === undefined ? { ...all, role, scopes: all.scopes ?? [] } : all;
    const window = { windowMs: 60_000, store: this.#rates };
    const rateLimit = requestsPerMinute && { limit: requestsPerMinute, ...window };
    const routes = serveOperators({
      status: () => this.status(tenant),
      approve: (approval, principal) => this.#approve(approval, principal),
      metrics: () => this.tenants.map((name) => [name, this.#scopeOf(name).dispatcher.metrics()]),
    }, tenant);
    // Clients read the descriptions of all tenants at the root of the host.
    const resources = tenant === undefined ? [...resourcesOf(file).values()] : [];
    const service = await createService(registry, {
      ...{ selection: allowed, settings, state, log, authorize, records, skills },
      dispatch: {
        ...(authorize === undefined && { approve: "ask" }),
        ...dispatchOf(file, tenant, sources, state),
      },
      ...{ bridge: flags.bridge ?? more.bridge, code: flags.code ?? more.code },
      explorer: more.explorer,
      more: {
        ...(rateLimit && { rateLimit }),
        parts: [routes, ...resources.map(serveProtectedResource)],
      },
    });
    // The app of the service does not answer for paths that it does not have, once it is mounted.
    const mounted = new Hono().route("/t/:tenant", service.app).notFound(() =>
      problemResponse({ status: 404, code: "not_found", detail: "There is no such route" })
    );
    return { ...service, registry, state, stop, selection: allowed, mounted };
  }

  #stateOf(tenant: string | undefined): ServiceState {
    const { terminal, state } = this.#host;
    if (tenant === undefined) return state;
    // In memory, a tenant must not use the space of another one.
    const store = state.isInMemory ? memoryCallStore() : tenantStore(state.store, tenant);
    return stateIn(store, terminal, state.logins);
  }

  #pinsOf({ folder }: PlueFile, { name, tenant, settings }: NamedSource): ImportPins | undefined {
    const path = settings.pins && resolve(folder, settings.pins);
    const pins = path && (this.#pins.get(path) ?? this.#host.pins(path));
    if (!path || !pins) return undefined;
    this.#pins.set(path, pins);
    const key = tenant === undefined ? name : `tenant:${tenant}:${name}`;
    return { check: (imported) => pins.check(imported, key) };
  }

  #open(named: NamedSource, file: PlueFile): Source {
    const { terminal, firstAttemptMs } = this.#host;
    const { name, tenant, settings: { namespace = name } } = named;
    const others = (): Iterator<Tool> =>
      (this.#scopes.get(tenant)?.registry.tools ?? [])
        .filter((tool) => tool.namespace !== namespace).values();
    const source = new Source(named, {
      ...{ io: terminal.io, folder: file.folder, firstAttemptMs },
      signal: AbortSignal.any([terminal.io.signal, this.#end.signal]),
      log: (text, isReady) => isReady ? terminal.note(text) : terminal.warn(text),
      pins: this.#pinsOf(file, named),
      beside: { [Symbol.iterator]: others },
      keep: (key, loaded) => once(this.#kept, key, () => loaded),
      onChange: (changed) => this.#follow(changed),
    });
    this.#unclosed.add(source);
    return source;
  }

  /** Applies a change of a source, together with the other changes of this turn. */
  #follow(source: Source): void {
    this.#changed.add(source);
    if (this.#changed.size > 1) return;
    queueMicrotask(() => {
      const changed = this.#changed;
      this.#changed = new Set();
      for (const { registry } of this.#scopes.values()) registry.sync(changed);
      if (this.#file !== undefined) this.#report();
    });
  }
}

/** Serves the routes of modules for the browsers of callers that give permission. */
function addCallbacks({ json }: PlueFile, scopes: Scopes, sources: Sources): void {
  const paths = new Set<string>();
  for (const { module, named: { pointer } } of sources.values()) {
    for (const callback of module?.callbacks ?? []) {
      const { path } = callback;
      if (paths.has(path)) json.reject(pointer, `another module has a callback at ${path}`);
      paths.add(path);
      const [, tenant] = scopes.size > 1 ? /^\/t\/([^/]+)/.exec(path) ?? [] : [];
      const { app, mounted } = scopes.get(tenant) ??
        json.reject(pointer, `its callback is at ${path}, and there is no such tenant`);
      (tenant === undefined ? app : mounted).get(path, ({ req }) => callback(req.raw));
    }
  }
}

/** Returns the options of calls: the rules and limits of the file, and the rules and limits of a module. */
function dispatchOf(
  file: PlueFile,
  tenant: string | undefined,
  sources: Sources,
  { store }: ServiceState,
): ToolDispatcherOptions {
  const { json, settings: { rules: documents = [], limits = {} } } = file;
  const { callsAtOnce, callsAtOncePerTool, timeoutMs, maxOutputBytes } = limits;
  const most = callsAtOnce ?? callsAtOncePerTool;
  const inFile = { rules: documents[0], limits: most, timeoutMs, maxOutputBytes };
  const labels: Record<string, ToolLabels> = {};
  let own: ToolDispatcherOptions | undefined;
  for (const { pointer, name, settings, key } of file.scopes.get(tenant) ?? []) {
    if (settings.labels !== undefined) labels[`${settings.namespace ?? name}:*`] = settings.labels;
    const dispatch = sources.get(key)?.module?.dispatch ?? {};
    if (Object.keys(dispatch).length === 0) continue;
    const isInFile = (["rules", "limits", "timeoutMs", "maxOutputBytes"] as const)
      .some((field) => dispatch[field] !== undefined && inFile[field] !== undefined);
    if (own !== undefined || isInFile) {
      json.reject(pointer, "its module and another part set options of all calls; remove one");
    }
    own = dispatch;
  }
  return {
    ...(documents.length > 0 && { approve: "ask", rules: checkRules(file, { labels, store }) }),
    ...defined({ timeoutMs, maxOutputBytes }),
    limits: defined({ maxConcurrent: callsAtOnce, maxConcurrentPerTool: callsAtOncePerTool }),
    ...own,
  };
}

/** @throws {CommandError} If a rule is invalid. The message has its line and column. */
export function checkRules(
  { json, settings: { rules: documents = [] } }: PlueFile,
  options: RulesOptions = {},
): NonNullable<ToolDispatcherOptions["rules"]> {
  try {
    return rules(readRules(documents), options);
  } catch (cause) {
    const why = describeThrown(cause);
    const [, pointer = ""] = /"(\/\d+[^"]*)"/.exec(why) ?? [];
    return json.reject(`/rules${pointer}`, why, cause);
  }
}

function streamOf({ headers, body }: Response): Response["body"] {
  return headers.get("content-type")?.startsWith("text/event-stream") === true ? body : null;
}

/** Notifies a stream of changed tools. `listen` is its request; `null` before MCP 2026-07-28. */
function listChanged(listen: string | null): Uint8Array {
  const meta = listen !== null &&
    { "io.modelcontextprotocol/subscriptionId": JSON.parse(listen).id };
  const message = {
    ...{ jsonrpc: "2.0", method: "notifications/tools/list_changed" },
    ...(meta && { params: { _meta: meta } }),
  };
  return new TextEncoder().encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}
