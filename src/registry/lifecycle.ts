/**
 * The life of a registered tool: compiled and set up (`init`) before its first call, disposed of
 * after its last; and the port by which a dispatcher asks for a tool that is ready.
 *
 * @module
 */

import { compileOnce, type SchemaEngine, type SchemaValidator } from "../schema/mod.ts";
import type { ToolSource } from "../select/mod.ts";
import {
  attempt,
  describeThrown,
  type RegistryClock,
  type Services,
  TIME_OVER,
  type Tool,
  untilAborted,
  within,
} from "../tool/mod.ts";

/** A registered tool, ready to run. One object per registration, so a call allocates nothing for it. */
export interface ToolRuntime {
  readonly tool: Tool;
  readonly services: Services;
  /** The tool's configuration, checked. */
  readonly config: unknown;
  /** What `init` returned. */
  readonly state: unknown;
  /** The validator of `tool.parameters`: compiled once, at the latest when it is acquired. */
  readonly parameters: SchemaValidator;
  /** The validator of `tool.returns`. */
  readonly returns: SchemaValidator | undefined;
}

/** A source of tools that can also run them. */
export interface ToolHost extends ToolSource {
  readonly engine: SchemaEngine;
  /**
   * Begins a call: compiles the schemas and runs `init` if that has not been done, and keeps
   * `dispose` away until `release`. Answers at once when `init` has run (or there is none), so that a
   * call need not wait.
   *
   * @throws {ToolLifecycleError} If the tool is not registered, was replaced, its schemas
   * cannot be compiled, or its `init` failed.
   */
  acquire(tool: Tool): ToolRuntime | Promise<ToolRuntime>;
  /** Ends a call that `acquire` began. Exactly once each. */
  release(runtime: ToolRuntime): void;
}

/** Whether a source can also run its tools. */
export function isToolHost(source: ToolSource | undefined): source is ToolHost {
  return source !== undefined && typeof (source as Partial<ToolHost>).acquire === "function";
}

/** A tool could not be made ready. The message is written for a model; `cause` for the log. */
export class ToolLifecycleError extends Error {
  override readonly name = "ToolLifecycleError";
}

/** What the lives of all tools of one registry have in common. */
export interface LifecycleSettings {
  readonly engine: SchemaEngine;
  readonly services: Services;
  readonly clock: RegistryClock;
  /** How long one `init` or one `dispose` may take, in milliseconds. */
  readonly lifecycleTimeoutMs: number;
  /** Called when a state that came too late could not be disposed of. Must not throw. */
  onLateError(tool: Tool, error: unknown): void;
}

/** A registered tool, ready to run or about to be. */
export class ToolLifecycle implements ToolRuntime {
  readonly tool: Tool;
  readonly config: unknown;
  state: unknown = undefined;
  readonly #settings: LifecycleSettings;
  #compiled = false;
  #started: boolean;
  #starting: Promise<void> | undefined;
  #parameters: SchemaValidator | undefined;
  #returns: SchemaValidator | undefined;
  #calls = 0;
  #onIdle: (() => void) | undefined;
  #ended = false;

  constructor(tool: Tool, config: unknown, settings: LifecycleSettings) {
    this.tool = tool;
    this.config = config;
    this.#settings = settings;
    this.#started = tool.init === undefined;
  }

  get services(): Services {
    return this.#settings.services;
  }

  get parameters(): SchemaValidator {
    return this.#parameters ??= compileOnce(this.#settings.engine, this.tool.parameters);
  }

