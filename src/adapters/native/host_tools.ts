/**
 * The tools that a native host has under one configuration: its listing and its calls.
 * Both come from the same toolset.
 *
 * @module
 */

import type { CallTasks } from "../../execute/durable/mod.ts";
import type { ToolDispatcher } from "../../execute/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import { createToolBridge } from "../../finding/mod.ts";
import type { Selection, Toolset } from "../../select/mod.ts";
import { describeTool, refuse, type Tool } from "../../tool/mod.ts";
import { type NativeConfig, NativeConfigError } from "./config.ts";

/** All tools of this side. */
export interface NativeTools {
  readonly registry: Registry;
  /** Runs the calls. It is given the host's toolset. */
  readonly dispatcher: ToolDispatcher;
  /** The selection of tools that hosts may use, independent of their configuration. */
  readonly selection?: Selection | undefined;
  /** Stores tasks. */
  readonly tasks?: CallTasks | undefined;
}

/** Calls `run` every `ms` milliseconds. Returns a function that stops it. */
export type Ticker = (run: () => void, ms: number) => () => void;

/** The interval at which availability functions, filters and policies are called. */
const ASK_EVERY_MS = 1_000;

/** The interval at which tasks of processes that have died are recovered. */
const RECOVER_EVERY_MS = 30_000;

/** The time for which the results of these functions are reused after calls. */
const ANSWERS_HOLD_MS = 100;

/**
 * Sets the configurations of tools: of all of them, or, if one fails, of none.
 *
 * @returns A function that restores the configurations of the tools that are still registered.
 * @throws {TypeError} If a tool is not registered, or its configuration is invalid.
 */
function configure(registry: Registry, configs: Readonly<Record<string, unknown>>): () => void {
  const before = new Map<string, unknown>();
  const giveBack = (): void => {
    for (const [id, config] of before) {
      const tool = registry.getTool(id);
      if (tool !== undefined) registry.updateTool(tool, { config });
    }
  };
  try {
    for (const [id, config] of Object.entries(configs)) {
      const tool = registry.getTool(id) ?? refuse(`update tool "${id}"`, "it is not registered");
      const old = registry.getConfig(id);
      registry.updateTool(tool, { config });
      before.set(id, old);
    }
  } catch (cause) {
    giveBack();
    throw cause;
  }
  return giveBack;
}

/** The current tools of one configuration. */
export class HostTools {
  readonly #tools: NativeTools;
  readonly #config: NativeConfig;
  readonly #onChange: () => void;
  readonly #tick: Ticker;
  readonly #now: () => number;
  readonly #end: (() => void)[] = [];
  /** The tools that hosts may have. */
  #offered: Toolset;
  #toolset: Toolset;
  #dispatcher: ToolDispatcher;
  #listed: readonly Tool[] = [];
  #askedAt = 0;
  /** Set while functions can change the list. */
  #stopTicking: (() => void) | undefined;

  /**
   * @param tools All tools of this side.
   * @param config The host's configuration.
   * @param onChange Called when the list may have changed.
   * @param tick Calls a function at intervals.
   * @param now Returns the time, in milliseconds.
   * @throws {NativeConfigError} If the host's configuration is invalid.
   */
  constructor(
    tools: NativeTools,
    config: NativeConfig,
    onChange: () => void,
    tick: Ticker,
    now: () => number,
  ) {
    this.#tools = tools;
    this.#config = config;
    this.#onChange = onChange;
    this.#tick = tick;
    this.#now = now;
    this.#offered = tools.registry.select(tools.selection);
    try {
      this.#toolset = shownOf(this.#offered, config);
      if (config.config !== undefined) this.#end.push(configure(tools.registry, config.config));
    } catch (cause) {
      throw new NativeConfigError(`Cannot use config_json: ${messageOf(cause)}`, { cause });
    }
    this.#dispatcher = tools.dispatcher.withToolset(this.#toolset);
    this.#watch();
    this.#end.push(tools.registry.subscribe(onChange));
    const { tasks, dispatcher } = tools;
    if (tasks === undefined) return;
    // If the store does not answer, the next interval tries again.
    const recover = (): void => void tasks.recover(dispatcher).catch(() => {});
    recover();
    this.#end.push(tick(recover, RECOVER_EVERY_MS));
  }

  /** All tools, including hidden ones. */
  get registry(): Registry {
    return this.#tools.registry;
  }

  /** Stores tasks; `undefined` if the tools have none. */
  get tasks(): CallTasks | undefined {
    return this.#tools.tasks;
  }

  /** Runs calls of the current tools. */
  get dispatcher(): ToolDispatcher {
    this.#follow();
    return this.#dispatcher;
  }

  /** The list, as JSON; `undefined` if it has not changed since the last call. */
  newList(): string | undefined {
    this.#follow();
    this.#askedAt = this.#now();
    const tools = this.#toolset.available();
    if (tools === this.#listed) return undefined;
    this.#listed = tools;
    return writeToolList(tools);
  }

  /**
   * True if availability functions should be called after a call, which may have changed their
   * results.
   */
  get isListStale(): boolean {
    return this.#stopTicking !== undefined && this.#now() - this.#askedAt >= ANSWERS_HOLD_MS;
  }

  /** Stops following the registry, and restores the configurations of its tools. */
  close(): void {
    this.#stopTicking?.();
    this.#stopTicking = undefined;
    for (const end of this.#end.splice(0).reverse()) end();
  }

  #follow(): void {
    if (this.#offered.isCurrent()) return;
    const { registry, selection, dispatcher } = this.#tools;
    this.#offered = registry.select(selection);
    this.#toolset = shownOf(this.#offered, this.#config);
    this.#dispatcher = dispatcher.withToolset(this.#toolset);
    this.#watch();
  }

  /** Starts or stops the interval for availability functions, filters and policies. */
  #watch(): void {
    const { mayChange } = this.#toolset;
    if (mayChange === (this.#stopTicking !== undefined)) return;
    if (mayChange) this.#stopTicking = this.#tick(this.#onChange, ASK_EVERY_MS);
    else {
      this.#stopTicking?.();
      this.#stopTicking = undefined;
    }
  }
}

/** The host's part of the offered tools: the tools that it selects, or the bridge to them. */
function shownOf(owned: Toolset, { selection, bridge }: NativeConfig): Toolset {
  const selected = owned.narrow(selection);
  return bridge === undefined ? selected : createToolBridge(selected, bridge);
}

/** The message without its first words, for which the caller has its own. */
function messageOf(cause: unknown): string {
  return cause instanceof Error
    ? cause.message.replace(/^Cannot (select tools: |make a tool bridge: |update )/, "")
    : String(cause);
}

/** The JSON of each tool, created once because tools are immutable. */
const written = new WeakMap<Tool, string>();

/**
 * Returns a JSON object of the tools' definitions by name, in the order of the tools. It is
 * assembled as text, because JavaScript objects sort numeric names first.
 */
export function writeToolList(tools: readonly Tool[]): string {
  return `{${tools.map((tool) => `${JSON.stringify(tool.id)}:${writeTool(tool)}`).join(",")}}`;
}

function writeTool(tool: Tool): string {
  let text = written.get(tool);
  if (text === undefined) {
    // `plue_tool_execute` uses the id as the name.
    const { id, namespace: _inId, ...rest } = describeTool(tool);
    written.set(tool, text = JSON.stringify({ ...rest, name: id }));
  }
  return text;
}
