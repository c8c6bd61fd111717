/** The dispatcher: runs calls against a toolset, with the given layers. */

import { isToolHost, type ToolHost } from "../registry/mod.ts";
import { isToolset, type Selection, type Toolset } from "../select/mod.ts";
import {
  assertSync,
  attemptOr,
  callHook,
  clip,
  fail,
  isFunction,
  isText,
  once,
  type Tool,
  type ToolFailure,
  ToolResult,
} from "../tool/mod.ts";
import { type CallShared, chosenCallId, KernelCall, type Plan } from "./call.ts";
import { type CallContext, contextWith } from "./context.ts";
import { completeFailure, failure, unknownTool } from "./failures.ts";
import { type DispatcherOptions, MAKE, resolveSettings } from "./kernel_options.ts";
import type { Call, DispatchPhase, KernelSettings, Outcome } from "./layer.ts";
import { compose } from "./plan.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";

/** The default context of a call, and the selection of all tools. */
const NOTHING: DispatchContext & Selection = Object.freeze({});

/** The beginning of the message for a ticket that does not resume a call. */
export const CONTINUE = "Cannot continue the call: ";

export type CallStarted = (call: Call) => void;

/** The state that a dispatcher and its copies for other callers share. */
export class Kernel implements CallShared {
  readonly settings: KernelSettings;
  readonly Context: typeof CallContext;
  readonly plans: WeakMap<ToolHost, WeakMap<Tool, Plan>> = new WeakMap();
  #callIdPrefix: string | undefined;
  #calls = 0;

  constructor(settings: KernelSettings) {
    this.settings = settings;
    this.Context = contextWith(settings.layers);
  }

  hostOf({ source, name }: Toolset): ToolHost {
    if (isToolHost(source)) return source;
    fail(`${MAKE} for the toolset "${name}"`, "register its tools first");
  }

  withToolset(toolset: Toolset): Dispatcher {
    return new Dispatcher(toolset, this as DispatcherOptions);
  }

  unknown(name: string, _toolset: Toolset): ToolFailure {
    return unknownTool(name);
  }

  /** Ends a call without a known tool. Layers receive the call in `unresolved`. */
  endUnresolved(
    request: ToolCall,
    options: DispatchContext,
    failed: ToolFailure,
    toolset?: Toolset,
  ): ToolFailure {
    completeFailure(failed, "no");
    const report = (phase: DispatchPhase, error: unknown): void =>
      this.report(nameIn(request), chosenCallId(request) ?? this.nextCallId(), phase, error);
    for (const layer of this.settings.layers) {
      callHook(
        () => layer.unresolved?.(request, options, failed, report, toolset),
        (error) => report("internal", error),
      );
    }
    return failed;
  }

  nextCallId(): string {
    // Created with the first call, because edge runtimes forbid randomness while a module loads.
    this.#callIdPrefix ??= `call_${crypto.randomUUID().slice(0, 13)}`;
    return `${this.#callIdPrefix}-${(++this.#calls).toString(36)}`;
  }

  report(toolId: string, callId: string, phase: DispatchPhase, error: unknown): void {
    this.settings.onError({ toolId, callId, phase, error });
  }
}

/**
 * Runs calls of the tools in a toolset, with only the given layers. `ToolDispatcher` of
 * `@plue/tools` is a dispatcher with all layers of plue.
 *
 * Each call has these steps: find the tool, check its availability, parse the arguments, make the
 * tool ready, run the layers of stage `input`, validate the arguments, run the layers of stage
 * `run`, run the tool, check its result, run the cleanups. The layers of stage `call` surround all
 * steps except the first.
 *
 * After a timeout or an abort, the call ends as soon as the tool stops, and at the latest after
 * `graceMs`. If the tool still runs then, `acknowledged` is false, and later output is dropped. A
 * tool that neither waits nor returns cannot be ended: JavaScript has one thread.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { Dispatcher } from "@plue/tools/core";
 *
 * const registry = new ToolRegistry({
 *   tools: [{ name: "ping", description: "Answers.", execute: () => "pong" }],
 * });
 * const dispatcher = new Dispatcher(registry, { timeoutMs: 5_000 });
 * const result = await dispatcher.dispatch({ name: "ping" });
 * assert.equal(result.ok && result.content, "pong");
 * ```
 */
export class Dispatcher {
  /** True if calls are traced. Otherwise, the field `trace` of their contexts is not read. */
  readonly traces: boolean = false;
  readonly #kernel: Kernel;
  /** A registry, which may change; `undefined` for a fixed toolset. */
  readonly #registry: SelectableToolHost | undefined;
  readonly #host: ToolHost;
  readonly #plans: WeakMap<Tool, Plan>;
  #toolset: Toolset;