  get returns(): SchemaValidator | undefined {
    const { returns } = this.tool;
    return this.#returns ??= returns === undefined
      ? returns
      : compileOnce(this.#settings.engine, returns);
  }

  /**
   * Compiles the schemas that calls are checked against. What a library checks needs none.
   *
   * @throws {TypeError} If one cannot be compiled.
   */
  compile(): void {
    const { id, parametersStandard, returnsStandard, view } = this.tool;
    const action = `compile tool "${id}"`;
    if (parametersStandard === undefined || view !== undefined) {
      attempt(action, () => this.parameters, "its parameters: ");
    }
    for (let shown = view?.tool; shown; shown = shown.view?.tool) {
      const { parameters } = shown;
      attempt(action, () => compileOnce(this.#settings.engine, parameters), "its tool: ");
    }
    if (returnsStandard === undefined) attempt(action, () => this.returns, "its returns: ");
    this.#compiled = true;
  }

  /** Begins a call. Waits only if `init` has not run. */
  acquire(): this | Promise<this> {
    if (!this.#compiled) this.#compileForCall();
    this.#calls++;
    return this.#started ? this : this.#acquireSlowly();
  }

  /** Ends a call. */
  release(): void {
    if (this.#calls === 0) {
      throw new RangeError(`Cannot release tool "${this.tool.id}": no call of it is under way`);
    }
    if (--this.#calls === 0) this.#onIdle?.();
  }

  /** Waits until no call is under way. Ask only when no new call can begin. */
  idle(): Promise<void> {
    if (this.#calls === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle = resolve);
  }

  /** Runs the tool's `dispose` once, if it has one and its `init` has run. */
  async dispose(): Promise<void> {
    this.#ended = true;
    const wasStarted = this.#started;
    this.#started = false;
    if (wasStarted) await this.#disposeOf(this.state);
  }

  /** Compiles before `init`, so that a tool that cannot be checked does nothing. */
  #compileForCall(): void {
    try {
      this.compile();
    } catch (cause) {
      throw new ToolLifecycleError(
        `Tool "${this.tool.id}" is not ready: its schemas cannot be compiled here`,
        { cause },
      );
    }
  }

  async #acquireSlowly(): Promise<this> {
    try {
      // Calls that arrive together share one init. One that failed is tried again by the next call.
      await (this.#starting ??= this.#start().finally(() => this.#starting = undefined));
      return this;
    } catch (error) {
      this.release();
      throw error;
    }
  }

  async #start(): Promise<void> {
    const { id, init } = this.tool;
    const context = { services: this.services, config: this.config as never };
    const state = await this.#inTime(
      "init",
      () => init?.(context),
      (late) => this.#disposeLate(late),
    );
    if (this.#ended) {
      await this.#disposeLate(state);
      throw new ToolLifecycleError(`Tool "${id}" is not registered`);
    }
    this.state = state;
    this.#started = true;
  }

  /** A state that comes after the timeout is never used: it is disposed of at once. */
  #disposeLate(state: unknown): Promise<void> {
    return this.#disposeOf(state).catch((error) => this.#settings.onLateError(this.tool, error));
  }

  async #disposeOf(state: unknown): Promise<void> {
    const { dispose } = this.tool;
    if (dispose !== undefined) await this.#inTime("dispose", () => dispose(state as never));
  }

  /** The outcome of `work`, in time. One that comes after the timeout goes to `onLate`. */
  async #inTime<T>(
    part: "init" | "dispose",
    work: () => T | Promise<T>,
    onLate?: (outcome: T) => void,
  ): Promise<T> {
    const { clock, lifecycleTimeoutMs: ms } = this.#settings;
    const running = (async () => await work())();
    let how = "failed";
    try {
      const outcome = await within(clock, ms, running);
      if (outcome !== TIME_OVER) return outcome;
      how = `did not end within ${ms} ms`;
      running.then(onLate, () => {});
      throw new RangeError(`It took longer than ${ms} ms`);
    } catch (cause) {
      const what = part === "init" ? "ready" : "disposed of";
      // The cause is for the log: it may hold what a model must not read.
      throw new ToolLifecycleError(
        `Tool "${this.tool.id}" is not ${what}: its ${part} ${how}`,
        { cause },
      );
    }
  }
}

/** How many errors of tools that were unregistered are kept for the registry's end. */
const MAX_KEPT_ERRORS = 100;

/** The tools of one registry that were taken out, until they are disposed of. */
export class Retirement {
  readonly #underWay: Set<Promise<void>> = new Set();
  readonly #errors: unknown[] = [];
  readonly #onError: (toolId: string, error: unknown) => void;

  /** @param onError Called when a tool could not be disposed of. Must not throw. */
  constructor(onError: (toolId: string, error: unknown) => void) {
    this.#onError = onError;
  }

  /** Disposes of one tool. Only `end` waits for it. */
  retire(life: ToolLifecycle): void {
    if (life.tool.dispose === undefined) return;
    const retiring = life.idle().then(() => life.dispose()).catch((error) => {
      if (this.#errors.length < MAX_KEPT_ERRORS) this.#errors.push(error);
      this.#onError(life.tool.id, error);
    }).finally(() => this.#underWay.delete(retiring));
    this.#underWay.add(retiring);
  }

  /**
   * Disposes of the last tools, one after another, when nothing is under way.
   *
   * @throws {AggregateError} With everything that failed since the beginning.
   */
  async end(lives: readonly ToolLifecycle[], signal: AbortSignal | undefined): Promise<void> {
    const idle = lives.map((life) => life.idle());
    // Nothing that is waited for rejects: what is ignored is the abort.
    await untilAborted(Promise.all([...idle, ...this.#underWay]), signal).catch(() => {});
    const errors = this.#errors.splice(0);
    for (const life of lives) {
      try {
        await life.dispose();
      } catch (error) {
        errors.push(error);
      }
    }
    throwAll(errors, "Cannot dispose of the registry cleanly");
  }
}

/** Throws `errors` as one, if there are any. `action` begins the message: `Cannot …`. */
export function throwAll(errors: readonly unknown[], action: string): void {
  if (errors.length === 0) return;
  const [first] = errors;
  throw new AggregateError(
    errors,
    `${action}: ${describeThrown(first)}` +
      (errors.length > 1 ? `, and ${errors.length - 1} more` : ""),
  );
}
