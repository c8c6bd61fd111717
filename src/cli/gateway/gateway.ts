/** The services of a `plue.json`: their sources, and the replacement of both by a new file. */

import type { Authorize } from "../../adapters/hono/mod.ts";
import type { ToolDispatcherOptions } from "../../execute/mod.ts";
import type { Selection, Toolset } from "../../select/mod.ts";
import { describeThrown, noop, type Tool } from "../../tool/mod.ts";
import { createService, type Service, tokenCaller } from "../serve/service.ts";
import type { ServeFlags, ServeSettings } from "../serve/settings.ts";
import type { ServiceState } from "../serve/state.ts";
import { type Terminal, usageError } from "../terminal.ts";
import { authorizeCallers } from "./callers.ts";
import type { NamedSource, PlueFile } from "./file.ts";
import { GatewayRegistry } from "./registry.ts";
import { Source, type SourceStatus } from "./source.ts";

/** The parts of a gateway that a new file cannot change. */
export interface GatewayHost {
  readonly terminal: Terminal;
  /** The selection of the flags, which narrows the selection of the file. */
  readonly selection: Selection;
  readonly flags: Pick<ServeFlags, "bridge" | "code">;
  readonly state: ServiceState;
  readonly log: (error: unknown) => void;
}

/** The fields of a file that apply at the start only. */
const FIXED = ["host", "port", "store"] as const;

/** Serves the tools of a file. */
export class Gateway implements AsyncDisposable {
  readonly #host: GatewayHost;
  readonly #registry: GatewayRegistry;
  #file: PlueFile | undefined;
  #sources: ReadonlyMap<string, Source> = new Map();
  #service: Service | undefined;
  #selection: Selection = {};
  /** Ends the streams of changes of a replaced service, so that clients open them again. */
  #following = new AbortController();

  constructor(host: GatewayHost) {
    this.#host = host;
    this.#registry = new GatewayRegistry((message) => this.#note(message));
  }

  get service(): Service {
    return this.#service as Service;
  }

  get registry(): GatewayRegistry {
    return this.#registry;
  }

  /** The tools that a caller with all rights of the file can have. */
  toolset(): Toolset {
    return this.service.source.select(this.#selection);
  }

  status(): readonly SourceStatus[] {
    return [...this.#sources.values()].map((source) => source.status());
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
      FIXED.find((field) => before.settings[field] !== file.settings[field]);
    if (fixed !== undefined) {
      throw file.json.error(`/${fixed}`, `a change of "${fixed}" needs a restart of plue`);
    }
    const authorize = authorizeCallers(file, tokenCaller(settings));
    const next = this.#open(file);
    try {
      await Promise.all([...next].map(([, source]) => this.#opened(file, source)));
      const dispatch = dispatchOf([...next.values()]);
      const isSame = before !== undefined && serviceText(before) === serviceText(file);
      if (!isSame) await this.#replaceService(file, settings, authorize, dispatch);
    } catch (error) {
      const opened = [...next.values()].filter((one) => !this.#isOpen(one));
      await Promise.all(opened.map((source) => source[Symbol.asyncDispose]()));
      throw error;
    }
    const removed = [...this.#sources.values()].filter((one) => ![...next.values()].includes(one));
    this.#registry.setSources([...next.values()]);
    this.#sources = next;
    this.#file = file;
    // Not awaited, because the calls of a removed source may run for long.
    for (const source of removed) void source[Symbol.asyncDispose]();
  }

  /** Answers a request with the current service. */
  async fetch(request: Request, env: unknown): Promise<Response> {
    const { signal } = this.#following;
    const response = await this.service.app.fetch(request, env as object);
    const isStream = request.method === "GET" ||
      request.headers.get("mcp-method") === "subscriptions/listen";
    const { body, headers } = response;
    if (!isStream || body === null) return response;
    if (headers.get("content-type")?.startsWith("text/event-stream") !== true) return response;
    return new Response(endedBy(signal, body), response);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#following.abort();
    const sources = [...this.#sources.values()];
    this.#registry.setSources([]);
    await Promise.all(sources.map((source) => source[Symbol.asyncDispose]()));
  }

  async #replaceService(
    file: PlueFile,
    settings: ServeSettings,
    authorize: Authorize | undefined,
    dispatch: ToolDispatcherOptions,
  ): Promise<void> {
    const { state, log, flags, selection } = this.#host;
    const own = file.settings.selection ?? {};
    const { maxRisk, role = null } = settings;
    const all = { ...own, ...selection, maxRisk };
    const allowed = authorize === undefined ? { ...all, role, scopes: all.scopes ?? [] } : all;
    this.#service = await createService(this.#registry, {
      ...{ selection: allowed, dispatch, settings, state, log, authorize },
      ...{ bridge: flags.bridge ?? file.settings.bridge, code: flags.code ?? file.settings.code },
      explorer: file.settings.explorer,
    });
    this.#selection = allowed;
    this.#following.abort();
    this.#following = new AbortController();
  }

  /** Opens the sources of a file, except those that are open. */
  #open(file: PlueFile): ReadonlyMap<string, Source> {
    const { terminal: { io } } = this.#host;
    const next = new Map<string, Source>();
    for (const source of file.sources) {
      const key = sourceKey(file, source);
      const { name, settings: { namespace = name } } = source;
      const others = (): Iterator<Tool> =>
        this.#registry.tools.filter((tool) => tool.namespace !== namespace).values();
      const open = (): Source =>
        new Source(source, {
          ...{ io, folder: file.folder, pinPrefix: "", log: (text) => this.#note(text) },
          beside: { [Symbol.iterator]: others },
        });
      next.set(key, this.#sources.get(key) ?? open());
    }
    return next;
  }

  async #opened(file: PlueFile, source: Source): Promise<void> {
    try {
      await source.opened;
    } catch (cause) {
      const { pointer = "" } = file.sources.find(({ name }) => name === source.name) ?? {};
      throw file.json.error(pointer, describeThrown(cause, 2_000), cause);
    }
  }

  #isOpen(source: Source): boolean {
    return [...this.#sources.values()].includes(source);
  }

  #note(text: string): void {
    this.#host.terminal.warn(text);
  }
}

/** Returns a stream that ends when the signal aborts. */
function endedBy(
  signal: AbortSignal,
  body: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  // Without `preventAbort`, Bun would log the end as an error.
  body.pipeTo(writable, { signal, preventAbort: true }).catch(() => writable.close()).catch(noop);
  return readable;
}

function sourceKey({ folder }: PlueFile, { name, settings }: NamedSource): string {
  return JSON.stringify([folder, name, settings]);
}

/** Returns the settings of a file that its service is made from. A module may have options of calls. */
function serviceText({ settings, sources }: PlueFile): string {
  const { sources: _, mcpServers: _servers, ...own } = settings;
  return JSON.stringify([own, sources.filter(({ settings: { from } }) => from !== undefined)]);
}

/** Returns the options of calls that one of the modules exports. */
function dispatchOf(sources: readonly Source[]): ToolDispatcherOptions {
  const [first, second] = sources.filter(({ module }) =>
    Object.keys(module?.dispatch ?? {}).length > 0
  );
  if (second !== undefined) {
    throw usageError(
      `Cannot use the modules of "${first?.name}" and "${second.name}": both export options of ` +
        "calls, which apply to all tools",
    );
  }
  return first?.module?.dispatch ?? {};
}
