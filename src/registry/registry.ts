/**
 * The kernel of a registry: the map of the tools, their revision, their lifecycle, and one
 * `subscribe`. `ToolRegistry` composes what stands beside it.
 *
 * @module
 */

import type { Selection, Toolset } from "../select/mod.ts";
import type { SchemaEngine } from "../schema/mod.ts";
import {
  askAvailable,
  callHook,
  makeTool,
  NO_LOG,
  refuse,
  type RegistryClock,
  systemClock,
  type Tool,
  type ToolDefinition,
} from "../tool/mod.ts";
import {
  type AdmissionAction,
  type AdmissionRules,
  admit,
  checkOptions,
  type DisposeOptions,
  type RegistryOptions,
  type Report,
  type UpdateOptions,
} from "./options.ts";
import {
  type LifecycleSettings,
  Retirement,
  throwAll,
  type ToolHost,
  ToolLifecycle,
  ToolLifecycleError,
  type ToolRuntime,
} from "./lifecycle.ts";
import { ChangeFeed, ToolChange, type ToolChangeListener } from "./changes.ts";
import { ToolMap } from "./tool_map.ts";
import { ToolsetCache } from "./toolset_cache.ts";

/**
 * The mutable set of all tools: unique ids, change events, and each tool's life from `init` to
 * `dispose`. Callers see it through toolsets, which {@linkcode Registry.select} makes. The
 * `ToolRegistry` of `@plue/tools` is one with search, definitions, listings by field and `refresh`.
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
 * assert.equal(registry.tryRegisterTool({ name: "echo", description: "Another." }), false);
 * ```
 */
export class Registry implements ToolHost {
  /** Checks the tools' schemas when they are registered, and compiles them. */
  readonly engine: SchemaEngine;
  readonly #tools: ToolMap = new ToolMap();
  readonly #rules: AdmissionRules & { readonly config: Map<string, unknown> };
  readonly #settings: LifecycleSettings;
  readonly #feed: ChangeFeed;
  readonly #toolsets: ToolsetCache;
  readonly #clock: RegistryClock;
  readonly #retirement: Retirement;
  #ending: Promise<void> | undefined;
  /** Passes an error that reaches no caller to `onError`. */
  protected readonly report: Report;

