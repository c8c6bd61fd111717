/**
 * The tools that a native host has with one configuration: reads `config_json`, lists the tools,
 * and runs all operations but the call. Everything uses the same toolset.
 */

import type { CallTasks, TaskState } from "../../execute/durable/mod.ts";
import type { DispatchContext, ToolDispatcher } from "../../execute/mod.ts";
import { createToolBridge, type ToolBridgeOptions } from "../../finding/mod.ts";
import type { Registry } from "../../registry/mod.ts";
import * as select from "../../select/mod.ts";
import type { Toolset } from "../../select/mod.ts";
import {
  type Answers,
  assertSync,
  attemptOr,
  describeTool,
  fail,
  isObject,
  once,
  rejectUnknownFields,
  type Tool,
  type ToolFailure,
  type ToolResult,
} from "../../tool/mod.ts";
import type { BridgeFailureCode } from "./replies.ts";

/* ---- config_json ---- */

interface NativeConfig {
  readonly selection: select.Selection;
  /** The options of the bridge to the tools; absent if the host uses the tools directly. */
  readonly bridge?: ToolBridgeOptions;
  readonly config: { readonly [id: string]: unknown } | undefined;
}

/** Thrown if the host's configuration is invalid. */
export class NativeConfigError extends TypeError {
  override readonly name = "NativeConfigError";
}

const ACTION = "read config_json";
const FIELDS: readonly string[] = [...select.selectionDataFields(), "bridge", "config"];

/** Reads `config_json`. The values of selection and bridge are checked when they are used. */
export function readNativeConfig(text: string | undefined): NativeConfig {
  const value = parse(text === undefined || text.trim() === "" ? "{}" : text);
  try {
    rejectUnknownFields(ACTION, value, FIELDS, select.selectionHint);
  } catch (cause) {
    throw new NativeConfigError((cause as TypeError).message, { cause });
  }
  const { config, bridge = false, ...selection } = value;
  if (typeof bridge !== "boolean" && !isObject(bridge)) {
    throw wrong('"bridge" must be true, false or an object of options');
  }
  if (config !== undefined && !isObject(config)) {
    throw wrong('"config" must be an object of configurations by tool id');
  }
  // The options are checked when the bridge is made.
  return { selection, config, ...(bridge && { bridge: bridge === true ? {} : bridge }) };
}

function parse(text: string): { readonly [field: string]: unknown } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw wrong("it is not JSON", cause);
  }
  if (!isObject(value)) throw wrong("it must be a JSON object");
  return value;
}

function wrong(problem: string, cause?: unknown): NativeConfigError {
  return new NativeConfigError(
    `Cannot ${ACTION}: ${problem}`,
    cause === undefined ? undefined : { cause },
  );
}

/* ---- the tools of a host ---- */

export interface NativeTools {
  readonly registry: Registry;
  /** Runs the calls, restricted to the host's toolset. */
  readonly dispatcher: ToolDispatcher;
  /** The selection of tools that hosts may use, independent of their configuration. */
  readonly selection?: select.Selection | undefined;
  readonly tasks?: CallTasks | undefined;
  /** Makes the bridge for `"bridge": true` in a configuration. By default, `createToolBridge`. */
  readonly bridge?: ((toolset: Toolset) => Toolset) | undefined;
}

/** Calls `run` every `ms` milliseconds. Returns a function that stops it. */
export type Ticker = (run: () => void, ms: number) => () => void;

/** The interval at which availability functions, filters and policies are called. */
const ASK_EVERY_MS = 1_000;

/** The interval at which tasks of processes that have died are recovered. */
const RECOVER_EVERY_MS = 30_000;

/** The time after which an operation on a task fails. */
const TASK_LIMIT_MS = 10_000;

/** The time for which results of availability functions, filters and policies are reused. */
const ANSWERS_HOLD_MS = 100;

