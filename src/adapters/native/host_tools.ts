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
  /** Which of them hosts may have, whatever their configuration says. */
  readonly selection?: Selection | undefined;
  /** Keeps calls that have a life of their own. */
  readonly tasks?: CallTasks | undefined;
}

/** Calls `run` every `ms` milliseconds until the function that it returns is called. */
export type Ticker = (run: () => void, ms: number) => () => void;

/** How often availability functions, filters and policies are called while nothing else happens. */
const ASK_EVERY_MS = 1_000;

/** How often tasks are looked for whose process has died. */
const RECOVER_EVERY_MS = 30_000;

/** How long their answers hold while calls come and go. */
const ANSWERS_HOLD_MS = 100;

/**
 * Gives tools other configurations: all of them, or none.
 *
 * @returns Gives the tools that are still registered the configurations back that they had.
 * @throws {TypeError} If a tool is not registered, or its configuration is wrong.
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

/** The tools of one configuration, as they are now. */
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
   * @param tools What there is.
   * @param config What the host wrote.
   * @param onChange Is called when the list may have changed.
   * @param tick Calls a function again and again.
   * @param now Tells the time, in milliseconds.
   * @throws {NativeConfigError} If what the host wrote is wrong.
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
    // A store that does not answer now is asked again.
    const recover = (): void => void tasks.recover(dispatcher).catch(() => {});
    recover();
    this.#end.push(tick(recover, RECOVER_EVERY_MS));
  }

  /** All tools, of which the host may see some. */
  get registry(): Registry {
    return this.#tools.registry;
  }

  /** Keeps tasks, if the tools have some. */
  get tasks(): CallTasks | undefined {
    return this.#tools.tasks;
  }

  /** Runs calls of the tools as they are now. */
  get dispatcher(): ToolDispatcher {
    this.#follow();
    return this.#dispatcher;
  }

  /** The list, as JSON; `undefined` if it is the one that was asked for last. */
  newList(): string | undefined {
    this.#follow();
    this.#askedAt = this.#now();
    const tools = this.#toolset.available();
    if (tools === this.#listed) return undefined;
    this.#listed = tools;
    return writeToolList(tools);
  }

  /**
   * Whether availability functions are worth asking again, now that a call has ended: it may have
   * made tools available or not.
   */
  get isListStale(): boolean {
    return this.#stopTicking !== undefined && this.#now() - this.#askedAt >= ANSWERS_HOLD_MS;
  }

  /** Stops following the registry, and gives its tools the configuration back that they had. */
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

  /** Starts or stops to call availability functions, filters and policies by the clock. */
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

/** What the host has of the owner's tools: all that it asks for, or the bridge to them. */
function shownOf(owned: Toolset, { selection, bridge }: NativeConfig): Toolset {
  const selected = owned.narrow(selection);
  return bridge === undefined ? selected : createToolBridge(selected, bridge);
}

/** The problem, without the "Cannot do this: " that the caller's own replaces. */
function messageOf(cause: unknown): string {
  return cause instanceof Error
    ? cause.message.replace(/^Cannot (select tools: |make a tool bridge: |update )/, "")
    : String(cause);
}

/** The JSON of each tool. Tools are immutable, so it is written once. */
const written = new WeakMap<Tool, string>();

/**
 * A JSON object of the tools' definitions by name, in the order of the tools. It is put together as
 * text: JavaScript's own objects put names that are numbers first.
 */
export function writeToolList(tools: readonly Tool[]): string {
  return `{${tools.map((tool) => `${JSON.stringify(tool.id)}:${writeTool(tool)}`).join(",")}}`;
}

function writeTool(tool: Tool): string {
  let text = written.get(tool);
  if (text === undefined) {
    // `plue_tool_execute` takes the id for the name.
    const { id, namespace: _inId, ...rest } = describeTool(tool);
    written.set(tool, text = JSON.stringify({ ...rest, name: id }));
  }
  return text;
}
