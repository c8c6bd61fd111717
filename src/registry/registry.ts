/**
 * The kernel of a registry: the map of the tools, the revision, the lifecycle of tools, and one
 * `subscribe`. `ToolRegistry` adds search and the other operations.
 */

import {
  checkSelection,
  claimNames,
  type Explainer,
  freezeInOrder,
  type Selection,
  Toolset,
} from "../select/mod.ts";
import type { SchemaEngine } from "../schema/mod.ts";
import {
  askAvailable,
  checkFunction,
  fail,
  makeTool,
  numberOf,
  type Tool,
  type ToolDefinition,
} from "../tool/mod.ts";
import { ChangeFeed, makeChange, type ToolChange, type ToolChangeListener } from "./changes.ts";
import {
  RegisteredTool,
  throwAll,
  type ToolHost,
  ToolLifecycleError,
  type ToolRuntime,
} from "./lifecycle.ts";
import {
  type AdmissionAction,
  admit,
  type DisposeOptions,
  readOptions,
  type RegistryOptions,
  type RegistrySettings,
  type Report,
  type UpdateOptions,
} from "./options.ts";

/** The maximum number of cached toolsets: a server may select a toolset for each request. */
const MAX_TOOLSETS = 256;

/** The maximum number of errors of unregistered tools that are stored for `dispose()`. */
const MAX_STORED_ERRORS = 100;

/**
 * The mutable set of all tools: unique ids, change events, and each tool's lifecycle from `init` to
 * `dispose`. Callers use toolsets, which {@linkcode Registry.select} creates. The `ToolRegistry` of
 * `@plue/tools` also has search, definitions, listings by field and `refresh`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { typeboxEngine } from "@plue/tools";
 * import { Registry } from "@plue/tools/core";
 *
 * await using registry = new Registry({ engine: typeboxEngine() });
 * registry.registerTool({ name: "echo", description: "Says it again.", risk: "safe" });
 *
 * assert.equal(registry.count, 1);
 * assert.deepEqual(registry.ids, ["echo"]);
 * assert.equal(registry.hasTool("add"), false);
 * ```
 */
export class Registry implements ToolHost {
  /** Checks the tools' schemas when tools are registered, and compiles the schemas. */
  readonly engine: SchemaEngine;
  readonly #settings: RegistrySettings;
  readonly #config: Map<string, unknown>;
  /** The registered tools by id, in order of registration. */
  readonly #entries: Map<string, RegisteredTool> = new Map();
  /** The id of a tool for each of its names: the id itself and the aliases. */
  readonly #names: Map<string, string> = new Map();
  /** The tools in code-unit order of id. The list is replaced, and never changed. */
  #sorted: readonly Tool[] = [];
  #ids: readonly string[] | undefined;
  /** The ids that were added, removed or replaced since `#sorted` was made. */
  readonly #changed: Set<string> = new Set();
  #revision = 0;
  /** The cached toolset without a selection; `#toolsets` has the others of this revision. */
  #everything: Toolset | undefined;
  readonly #toolsets: Map<string, Toolset> = new Map();
  readonly #feed: ChangeFeed;
  /** The disposals of tools that were removed or replaced. */
  readonly #retiring: Set<Promise<void>> = new Set();
  readonly #errors: unknown[] = [];
  #ending: Promise<void> | undefined;
  /** Passes an error that no caller receives to `onError`. */
  protected readonly report: Report;
  /** Explains tools for the toolsets of this registry. */
  protected readonly explainer: Explainer | undefined;

  /** @throws {TypeError | RangeError} If an option or one of the tools is invalid. */
  constructor(options: RegistryOptions) {
    const { tools, config, ...settings } = readOptions(options);
    this.engine = settings.engine;
    this.report = settings.report;
    this.#settings = settings;
    this.#config = new Map(Object.entries(config));
    this.#feed = new ChangeFeed((error, { tool }) => this.report("listener", tool.id, error));
    this.registerTools(tools);
  }