/** Configures the tools atomically. Returns a function that undoes the configuration. */
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
      const tool = registry.getTool(id) ??
        fail(`update tool "${id}"`, "the tool is not registered");
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
  /** Stops the interval; set while availability functions, filters or policies can change the list. */
  #stopTicking: (() => void) | undefined;

  /** @param onChange Called when the list may have changed. */
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
      this.#toolset = this.#shown();
      if (config.config !== undefined) this.#end.push(configure(tools.registry, config.config));
    } catch (cause) {
      throw new NativeConfigError(`Cannot use config_json: ${messageOf(cause)}`, { cause });
    }
    this.#dispatcher = tools.dispatcher.withToolset(this.#toolset);
    this.#watch();
    this.#end.push(tools.registry.subscribe(onChange));
    const { tasks, dispatcher } = tools;
    if (tasks === undefined) return;
    // If the store does not respond, the next interval tries again.
    const recover = (): void => {
      this.#follow();
      tasks.recover(dispatcher.withToolset(this.#offered)).catch(() => {});
    };
    recover();
    this.#end.push(tick(recover, RECOVER_EVERY_MS));
  }

  /** All tools, including hidden ones. */
  get registry(): Registry {
    return this.#tools.registry;
  }

  get tasks(): CallTasks | undefined {
    return this.#tools.tasks;
  }

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

  /** True if a call may have changed the results of availability functions. */
  get isListStale(): boolean {
    return this.#stopTicking !== undefined && this.#now() - this.#askedAt >= ANSWERS_HOLD_MS;
  }

  /** Rejects if an operation on a task takes too long, because a store may never answer. */
  limit<T>(operation: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = this.#tick(() => reject(new Error("no answer in time")), TASK_LIMIT_MS);
      operation.then(resolve, reject).finally(stop);
    });
  }

  /** Stops following the registry, and restores the configurations of its tools. */
  close(): void {
    this.#stopTicking?.();
    this.#stopTicking = undefined;
    for (const end of this.#end.splice(0).reverse()) end();
  }

  /** Returns the tools of the host: its selection of the offered tools, or a bridge to them. */
  #shown(): Toolset {
    const { selection, bridge } = this.#config;
    const selected = this.#offered.narrow(selection);
    if (bridge === undefined) return selected;
    const { bridge: make } = this.#tools;
    if (make === undefined) return createToolBridge(selected, bridge);
    if (Object.keys(bridge).length > 0) {
      fail("make a tool bridge", '"bridge" must be true: the tools module sets its options');
    }
    const made = assertSync(make(selected));
    // The bridge to another toolset might reach tools that are hidden from this host.
    if (made?.bridge?.target === selected) return made;
    fail("make a tool bridge", "the option bridge must return a bridge to the given toolset");
  }

  #follow(): void {
    if (this.#offered.isCurrent()) return;
    const { registry, selection, dispatcher } = this.#tools;
    this.#offered = registry.select(selection);
    // The registry rejects calls of unregistered tools.
    this.#toolset = attemptOr(this.#toolset, () => this.#shown());
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

/** Returns the message without its first words, because the caller puts other words before it. */
function messageOf(cause: unknown): string {
  return cause instanceof Error
    ? cause.message.replace(/^Cannot (select tools: |make a tool bridge: |update )/, "")
    : String(cause);
}

/** The JSON of each tool, created once because tools are immutable. */
const written = new WeakMap<Tool, string>();

/** Writes the definitions by name, as text: JavaScript objects would sort numeric names first. */
export function writeToolList(tools: readonly Tool[]): string {
  return `{${tools.map((tool) => `${JSON.stringify(tool.id)}:${writeTool(tool)}`).join(",")}}`;
}

function writeTool(tool: Tool): string {
  return once(written, tool, () => {
    // In C, the name of a tool is its id.
    const { id, namespace: _inId, ...rest } = describeTool(tool);
    return JSON.stringify({ ...rest, name: id });
  });
}

/* ---- operations besides a call ---- */

/** The operations, by their numbers in the flags of an execute frame. */
export const OPERATION = {
  call: 0,
  resume: 1,
  startTask: 2,
  pollTask: 3,
  cancelTask: 4,
  answerTask: 5,
} as const;

export interface Refusal {
  readonly code: BridgeFailureCode;
  readonly message: string;
}

/** Runs one of {@linkcode OPERATION} on a tool, a ticket or a task, with parameters or answers. */
export async function operate(
  tools: HostTools,
  operation: number,
  name: string,
  json: string | undefined,
  context: DispatchContext,
): Promise<ToolResult | Refusal> {
  const { dispatcher, tasks } = tools;
  const isAnswered = operation === OPERATION.resume || operation === OPERATION.answerTask;
  const answers = isAnswered ? readAnswers(json) : {};
  if (answers === undefined) {
    return { code: "invalid_argument", message: "answers_json must be a JSON object" };
  }
  if (operation === OPERATION.resume) return await dispatcher.resume(name, answers, context);
  if (tasks === undefined) {
    const message = "The tools do not support tasks: their module exports no `tasks`";
    return { code: "invalid_argument", message };
  }
  const { sessionId, messageId, signal } = context;
  const ofTask = { sessionId, messageId, signal };
  const owner = { toolset: dispatcher.toolset };
  const operations: { readonly [operation: number]: () => Promise<TaskAnswer> } = {
    [OPERATION.startTask]: () => tasks.start(dispatcher, { name, arguments: json }, ofTask),
    [OPERATION.cancelTask]: () => tasks.cancel(name, owner),
    [OPERATION.answerTask]: () => tasks.answer(dispatcher, name, answers, ofTask),
  };
  const state = await tools.limit((operations[operation] ?? (() => tasks.get(name, owner)))());
  if (state === undefined) return { code: "unknown_task", message: "There is no such task" };
  return "ok" in state ? state : { ok: true, content: state, durationMs: 0 };
}

type TaskAnswer = TaskState | ToolFailure | undefined;

/** The answers to questions; `undefined` if the text is not an object. The dispatcher checks each. */
function readAnswers(text = "{}"): Answers | undefined {
  const answers: unknown = attemptOr(undefined, () => JSON.parse(text));
  return isObject(answers) ? answers as Answers : undefined;
}
