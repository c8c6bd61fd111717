/**
 * The registry: the set of tools that exist, which changes while it is used.
 *
 * @module
 */

import {
  claimNames,
  FunctionDefinition,
  functionDefinitions,
  rejectUndefined,
  type Selection,
  type ToolAvailabilityInput,
  type Toolset,
} from "../select/mod.ts";
import type { SchemaEngine } from "../schema/mod.ts";
import {
  askAvailable,
  callHook,
  checkFunction,
  defined,
  makeTool,
  MAX_TIMEOUT_MS,
  NO_LOG,
  numberFrom,
  refuse,
  refuseOthers,
  type RegistryClock,
  type RiskLevel,
  systemClock,
  type Tool,
  type ToolCategory,
  type ToolDefinition,
} from "../tool/mod.ts";
import {
  type AdmissionAction,
  type AdmissionRules,
  admit,
  type DisposeOptions,
  type RegistryErrorReport,
  type SchemaLimits,
  type ToolRegistryOptions,
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
import {
  ChangeFeed,
  ChangeStream,
  ToolChange,
  type ToolChangeListener,
  type ToolChangesOptions,
} from "./changes.ts";
import {
  findTools,
  foundAtOnce,
  type FoundTools,
  IndexFollower,
  provideIndex,
  type ToolAnswer,
  type ToolIndex,
  type ToolSearchOptions,
} from "./search/find.ts";
import { ToolSnapshot } from "./snapshot.ts";
import { ToolsetCache } from "./toolset_cache.ts";

const OPTIONS: readonly (keyof ToolRegistryOptions)[] = [
  "engine",
  "tools",
  "services",
  "config",
  "limits",
  "index",
  "lifecycleTimeoutMs",
  "refreshEveryMs",
  "onError",
  "clock",
];

const LIMITS: readonly (keyof SchemaLimits)[] = [
  "maxSchemas",
  "maxDepth",
  "maxValues",
  "maxCharacters",
];

const checkTimeout = numberFrom(1, MAX_TIMEOUT_MS);
const checkInterval = numberFrom(100, MAX_TIMEOUT_MS);

type Report = (phase: RegistryErrorReport["phase"], toolId: string, error: unknown) => void;

/**
 * The mutable set of all tools: unique ids, change events, and each tool's life from `init` to
 * `dispose`. Callers see it through toolsets, which {@linkcode ToolRegistry.select} makes.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { typeboxEngine } from "@plue/tools";
 * import { ToolRegistry } from "@plue/tools/core";
 *
 * await using registry = new ToolRegistry({ engine: typeboxEngine() });
 * registry.registerTool({ name: "echo", description: "Says it again.", risk: "safe" });
 *
 * assert.equal(registry.count, 1);
 * assert.deepEqual(registry.ids, ["echo"]);
 * assert.equal(registry.tryRegisterTool({ name: "echo", description: "Another." }), false);
 * ```
 */
export class ToolRegistry implements ToolHost {
  /** Compiles the tools' schemas. */
  readonly engine: SchemaEngine;
  /** Every registered tool by id, in order of registration. */
  readonly #tools: Map<string, ToolLifecycle> = new Map();
  /** The ids of the tools by alias. */
  readonly #aliases: Map<string, string> = new Map();
  readonly #snapshot: ToolSnapshot = new ToolSnapshot((id) => this.#tools.get(id)?.tool);
  readonly #rules: AdmissionRules & { readonly config: Map<string, unknown> };
  readonly #settings: LifecycleSettings;
  readonly #feed: ChangeFeed;
  readonly #toolsets: ToolsetCache;
  readonly #clock: RegistryClock;
  readonly #report: Report;
  readonly #retirement: Retirement;
  readonly #index: IndexFollower | undefined;
  readonly #refreshEveryMs: number | undefined;
  /** Set while availability functions are asked at an interval. */
  #stopAsking: (() => void) | undefined;
  #isRefreshing = false;
  #ids: readonly string[] | undefined;
  #revision = 0;
  #ending: Promise<void> | undefined;

  /** @throws {TypeError | RangeError} If an option or one of the tools is wrong. */
  constructor(options: ToolRegistryOptions) {
    const {
      engine,
      tools = [],
      services = Object.freeze({}),
      config = {},
      limits = {},
      index,
      lifecycleTimeoutMs = 30_000,
      refreshEveryMs,
      onError,
      clock = systemClock,
    } = options;
    const action = "make a registry";
    refuseOthers(action, options, OPTIONS);
    refuseOthers("limit the schemas of a registry", options.limits ?? {}, LIMITS);
    if (typeof engine?.compile !== "function") {
      refuse(action, "it needs a schema engine as its engine option");
    }
    if (index !== undefined) checkFunction(action, index, "index");
    checkTimeout(action, lifecycleTimeoutMs, "lifecycleTimeoutMs");
    if (refreshEveryMs !== undefined) checkInterval(action, refreshEveryMs, "refreshEveryMs");
    this.#refreshEveryMs = refreshEveryMs;
    const report: Report = (phase, toolId, error) =>
      callHook(() => onError?.({ toolId, phase, error }), NO_LOG);
    this.#report = report;
    this.engine = engine;
    this.#rules = { engine, limits, config: new Map(Object.entries(config)) };
    this.#settings = {
      engine,
      services,
      clock,
      lifecycleTimeoutMs,
      onLateError: (tool, error) => report("dispose", tool.id, error),
    };
    this.#feed = new ChangeFeed(
      (error, { tool }) => report("listener", tool.id, error),
      () => this.#askLater(),
    );
    this.#toolsets = new ToolsetCache(this, () => this.#snapshot.peek());
    this.#clock = clock;
    this.#index = index && new IndexFollower(index, (id, error) => report("index", id, error));
    this.#retirement = new Retirement((id, error) => report("dispose", id, error));
    if (index !== undefined) provideIndex(this, () => this.#searchIndex());
    this.registerTools(tools);
  }

  /** All tools, available or not: frozen, in code-unit order of id, the same until a change. */
  get tools(): readonly Tool[] {
    return this.#snapshot.list();
  }

  /** The ids of {@linkcode ToolRegistry.tools}, in the same order. */
  get ids(): readonly string[] {
    return this.#ids ??= Object.freeze(this.tools.map((tool) => tool.id));
  }

  /** How many tools there are. */
  get count(): number {
    return this.#tools.size;
  }

  /** Counts changes, from 0. */
  get revision(): number {
    return this.#revision;
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

  /** Registers all these tools, or none of them. Throws as {@linkcode ToolRegistry.registerTool}. */
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
    this.#checkNames(added, "register");
    this.#add(added);
    return added.map(({ tool }) => tool);
  }

  /** Registers a tool, or answers `false` if its id is taken. Throws if the tool is wrong. */
  tryRegisterTool(candidate: Tool | ToolDefinition): boolean {
    const tool = makeTool(candidate);
    if (this.#tools.has(tool.id)) return false;
    const added = [this.#admit(tool, "register")];
    this.#checkNames(added, "register");
    this.#add(added);
    return true;
  }

  /**
   * Replaces the tool with the same id. Calls of the old one run to their end; then it is disposed
   * of. The new one is usable at once.
   *
   * @returns The new tool.
   * @throws {TypeError} If there is no tool with this id, or the new one is wrong.
   */
  updateTool(candidate: Tool | ToolDefinition): Tool {
    const tool = makeTool(candidate);
    const life = this.#admit(tool, "update");
    if (!this.#tools.has(tool.id)) refuse(`update tool "${tool.id}"`, "it is not registered");
    this.#checkNames([life], "update");
    this.#replace(life);
    return tool;
  }

  /**
   * Changes the configurations of tools, all of them or none. Each tool is set up anew: calls under
   * way run to their end with the old state, which is disposed of then.
   *
   * @param config Configurations by tool id; `undefined` for a tool without one.
   * @returns Changes them back, for the tools that are still registered.
   * @throws {TypeError} If a tool is not registered, or its configuration is wrong. Nothing has
   * changed then.
   */
  configureTools(config: { readonly [id: string]: unknown }): () => void {
    const given = new Map(Object.entries(config));
    const rules = { ...this.#rules, config: new Map(Object.entries(defined(config))) };
    const lives = [...given.keys()].map((id) => {
      const tool = this.#tools.get(id)?.tool;
      if (tool === undefined) refuse(`configure tool "${id}"`, "it is not registered");
      return new ToolLifecycle(tool, admit(tool, rules, "configure"), this.#settings);
    });
    const before = [...given.keys()].map((id) => [id, this.#rules.config.get(id)] as const);
    for (const life of lives) {
      const { id } = life.tool;
      const config = given.get(id);
      if (config === undefined) this.#rules.config.delete(id);
      else this.#rules.config.set(id, config);
      this.#replace(life);
    }
    return () => {
      this.configureTools(Object.fromEntries(before.filter(([id]) => this.#tools.has(id))));
    };
  }

  /** Removes a tool; `false` if there is none. It is disposed of when its calls have ended. */
  unregisterTool(id: string): boolean {
    const life = this.#tools.get(id);
    if (life === undefined) return false;
    this.#tools.delete(id);
    this.#forgetAliases(life);
    this.#touch(id);
    this.#index?.remove(id);
    this.#retirement.retire(life);
    this.#tell("removed", [life]);
    return true;
  }

  /** The tool with this id, available or not. */
  getTool(id: string): Tool | undefined {
    return this.#tools.get(id)?.tool;
  }

  /** Whether there is a tool with this id. */
  hasTool(id: string): boolean {
    return this.#tools.has(id);
  }

  /** Asks a tool now whether it is available. A tool that is not registered is not. */
  isAvailable(tool: Tool): boolean {
    const life = this.#tools.get(tool.id);
    if (life?.tool !== tool) return false;
    return this.#ask(life);
  }

  /**
   * Asks `isAvailable` functions again, and tells listeners of tools whose answer has changed since
   * the last time: here, or in any listing between. So `GET /events`, MCP clients and native hosts
   * hear of it.
   *
   * @example Usage
   * ```ts
   * import assert from "node:assert/strict";
   * import { ToolRegistry } from "@plue/tools";
   *
   * let online = true;
   * const registry = new ToolRegistry({
   *   tools: [{ name: "fetch", description: "Fetches.", isAvailable: () => online }],
   * });
   * const changes: string[] = [];
   * registry.subscribe(({ type, tool }) => changes.push(`${tool.id} is ${type}`));
   *
   * registry.refresh();
   * online = false;
   * registry.refresh("fetch");
   * assert.deepEqual(changes, ["fetch is unavailable"]);
   * ```
   *
   * @param id The tool to ask about. Absent: all.
   * @returns The tools whose answer has changed.
   * @throws {TypeError} If there is no tool with this id.
   */
  refresh(id?: string): readonly Tool[] {
    const lives = id === undefined
      ? [...this.#tools.values()]
      : [this.#tools.get(id) ?? refuse(`refresh tool "${id}"`, "it is not registered")];
    // An availability function that refreshes would be asked for ever.
    if (this.#isRefreshing) return [];
    this.#isRefreshing = true;
    const asked = lives.filter(({ tool }) => typeof tool.isAvailable === "function");
    const answers = new Map(asked.map((life) => [life, this.#ask(life)]));
    this.#isRefreshing = false;
    const changed = asked.filter((life) => life.takeAvailabilityChange());
    for (const life of changed) this.#tell(answers.get(life) ? "available" : "unavailable", [life]);
    return changed.map(({ tool }) => tool);
  }

  /** Is told by toolsets of a description function that failed; see `onError`. */
  onDescribeError(tool: Tool, error: unknown): void {
    this.#report("description", tool.id, error);
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

  /** The available tools, in a context if one is given. The same array until something changes. */
  getAvailableTools(context?: ToolAvailabilityInput | null): readonly Tool[] {
    return this.#toolsets.inContext(context).available();
  }

  /** The available tools of a category. */
  getToolsByCategory(category: ToolCategory): readonly Tool[] {
    return this.select({ categories: [category] }).available();
  }

  /** The available tools with a tag. */
  getToolsByTag(tag: string): readonly Tool[] {
    return this.select({ tagsAll: [tag] }).available();
  }

  /** The available tools whose risk is `max` or less. */
  getToolsByRiskLevel(max: RiskLevel): readonly Tool[] {
    return this.select(rejectUndefined({ maxRisk: max })).available();
  }

  /**
   * The available tools that a role may use: those that list it, and those that list none. `null` is
   * a caller without a role.
   */
  getToolsForRole(role: string | null): readonly Tool[] {
    return this.select(rejectUndefined({ role })).available();
  }

  /**
   * The available tools that fit a query, best first, with scores and reasons in `hits`: all of
   * them, unless a limit is given. See `searchToolset`.
   *
   * @throws {TypeError} If the registry was made without an index, its index is asynchronous
   * (`searchToolsetAsync` waits for it), or an option is unknown.
   * @throws {RangeError} If an option is out of its range.
   */
  searchTools(query: string, options: ToolSearchOptions = {}): FoundTools {
    return foundAtOnce(
      findTools(this.select(), query, options, this.count, () => this.#searchIndex()),
    );
  }

  /** The definition for a model of each available tool, in a context if one is given. */
  getFunctionDefinitions(context?: ToolAvailabilityInput | null): readonly FunctionDefinition[] {
    return functionDefinitions(this.getAvailableTools(context));
  }

  /** The definition for a model of the tool with this id, available or not. */
  getFunctionDefinition(id: string): FunctionDefinition | undefined {
    const tool = this.getTool(id);
    return tool && FunctionDefinition.fromTool(tool);
  }

  /**
   * Subscribes to changes. Listeners are called in the order of the changes, before the change's
   * method returns; one that throws stops nothing (see `onError`).
   *
   * @returns Ends the subscription.
   */
  subscribe(listener: ToolChangeListener): () => void {
    return this.#feed.subscribe(listener);
  }

  /** The changes from now on, for `for await`. Ends when the registry is disposed of. */
  changes(
    options?: ToolChangesOptions,
  ): AsyncIterableIterator<ToolChange, undefined, void> & AsyncDisposable {
    return new ChangeStream(this.#feed, options);
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

  /** Ends a call that {@linkcode ToolRegistry.acquire} began. */
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
    const starting = [...this.#tools.values()].map(async (life) =>
      (await life.acquire()).release()
    );
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
    const ended = [...this.#tools.values()].reverse();
    this.#tools.clear();
    this.#aliases.clear();
    this.#index?.clear();
    for (const { tool } of ended) this.#touch(tool.id);
    this.#ending = this.#retirement.end(ended, options.signal);
    this.#tell("removed", ended);
    this.#feed.end();
    return this.#ending;
  }

  /** {@linkcode ToolRegistry.dispose}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #ask(life: ToolLifecycle): boolean {
    const { tool } = life;
    return life.noteAvailable(
      askAvailable(tool, life, (error) => this.#report("availability", tool.id, error)),
    );
  }

  /** Begins to ask at the interval when there are listeners, and stops when there are none. */
  #askLater(): void {
    this.#stopAsking?.();
    this.#stopAsking = undefined;
    if (this.#refreshEveryMs === undefined || this.#feed.isSilent) return;
    this.#stopAsking = this.#clock.setTimeout(() => {
      this.refresh();
      this.#askLater();
    }, this.#refreshEveryMs);
  }

  #searchIndex(): ToolIndex<ToolAnswer> {
    return this.#index?.of(() => this.#snapshot.peek()) ??
      refuse("search", "the registry has no index option: createToolIndex makes one");
  }

  #admit(tool: Tool, action: "register" | "update"): ToolLifecycle {
    return new ToolLifecycle(tool, admit(tool, this.#rules, action), this.#settings);
  }

  /** Refuses tools whose ids or aliases are those of other tools. */
  #checkNames(added: readonly ToolLifecycle[], action: AdmissionAction): void {
    const ownerOf = (name: string): string | undefined =>
      this.#tools.has(name) ? name : this.#aliases.get(name);
    const claimed = new Map<string, string>();
    for (const { tool } of added) claimNames(`${action} tool "${tool.id}"`, tool, ownerOf, claimed);
  }

  #forgetAliases({ tool }: ToolLifecycle): void {
    for (const alias of tool.aliases) this.#aliases.delete(alias);
  }

  #add(added: readonly ToolLifecycle[]): void {
    for (const life of added) this.#set(life);
    this.#tell("added", added);
  }

  #replace(life: ToolLifecycle): void {
    const previous = this.#tools.get(life.tool.id);
    this.#set(life);
    if (previous !== undefined) this.#retirement.retire(previous);
    this.#tell("updated", [life], previous);
  }

  #set(life: ToolLifecycle): void {
    const { tool } = life;
    if (this.#ending !== undefined) {
      refuse(`register tool "${tool.id}"`, "the registry is disposed of");
    }
    const previous = this.#tools.get(tool.id);
    if (previous !== undefined) this.#forgetAliases(previous);
    this.#tools.set(tool.id, life);
    for (const alias of tool.aliases) this.#aliases.set(alias, tool.id);
    this.#touch(tool.id);
    this.#index?.add(tool);
  }

  #touch(id: string): void {
    this.#snapshot.touch(id);
    this.#ids = undefined;
    this.#revision++;
  }

  #tell(
    type: ToolChange["type"],
    lives: readonly ToolLifecycle[],
    replaced?: ToolLifecycle,
  ): void {
    if (this.#feed.isSilent) return;
    const details = { previous: replaced?.tool, timestamp: this.#clock.timestamp() };
    for (const { tool } of lives) this.#feed.emit(ToolChange[type](tool, details));
  }
}

function refuseTaken({ id }: Tool): never {
  return refuse(`register tool "${id}"`, "the id is taken");
}