  /** All tools, available or not: a frozen list in code-unit order of id, replaced by a change. */
  get tools(): readonly Tool[] {
    return freezeInOrder(this.#list());
  }

  /** The ids of {@linkcode Registry.tools}, in the same order. */
  get ids(): readonly string[] {
    return this.#ids ??= Object.freeze(this.tools.map((tool) => tool.id));
  }

  /** The number of tools. */
  get count(): number {
    return this.#entries.size;
  }

  /** The number of changes so far. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * Registers a tool.
   *
   * @returns The tool, created if a plain definition was passed.
   * @throws {TypeError} If the id is taken, or the tool is invalid. For a schema, the message
   * contains the JSON Pointer. The registry has not changed then.
   */
  registerTool(candidate: Tool | ToolDefinition): Tool {
    const [tool] = this.registerTools([candidate]);
    return tool as Tool;
  }

  /** Registers tools atomically. Throws like {@linkcode Registry.registerTool}. */
  registerTools(candidates: Iterable<Tool | ToolDefinition>): readonly Tool[] {
    if (typeof candidates?.[Symbol.iterator] !== "function") {
      fail("register tools", "the tools must be a list");
    }
    const entries: RegisteredTool[] = [];
    for (const candidate of candidates) entries.push(this.#admit(makeTool(candidate), "register"));
    // Checks names after the loop, because the loop runs the caller's code: it may register tools.
    const tools = entries.map(({ tool }) => tool);
    this.#checkNames(tools, "register");
    for (const entry of entries) this.#set(entry);
    this.emit("added", tools);
    return tools;
  }

  /**
   * Replaces the tool with the same id. Running calls of the old tool continue; then the old tool
   * is disposed of. The new tool can be called immediately, and has its own `init`.
   *
   * @example A new configuration
   * ```ts
   * import assert from "node:assert/strict";
   * import { defineTool, ToolRegistry } from "@plue/tools";
   *
   * const read = defineTool({
   *   name: "read",
   *   description: "Reads a file.",
   *   config: { type: "object", properties: { root: { type: "string" } } },
   * });
   * const registry = new ToolRegistry({ tools: [read], config: { read: { root: "/old" } } });
   * registry.updateTool(read, { config: { root: "/new" } });
   *
   * assert.deepEqual(registry.getConfig("read"), { root: "/new" });
   * ```
   *
   * @throws {TypeError} If there is no tool with this id, or the new tool or its configuration is
   * invalid. The registry has not changed then.
   */
  updateTool(candidate: Tool | ToolDefinition, options: UpdateOptions = {}): Tool {
    const tool = makeTool(candidate);
    const { config = this.#config.get(tool.id) } = options;
    const entry = this.#admit(tool, "update", config);
    const previous = this.#entries.get(tool.id) ??
      fail(`update tool "${tool.id}"`, "the tool is not registered");
    this.#checkNames([tool], "update");
    if (config !== undefined) this.#config.set(tool.id, config);
    this.#set(entry);
    this.removed(previous);
    this.emit("updated", [tool], previous.tool);
    return tool;
  }

  /** Removes a tool, if there is one, and disposes of it when its calls have ended. */
  unregisterTool(id: string): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined) return false;
    this.#delete(entry);
    this.removed(entry);
    this.emit("removed", [entry.tool]);
    return true;
  }

  /** Returns the tool with this id, available or not. */
  getTool(id: string): Tool | undefined {
    return this.#entries.get(id)?.tool;
  }

  /** Returns the checked, frozen configuration of a tool; `undefined` if it has none. */
  getConfig(id: string): unknown {
    return this.#entries.get(id)?.config;
  }

  /** Returns true if there is a tool with this id. */
  hasTool(id: string): boolean {
    return this.#entries.has(id);
  }

  /** Returns true if a tool is currently available. An unregistered tool is unavailable. */
  isAvailable(tool: Tool): boolean {
    const entry = this.#entries.get(tool.id);
    return entry?.tool === tool &&
      askAvailable(tool, entry, (error) => this.report("availability", tool.id, error));
  }

  /** Receives errors of description functions from toolsets; see `onError`. */
  onDescribeError(tool: Tool, error: unknown): void {
    this.report("description", tool.id, error);
  }

  /**
   * Returns the selected tools as a toolset. Until the registry changes, equal selections, with the
   * same filters and policies, return the same toolset.
   *
   * @throws {TypeError} If the selection is invalid.
   */
  select(selection?: Selection): Toolset {
    if (selection === undefined) return this.#everything ??= this.#select({});
    const key = keyOf(selection);
    const known = this.#toolsets.get(key);
    // The cached toolset is current while its filters and policies keep the same tools.
    if (known?.isCurrent()) return known;
    const toolset = this.#select(selection);
    if (this.#toolsets.size >= MAX_TOOLSETS) this.#toolsets.clear();
    this.#toolsets.set(key, toolset);
    return toolset;
  }

  /**
   * Subscribes to changes. Listeners are called in the order of the changes, before the method that
   * makes the change returns. An error of a listener has no other effect than a call of `onError`.
   *
   * @param onEnd Called when the registry is disposed of, after the last change. Must not throw.
   * @returns A function that ends the subscription.
   */
  subscribe(listener: ToolChangeListener, onEnd?: () => void): () => void {
    checkFunction("subscribe to a registry", listener, "the listener");
    return this.#feed.subscribe(listener, onEnd);
  }

  /** Begins a call; see {@linkcode ToolHost.acquire}. */
  acquire(tool: Tool): ToolRuntime | Promise<ToolRuntime> {
    const entry = this.#entries.get(tool.id);
    if (entry?.tool !== tool || !entry.isReady) return this.#prepare(tool, entry);
    entry.calls++;
    return entry;
  }

  /** Ends a call that {@linkcode Registry.acquire} began. */
  release(runtime: ToolRuntime): void {
    // Runtimes come from acquire(), which returns only objects of this class.
    const entry = runtime as RegisteredTool;
    if (--entry.calls === 0) entry.onIdle?.();
  }

  /** Begins the first call of a tool. Throws if the tool cannot be called. */
  #prepare(tool: Tool, entry: RegisteredTool | undefined): ToolRuntime | Promise<ToolRuntime> {
    if (entry?.tool !== tool) {
      throw new ToolLifecycleError(
        entry === undefined
          ? `Tool "${tool.id}" is not registered`
          : `Tool "${tool.id}" was replaced: list the tools again`,
      );
    }
    return entry.prepare()?.then(() => entry, (error) => {
      this.release(entry);
      throw error;
    }) ?? entry;
  }

  /**
   * Compiles the schemas of all tools now, instead of at each tool's first call.
   *
   * Cloudflare Workers allow code generation only while a module loads: call `compile` there, after
   * the tools are registered. Otherwise the default engine interprets the schemas, which is slower.
   * An engine that cannot interpret (Ajv) makes the calls fail with `unavailable`.
   *
   * @throws {AggregateError} With one error per failed tool, in order of registration.
   */
  compile(): void {
    const errors: unknown[] = [];
    for (const entry of this.#entries.values()) {
      try {
        entry.compile();
      } catch (error) {
        errors.push(error);
      }
    }
    throwAll(errors, "Cannot compile the schemas of the registry");
  }

  /**
   * Removes all tools and ends all subscriptions immediately. Then waits for running calls, and
   * disposes of the tools one by one, the last registered tool first. A second call returns the
   * same promise.
   *
   * @throws {AggregateError} If tools could not be disposed of, now or when they were unregistered.
   */
  dispose(options: DisposeOptions = {}): Promise<void> {
    if (this.#ending !== undefined) return this.#ending;
    const ended = [...this.#entries.values()].reverse();
    for (const entry of ended) this.#delete(entry);
    this.#ending = this.#end(ended, options.signal);
    this.emit("removed", ended.map(({ tool }) => tool));
    this.#feed.end();
    return this.#ending;
  }

  /** {@linkcode Registry.dispose}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  /** Called before the listeners when a tool was set or removed. */
  protected follow(_id: string, _tool: Tool | undefined): void {}

  /** Notifies the subscribers. */
  protected emit(type: ToolChange["type"], tools: Iterable<Tool>, previous?: Tool): void {
    if (this.#feed.isSilent) return;
    const details = { previous, timestamp: this.#settings.clock.timestamp() };
    for (const tool of tools) this.#feed.emit(makeChange(type, tool, details));
  }

  #admit(
    tool: Tool,
    action: AdmissionAction,
    configuration: unknown = this.#config.get(tool.id),
  ): RegisteredTool {
    const config = admit(tool, this.#settings, action, configuration);
    return new RegisteredTool(tool, config, this.#settings);
  }

  #select(selection: Selection): Toolset {
    return new Toolset(this, this.#list(), selection, "tools", undefined, this.explainer);
  }

  #checkNames(tools: readonly Tool[], action: AdmissionAction): void {
    const claimed = new Map<string, string>();
    for (const tool of tools) {
      const { id } = tool;
      const doing = `${action} tool "${id}"`;
      if (action === "register" && (claimed.get(id) === id || this.hasTool(id))) {
        fail(doing, "the id is taken");
      }
      claimNames(doing, tool, claimed, this.#names);
    }
  }

  #set(entry: RegisteredTool): void {
    const { tool } = entry;
    const { id, aliases } = tool;
    if (this.#ending !== undefined) {
      fail(`register tool "${id}"`, "the registry is disposed of");
    }
    this.#forgetNames(id);
    this.#entries.set(id, entry);
    for (const name of [id, ...aliases]) this.#names.set(name, id);
    this.#touch(id, tool);
  }

  #delete({ tool: { id } }: RegisteredTool): void {
    this.#forgetNames(id);
    this.#entries.delete(id);
    this.#touch(id, undefined);
  }

  #forgetNames(id: string): void {
    for (const name of [id, ...this.getTool(id)?.aliases ?? []]) this.#names.delete(name);
  }

  #touch(id: string, tool: Tool | undefined): void {
    this.#changed.add(id);
    this.#ids = undefined;
    this.#everything = undefined;
    this.#toolsets.clear();
    this.#revision++;
    this.follow(id, tool);
  }

  /**
   * Returns the current tools, in order of id. Merges changes into the list: one change among
   * 10,000 tools does not sort them again, and 10,000 registrations in a row sort once. The list is
   * not frozen, because freezing a long one is slow (JavaScriptCore: 2 ms for 10,000 tools).
   */
  #list(): readonly Tool[] {
    if (this.#changed.size > 0) {
      this.#sorted = merge(this.#sorted, [...this.#changed].sort(), (id) => this.getTool(id));
      this.#changed.clear();
    }
    return this.#sorted;
  }

  /** Disposes of a removed tool when its calls have ended. */
  protected removed(entry: RegisteredTool): void {
    const { id, dispose } = entry.tool;
    if (dispose === undefined) return;
    const retiring = entry.idle().then(() => entry.dispose()).catch((error) => {
      if (this.#errors.length < MAX_STORED_ERRORS) this.#errors.push(error);
      this.report("dispose", id, error);
    }).finally(() => this.#retiring.delete(retiring));
    this.#retiring.add(retiring);
  }

  /** Disposes of the last tools one by one, when no call is running. */
  async #end(entries: readonly RegisteredTool[], signal: AbortSignal | undefined): Promise<void> {
    await new Promise((resolve) => {
      signal?.addEventListener("abort", resolve, { once: true });
      if (signal?.aborted) resolve(undefined);
      void Promise.all([...entries.map((entry) => entry.idle()), ...this.#retiring]).then(resolve);
    });
    const errors = this.#errors.splice(0);
    for (const entry of entries) await entry.dispose().catch((error) => errors.push(error));
    throwAll(errors, "Cannot dispose of the registry cleanly");
  }
}

/** Returns equal keys for equal selections with the same filters and policies. */
function keyOf(selection: Selection): string {
  const { filters = [], policies = [], ...data } = checkSelection(selection);
  return `${filters.map(numberOf)} ${policies.map(numberOf)} ${JSON.stringify(data)}`;
}

/** Merges the tools of the sorted list `changed` into the sorted list `old`. */
function merge(
  old: readonly Tool[],
  changed: readonly string[],
  current: (id: string) => Tool | undefined,
): readonly Tool[] {
  const merged: Tool[] = [];
  let next = 0;
  for (const id of changed) {
    while (next < old.length && (old[next] as Tool).id < id) merged.push(old[next++] as Tool);
    if (old[next]?.id === id) next++;
    const tool = current(id);
    if (tool !== undefined) merged.push(tool);
  }
  while (next < old.length) merged.push(old[next++] as Tool);
  return merged;
}
