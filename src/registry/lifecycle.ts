/** The lifecycle of a registered tool, and the interface by which a dispatcher uses the tool. */

import { compileOnce, type SchemaEngine, type SchemaValidator } from "../schema/mod.ts";
import type { ToolSource } from "../select/mod.ts";
import {
  attempt,
  describeThrown,
  type JsonSchema,
  type Services,
  TIME_OVER,
  type Tool,
  within,
} from "../tool/mod.ts";
import type { RegistrySettings } from "./options.ts";

/** A registered tool, ready to run. Calls share the object of its registration. */
export interface ToolRuntime {
  readonly tool: Tool;
  readonly services: Services;
  /** The checked configuration of the tool. */
  readonly config: unknown;
  /** The result of `init`. */
  readonly state: unknown;
  /** The validator of `tool.parameters`. If a library's schema validates, it accepts all values. */
  readonly parameters: SchemaValidator;
  /** The validator of `tool.returns`; `undefined` without `returns`, or if a library validates. */
  readonly returns: SchemaValidator | undefined;
}

/** A source of tools that can also run its tools. */
export interface ToolHost extends ToolSource {
  readonly engine: SchemaEngine;
  /**
   * Begins a call: compiles the schemas and runs `init` if necessary, and delays `dispose` until
   * `release`. Returns synchronously if the tool has no `init` or `init` has run, so that calls
   * need not wait.
   *
   * @throws {ToolLifecycleError} If the tool is not registered or was replaced, if its schemas
   * cannot be compiled, or if its `init` failed.
   */
  acquire(tool: Tool): ToolRuntime | Promise<ToolRuntime>;
  /** Ends a call that `acquire` began. Must be called exactly once per call. */
  release(runtime: ToolRuntime): void;
}

export function isToolHost(source: ToolSource | undefined): source is ToolHost {
  return source !== undefined && typeof (source as Partial<ToolHost>).acquire === "function";
}

/** A tool could not be initialised. The message is written for a model, and `cause` for the log. */
export class ToolLifecycleError extends Error {
  override readonly name = "ToolLifecycleError";
}

/** Accepts all values: before the compilation, and if a library validates the parameters. */
const ANYTHING: SchemaValidator = { check: () => true, issues: () => [] };

/** A registered tool, ready to run or about to be. Its registry counts calls once it is ready. */
export class RegisteredTool implements ToolRuntime {
  readonly tool: Tool;
  readonly services: Services;
  readonly config: unknown;
  state: unknown = undefined;
  parameters: SchemaValidator = ANYTHING;
  returns: SchemaValidator | undefined = undefined;
  /** True once the schemas are compiled and `init`, if there is one, has run. */
  isReady = false;
  calls = 0;
  onIdle: (() => void) | undefined = undefined;
  #starting: Promise<void> | undefined;
  #isEnded = false;
  readonly #settings: RegistrySettings;

  constructor(tool: Tool, config: unknown, settings: RegistrySettings) {
    this.tool = tool;
    this.services = settings.services;
    this.config = config;
    this.#settings = settings;
  }

  /** Compiles the schemas that calls are checked against. A library's schema is not compiled. */
  compile(): void {
    const { id, init, parameters, parametersStandard, returns, returnsStandard, view } = this.tool;
    const compile = (schema: JsonSchema, what: string): SchemaValidator =>
      attempt(
        `compile tool "${id}"`,
        () => compileOnce(this.#settings.engine, schema),
        `its ${what}: `,
      );
    if (parametersStandard === undefined || view !== undefined) {
      this.parameters = compile(parameters, "parameters");
    }
    for (let shown = view?.tool; shown; shown = shown.view?.tool) compile(shown.parameters, "tool");
    if (returns !== undefined && returnsStandard === undefined) {
      this.returns = compile(returns, "returns");
    }
    if (init === undefined) this.isReady = true;
  }

  /**
   * Begins and counts the first call. The caller must await a returned promise. Compiles before
   * `init`, so that a tool with invalid schemas has no side effects. Concurrent calls share one
   * `init`. A failed `init` runs again at the next call.
   */
  prepare(): Promise<void> | undefined {
    try {
      this.compile();
    } catch (cause) {
      this.#fail("ready: its schemas cannot be compiled here", cause);
    }
    this.calls++;
    if (this.isReady) return undefined;
    const starting = this.#starting ??= this.#start();
    // Each call forgets it: on Workers, it also rejects if the request that began it has ended.
    return starting.catch((error) => {
      if (this.#starting === starting) this.#starting = undefined;
      throw error;
    });
  }

  /** Waits until no call is running. Call it only when no new call can begin. */
  async idle(): Promise<void> {
    if (this.calls > 0) await new Promise<void>((resolve) => this.onIdle = resolve);
  }

  async dispose(): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.isReady || this.tool.init === undefined) await this.#disposeOf(this.state);
  }

  async #start(): Promise<void> {
    const { services, config, tool: { id, init } } = this;
    // Disposes of a state that arrives after the timeout or the end, because it is never used.
    const disposeLate = (state: unknown): Promise<void> =>
      this.#disposeOf(state).catch((error) => this.#settings.report("dispose", id, error));
    const state = await this.#inTime(
      "ready: its init",
      () => init?.({ services, config: config as never }),
      disposeLate,
    );
    if (this.#isEnded) {
      await disposeLate(state);
      this.#fail("registered");
    }
    this.state = state;
    this.isReady = true;
  }

  async #disposeOf(state: unknown): Promise<void> {
    const { dispose } = this.tool;
    if (dispose) await this.#inTime("disposed of: its dispose", () => dispose(state as never));
  }

  /** Returns the result of `work` within the time limit. Passes a later result to `onLate`. */
  async #inTime<T>(
    what: string,
    work: () => T | Promise<T>,
    onLate?: (outcome: T) => void,
  ): Promise<T> {
    const { clock, lifecycleTimeoutMs: ms } = this.#settings;
    const running = (async () => await work())();
    const outcome = await within(clock, ms, running).catch((error) =>
      this.#fail(`${what} failed`, error)
    );
    if (outcome !== TIME_OVER) return outcome;
    running.then(onLate, () => {});
    return this.#fail(`${what} did not end within ${ms} ms`);
  }

  /** @param cause The cause, for the log only: it may contain data that a model must not read. */
  #fail(what: string, cause?: unknown): never {
    throw new ToolLifecycleError(`Tool "${this.tool.id}" is not ${what}`, { cause });
  }
}

/** Throws one error for all `errors`, if there are any. `action` begins the message: `Cannot …`. */
export function throwAll(errors: readonly unknown[], action: string): void {
  if (errors.length === 0) return;
  const [first] = errors;
  throw new AggregateError(
    errors,
    `${action}: ${describeThrown(first)}` +
      (errors.length > 1 ? `, and ${errors.length - 1} more` : ""),
  );
}
