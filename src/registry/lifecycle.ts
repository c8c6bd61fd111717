/**
 * The life of one registered tool: `init` before its first call, `dispose` after its last.
 *
 * @module
 */

import { compileOnce, type SchemaEngine, type SchemaValidator } from "../schema/mod.ts";
import { refuse, type RegistryClock, type Services, type Tool } from "../tool/mod.ts";
import { ToolLifecycleError, type ToolRuntime } from "./tool_host.ts";

/** What all tools of one registry share. */
export interface Surroundings {
  readonly engine: SchemaEngine;
  readonly services: Services;
  readonly clock: RegistryClock;
  /** How long one `init` or one `dispose` may take, in milliseconds. */
  readonly lifecycleTimeoutMs: number;
  /** Is told when what came too late could not be disposed of. Never throws. */
  onLateError(tool: Tool, error: unknown): void;
}

/** A registered tool, ready to run or about to be. */
export class ToolLifecycle implements ToolRuntime {
  readonly tool: Tool;
  readonly config: unknown;
  state: unknown = undefined;
  readonly #surroundings: Surroundings;
  #compiled = false;
  #started: boolean;
  #starting: Promise<void> | undefined;
  #parameters: SchemaValidator | undefined;
  #returns: SchemaValidator | undefined;
  #calls = 0;
  #onIdle: (() => void) | undefined;
  #ended = false;

  constructor(tool: Tool, config: unknown, surroundings: Surroundings) {
    this.tool = tool;
    this.config = config;
    this.#surroundings = surroundings;
    this.#started = tool.init === undefined;
  }

  get services(): Services {
    return this.#surroundings.services;
  }

  get parameters(): SchemaValidator {
    return this.#parameters ??= compileOnce(this.#surroundings.engine, this.tool.parameters);
  }

  get returns(): SchemaValidator | undefined {
    const { returns } = this.tool;
    if (returns === undefined) return undefined;
    return this.#returns ??= compileOnce(this.#surroundings.engine, returns);
  }

  /**
   * Compiles the schemas that calls are checked against. What a library checks needs none.
   *
   * @throws {TypeError} If one cannot be compiled.
   */
  compile(): void {
    const { id, parametersStandard, returnsStandard } = this.tool;
    let name = "parameters";
    try {
      if (parametersStandard === undefined) void this.parameters;
      name = "returns";
      if (returnsStandard === undefined) void this.returns;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      refuse(`compile tool "${id}"`, `its ${name}: ${reason}`, cause);
    }
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

  /** Waits until no call is under way. Only once no call can begin any more. */
  idle(): Promise<void> {
    if (this.#calls === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle = resolve);
  }

  /** Runs the tool's `dispose`, if it has one and there is something to dispose of. Once. */
  async dispose(): Promise<void> {
    this.#ended = true;
    if (!this.#started) return;
    this.#started = false;
    await this.#disposeOf(this.state);
  }

  /** Before `init`, and before the tool has done anything that could not be checked. */
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
    const { services } = this.#surroundings;
    const { id, init } = this.tool;
    const context = { services, config: this.config as never };
    const state = await this.#inTime(
      "init",
      (async () => await init?.(context))(),
      (late) => this.#disposeLate(late),
    );
    if (this.#ended) {
      await this.#disposeLate(state);
      throw new ToolLifecycleError(`Tool "${id}" is not registered any more`);
    }
    this.state = state;
    this.#started = true;
  }

  /** What comes too late is used by nobody, and must not stay open. */
  #disposeLate(state: unknown): Promise<void> {
    return this.#disposeOf(state).catch((error) =>
      this.#surroundings.onLateError(this.tool, error)
    );
  }

  async #disposeOf(state: unknown): Promise<void> {
    const { dispose } = this.tool;
    if (dispose === undefined) return;
    await this.#inTime("dispose", (async () => await dispose(state as never))());
  }

  /** The outcome of `running`. `onLate` is told of one that comes too late. */
  async #inTime<T>(
    part: "init" | "dispose",
    running: Promise<T>,
    onLate?: (outcome: T) => void,
  ): Promise<T> {
    const { clock, lifecycleTimeoutMs: ms } = this.#surroundings;
    let isLate = false;
    try {
      return await new Promise((resolve, reject) => {
        const cancel = clock.setTimeout(() => {
          isLate = true;
          running.then(onLate, () => {});
          reject(new RangeError(`It took longer than ${ms} ms`));
        }, ms);
        running.then(resolve, reject).finally(cancel);
      });
    } catch (cause) {
      const what = part === "init" ? "ready" : "disposed of";
      const how = isLate ? `did not end within ${ms} ms` : "failed";
      // The cause is for the log: it may hold what a model must not read.
      throw new ToolLifecycleError(
        `Tool "${this.tool.id}" is not ${what}: its ${part} ${how}`,
        { cause },
      );
    }
  }
}