  /**
   * @param source The callable tools: a toolset of a registry, or a registry for all of its tools.
   * Later changes of a registry apply to later calls.
   * @throws {TypeError | RangeError} If an option is invalid, or the toolset was created from a
   * list.
   */
  constructor(source: Toolset | SelectableToolHost, options: DispatcherOptions = {}) {
    // `withToolset` passes the kernel of the other dispatcher instead of options.
    this.#kernel = options instanceof Kernel ? options : new Kernel(resolveSettings(options));
    if (isToolset(source)) {
      this.#toolset = source;
      this.#host = this.#kernel.hostOf(source);
    } else {
      const isRegistry = isFunction(source?.select) && isFunction(source.acquire);
      if (!isRegistry) fail(MAKE, "the source must be a toolset or a registry");
      this.#registry = this.#host = source;
      this.#toolset = assertSync(source.select(NOTHING));
    }
    this.#plans = once(this.#kernel.plans, this.#host, () => new WeakMap());
  }

  /** The settings of the dispatcher's calls. */
  get settings(): KernelSettings {
    return this.#kernel.settings;
  }

  /** The maximum size of a call's arguments, in bytes of JSON. */
  get maxArgumentBytes(): number {
    return this.settings.maxArgumentBytes;
  }

  /** The toolset that calls are resolved against now. */
  get toolset(): Toolset {
    const registry = this.#registry;
    if (registry !== undefined && registry.revision !== this.#toolset.revision) {
      this.#toolset = assertSync(registry.select(NOTHING));
    }
    return this.#toolset;
  }

  /**
   * Runs one call.
   *
   * @param call The call of a model. A resumed call needs a `ToolDispatcher`.
   * @param context The host's additions to the call; `null` if there are none.
   * @returns The result. Never rejects.
   */
  dispatch(call: ToolCall | ResumedCall, context?: DispatchContext | null): Promise<ToolResult> {
    return Promise.resolve(this.run(call, context));
  }

  /**
   * Runs one call, as `dispatch` does, but returns synchronously if nothing in the call waits.
   *
   * @param started Receives the call before the call runs. Not called for an unknown tool.
   */
  run(
    call: ToolCall | ResumedCall,
    context?: DispatchContext | null,
    started?: CallStarted,
  ): Outcome {
    const request = call as ToolCall;
    const options = context ?? NOTHING;
    const kernel = this.#kernel;
    let created: KernelCall;
    try {
      const { toolset } = this;
      const { bridge } = toolset;
      const target = bridge?.resolveTarget(request, this.maxArgumentBytes);
      if (bridge && target) return this.withToolset(bridge.target).run(target, context, started);
      // Models and hosts in JavaScript may pass any value.
      const { name, ticket }: ToolCall & ResumedCall = Object(call);
      if (ticket !== undefined) return this.continueCall(call as ResumedCall, options, started);
      const tool = toolset.resolve(name);
      if (tool === undefined) return this.endUnresolved(request, options, toolset);
      const plan = this.#plans.get(tool) ?? this.#compose(tool);
      created = new KernelCall(kernel, toolset, plan, request, options);
    } catch (error) {
      // Only a toolset, a registry, a layer or a getter of the host can throw here.
      kernel.report(nameIn(request), "", "internal", error);
      return this.endUnresolved(request, options);
    }
    started?.(created);
    return created.run();
  }

  /** Resumes the call of a ticket. Only a `ToolDispatcher` with `tickets` supports this. */
  protected continueCall(
    call: ResumedCall,
    context: DispatchContext,
    _started?: CallStarted,
  ): Outcome {
    const failed = ToolResult.error("ticket_refused", `${CONTINUE}the option tickets is not set`);
    return this.#kernel.endUnresolved(call as unknown as ToolCall, context, failed);
  }

  /**
   * Returns a dispatcher for another caller with other tools. The new dispatcher shares the options
   * and layers of this one, and is cheap to create.
   *
   * @throws {TypeError} If the toolset was created from a list.
   */
  withToolset(toolset: Toolset): Dispatcher {
    return this.#kernel.withToolset(toolset);
  }

  #compose(tool: Tool): Plan {
    const plan = compose(tool, this.#host, this.#kernel);
    this.#plans.set(tool, plan);
    return plan;
  }

  /**
   * Ends a call whose name is not a tool of the caller. Layers receive the call in `unresolved`.
   * Hosts that find tools by other names than ids call this function. Omit the toolset if it cannot
   * be read.
   */
  endUnresolved(request: ToolCall, options: DispatchContext, toolset?: Toolset): ToolFailure {
    const name = readName(request);
    const failed = name === undefined
      ? ToolResult.error(
        "unknown_tool",
        "Cannot call a tool: a call is { name, arguments }; decodeCalls() reads what providers send",
      )
      : toolset === undefined
      ? unreadable(request, "toolset")
      : this.#kernel.unknown(name, toolset);
    return this.#kernel.endUnresolved(request, options, failed, toolset);
  }
}

function readName(request: Partial<ToolCall> | null | undefined): string | undefined {
  const name: unknown = attemptOr(undefined, () => request?.name);
  return isText(name) ? name : undefined;
}

export function nameIn(request: Partial<ToolCall> | null | undefined): string {
  return clip(readName(request) ?? "");
}

/** The failure of a call whose toolset or context cannot be read. */
export function unreadable(request: Partial<ToolCall>, what: string): ToolFailure {
  return failure("threw", nameIn(request), `its ${what} cannot be read`);
}

/** The functions of a registry that a dispatcher uses: to run tools, and to select toolsets. */
export interface SelectableToolHost extends ToolHost {
  select(selection?: Selection): Toolset;
}