  /** @throws {TypeError | RangeError} If an option or one of the tools is wrong. */
  constructor(options: RegistryOptions) {
    const {
      engine,
      tools = [],
      services = Object.freeze({}),
      config = {},
      limits = {},
      lifecycleTimeoutMs = 30_000,
      onError,
      clock = systemClock,
    } = options;
    checkOptions(options);
    const report: Report = (phase, toolId, error) =>
      callHook(() => onError?.({ toolId, phase, error }), NO_LOG);
    this.report = report;
    this.engine = engine;
    this.#rules = { engine, limits, config: new Map(Object.entries(config)) };
    this.#settings = {
      engine,
      services,
      clock,
      lifecycleTimeoutMs,
      onLateError: (tool, error) => report("dispose", tool.id, error),
    };
    this.#feed = new ChangeFeed((error, { tool }) => report("listener", tool.id, error));
    this.#toolsets = new ToolsetCache(this, () => this.#tools.peek());
    this.#clock = clock;
    this.#retirement = new Retirement((id, error) => report("dispose", id, error));
    this.registerTools(tools);
  }

  /** All tools, available or not: frozen, in code-unit order of id, the same until a change. */
  get tools(): readonly Tool[] {
    return this.#tools.tools;
  }

  /** The ids of {@linkcode Registry.tools}, in the same order. */
  get ids(): readonly string[] {
    return this.#tools.ids;
  }

  /** How many tools there are. */
  get count(): number {
    return this.#tools.size;
  }

  /** Counts changes, from 0. */
  get revision(): number {
    return this.#tools.revision;
  }

  /**
   * Registers a tool.
   *
   * @returns The tool: made, when a plain definition was given.
   * @throws {TypeError} If its id is taken, or it is wrong: the message names the JSON Pointer of
   * what is wrong in a schema. Nothing has changed then.
   */
  registerTool(candidate: Tool | ToolDefinition): Tool {
    const tool = makeTool(candidate);
    return this.tryRegisterTool(tool) ? tool : refuseTaken(tool);
  }

  /** Registers all these tools, or none of them. Throws as {@linkcode Registry.registerTool}. */
  registerTools(candidates: Iterable<Tool | ToolDefinition>): readonly Tool[] {
    if (typeof candidates?.[Symbol.iterator] !== "function") {
      refuse("register tools", "they must be a list");
    }
    const lives = new Map<string, ToolLifecycle>();
    for (const candidate of candidates) {
      const tool = makeTool(candidate);
      if (lives.has(tool.id)) refuseTaken(tool);
      lives.set(tool.id, this.#admit(tool, "register"));
    }
    const added = [...lives.values()];
    // Checked after the loop, which ran the caller's code: that may have registered one of them.
    for (const { tool } of added) if (this.#tools.has(tool.id)) refuseTaken(tool);
    this.#tools.checkNames(added, "register");
    for (const life of added) this.#set(life);
    const tools = added.map(({ tool }) => tool);
    this.emit("added", tools);
    return tools;
  }

  /** Registers a tool, or answers `false` if its id is taken. Throws if the tool is wrong. */
  tryRegisterTool(candidate: Tool | ToolDefinition): boolean {
    const tool = makeTool(candidate);
    return !this.hasTool(tool.id) && this.registerTools([tool]).length > 0;
  }

  /**
   * Replaces the tool with the same id. Calls of the old one run to their end; then it is disposed
   * of. The new one is usable at once, and set up anew.
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
   * @param candidate The new tool.
   * @param options Its configuration, if that changes.
   * @returns The new tool.
   * @throws {TypeError} If there is no tool with this id, or the new one or its configuration is
   * wrong. Nothing has changed then.
   */
  updateTool(candidate: Tool | ToolDefinition, options: UpdateOptions = {}): Tool {
    const tool = makeTool(candidate);
    const { config = this.#rules.config.get(tool.id) } = options;
    const life = this.#admit(tool, "update", config);
    const previous = this.#tools.get(tool.id) ??
      refuse(`update tool "${tool.id}"`, "it is not registered");
    this.#tools.checkNames([life], "update");
    if (config !== undefined) this.#rules.config.set(tool.id, config);
    this.#set(life);
    this.#retirement.retire(previous);
    this.emit("updated", [tool], previous.tool);
    return tool;
  }

  /** Removes a tool; `false` if there is none. It is disposed of when its calls have ended. */
  unregisterTool(id: string): boolean {
    const life = this.#tools.get(id);
    if (life === undefined) return false;
    this.#delete(id);
    this.#retirement.retire(life);
    this.emit("removed", [life.tool]);
    return true;
  }

  /** The tool with this id, available or not. */
  getTool(id: string): Tool | undefined {
    return this.#tools.get(id)?.tool;
  }

  /**
   * The configuration of the tool with this id: checked, copied and frozen; `undefined` if it takes
   * none, or there is no such tool.
   */
  getConfig(id: string): unknown {
    return this.#tools.get(id)?.config;
  }

  /** Whether there is a tool with this id. */
  hasTool(id: string): boolean {
    return this.#tools.has(id);
  }

  /** Asks a tool now whether it is available. A tool that is not registered is not. */
  isAvailable(tool: Tool): boolean {
    const life = this.#tools.get(tool.id);
    if (life?.tool !== tool) return false;
    return askAvailable(tool, life, (error) => this.report("availability", tool.id, error));
  }

  /** Is told by toolsets of a description function that failed; see `onError`. */
  onDescribeError(tool: Tool, error: unknown): void {
    this.report("description", tool.id, error);
  }

  /**
   * The tools that a selection picks, as a toolset. Until the registry changes, selections that say
   * the same, with the same filters and policies, give the same toolset.
   *
   * @throws {TypeError} If the selection is wrong.
   */
  select(selection?: Selection): Toolset {
    return this.#toolsets.select(selection);
  }

  /**
   * Subscribes to changes. Listeners are called in the order of the changes, before the change's
   * method returns; one that throws stops nothing (see `onError`).
   *
   * @param listener Receives every change from now on.
   * @param onEnd Called when the registry is disposed of, after the last change. Must not throw.
   * @returns Ends the subscription.
   */
  subscribe(listener: ToolChangeListener, onEnd?: () => void): () => void {
    return this.#feed.subscribe(listener, onEnd);
  }

  /** Begins a call; see {@linkcode ToolHost.acquire}. */
  acquire(tool: Tool): ToolRuntime | Promise<ToolRuntime> {
    const life = this.#tools.get(tool.id);
    if (life?.tool === tool) return life.acquire();
    throw new ToolLifecycleError(
      life === undefined
        ? `Tool "${tool.id}" is not registered`
        : `Tool "${tool.id}" was replaced by another version: list the tools again`,
    );
  }

  /** Ends a call that {@linkcode Registry.acquire} began. */
  release(runtime: ToolRuntime): void {
    // Runtimes come from acquire, which gives nothing else.
    (runtime as ToolLifecycle).release();
  }

  /**
   * Compiles the schemas of all tools now, rather than each with its tool's first call.
   *
   * On Cloudflare Workers code may be generated only while a module loads: call it there, after the
   * tools are registered. Otherwise the default engine interprets the schemas, which is slower, and
   * an engine that cannot (Ajv) makes the calls fail with `unavailable`.
   *
   * @example Usage
   * ```ts
   * import assert from "node:assert/strict";
   * import { ToolRegistry } from "@plue/tools";
   *
   * const registry = new ToolRegistry({ tools: [{ name: "ping", description: "Answers." }] });
   * registry.compile();
   *
   * assert.equal(registry.count, 1);
   * ```
   *
   * @throws {AggregateError} If some cannot be compiled: one error each, in order of registration.
   */
  compile(): void {
    const errors: unknown[] = [];
    for (const life of this.#tools.values()) {
      try {
        life.compile();
      } catch (error) {
        errors.push(error);
      }
    }
    throwAll(errors, "Cannot compile the schemas of the registry");
  }

  /**
   * Compiles what has not been compiled, and runs every `init` that has not run, all at once.
   *
   * @throws {AggregateError} If some failed, or there is configuration for a tool that is not
   * registered: one error each, in order of registration.
   */
  async ready(): Promise<void> {
    const starting = this.#tools.values().map(async (life) => (await life.acquire()).release());
    const errors: unknown[] = [];
    for (const outcome of await Promise.allSettled(starting)) {
      if (outcome.status === "rejected") errors.push(outcome.reason);
    }
    for (const id of this.#rules.config.keys()) {
      if (!this.#tools.has(id)) {
        errors.push(new TypeError(`Cannot configure tool "${id}": it is not registered`));
      }
    }
    throwAll(errors, "Cannot make the registry ready");
  }

  /**
   * Removes all tools and ends all subscriptions, at once; waits for the calls under way; then
   * disposes of the tools one after another, the last registered first. A second call waits for the
   * same end.
   *
   * @throws {AggregateError} If tools could not be disposed of, now or when they were unregistered.
   */
  dispose(options: DisposeOptions = {}): Promise<void> {
    if (this.#ending !== undefined) return this.#ending;
    const ended = this.#tools.values().toReversed();
    for (const { tool } of ended) this.#delete(tool.id);
    this.#ending = this.#retirement.end(ended, options.signal);
    this.emit("removed", ended.map(({ tool }) => tool));
    this.#feed.end();
    return this.#ending;
  }

  /** {@linkcode Registry.dispose}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  /**
   * Called when the tool of an id was set or removed, before any listener: for what stands beside
   * the registry and must never lag behind it.
   */
  protected follow(_id: string, _tool: Tool | undefined): void {}

  /** Notifies the subscribers. */
  protected emit(type: ToolChange["type"], tools: Iterable<Tool>, previous?: Tool): void {
    if (this.#feed.isSilent) return;
    const details = { previous, timestamp: this.#clock.timestamp() };
    for (const tool of tools) this.#feed.emit(ToolChange[type](tool, details));
  }

  #admit(
    tool: Tool,
    action: AdmissionAction,
    config: unknown = this.#rules.config.get(tool.id),
  ): ToolLifecycle {
    return new ToolLifecycle(tool, admit(tool, this.#rules, action, config), this.#settings);
  }

  #set(life: ToolLifecycle): void {
    const { tool } = life;
    if (this.#ending !== undefined) {
      refuse(`register tool "${tool.id}"`, "the registry is disposed of");
    }
    this.#tools.set(life);
    this.follow(tool.id, tool);
  }

  #delete(id: string): void {
    this.#tools.delete(id);
    this.follow(id, undefined);
  }
}

function refuseTaken({ id }: Tool): never {
  return refuse(`register tool "${id}"`, "the id is taken");
}
