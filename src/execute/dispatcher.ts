/**
 * The dispatcher: runs calls against a toolset, with the layers that it is given.
 *
 * @module
 */

import { isToolHost, Registry, type ToolHost } from "../registry/mod.ts";
import type { Selection, Toolset, ToolSource } from "../select/mod.ts";
import {
  atOnce,
  isFunction,
  once,
  refuse,
  type ToolFailure,
  type ToolResult,
} from "../tool/mod.ts";
import { KernelCall } from "./call.ts";
import { Kernel, nameIn, unreadable } from "./kernel.ts";
import {
  type DispatcherOptions,
  type KernelSettings,
  MAKE,
  resolveSettings,
} from "./kernel_options.ts";
import type { Call, Outcome } from "./layer.ts";
import type { DispatchContext, ResumedCall, ToolCall } from "./request.ts";

const NO_CONTEXT: DispatchContext = Object.freeze({});
const EVERYTHING: Selection = Object.freeze({});

/** Receives a call before it runs. */
export type CallStarted = (call: Call) => void;

/**
 * Runs calls of the tools in a toolset, with nothing but the kernel and the layers that it is given.
 * `ToolDispatcher` of `@plue/tools` is this with all layers of plue.
 *
 * The order is always the same: find the tool, is it available, parse the arguments, make the tool
 * ready, the layers of stage `input`, validate, the layers of stage `run`, run, check the result,
 * cleanups. The layers of stage `call` are around all of it.
 *
 * A timeout or an abort ends the call as soon as the tool stops, and at the latest after `graceMs`,
 * also when the tool ignores its signal: `acknowledged` says which it was. What such a tool sends or
 * returns later is dropped. A tool that neither waits nor returns cannot be ended: JavaScript has one
 * thread.
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
  readonly #kernel: Kernel;
  /** A registry, which may change; `undefined` for a fixed toolset. */
  readonly #registry: SelectableToolHost | undefined;
  readonly #host: ToolHost;
  #toolset: Toolset;

  /**
   * @param source The tools that may be called: a toolset, or a registry for all of its tools. A
   * registry is followed as it changes. Tools of a list have no services and no configuration, and
   * their `dispose` never runs: tools that need those belong in a registry.
   * @param options The layers, limits and clock.
   * @throws {TypeError | RangeError} If an option is wrong, or a toolset that was made from a list
   * comes without the option `engine`.
   */
  constructor(source: Toolset | SelectableToolHost, options: DispatcherOptions = {}) {
    // A view of another dispatcher receives its kernel instead of options.
    const given: unknown = options;
    this.#kernel = given instanceof Kernel ? given : new Kernel(resolveSettings(options));
    if (isSelectable(source)) {
      this.#registry = source;
      this.#toolset = atOnce(source.select(EVERYTHING));
      this.#host = source;
      return;
    }
    if (!isToolset(source)) refuse(MAKE, "it needs a toolset or a registry");
    this.#toolset = source;
    this.#host = hostOf(source, this.#kernel.settings);
  }

  /** The settings of its calls. */
  get settings(): KernelSettings {
    return this.#kernel.settings;
  }

  /** How large the arguments of a call may be, in bytes of JSON. */
  get maxArgumentBytes(): number {
    return this.#kernel.settings.maxArgumentBytes;
  }

  /** Whether calls are traced: only then is the `trace` of their context read. */
  get traces(): boolean {
    return false;
  }

  /** The kernel, for views. */
  protected get kernel(): Kernel {
    return this.#kernel;
  }

  /** The toolset that calls are resolved against now. */
  get toolset(): Toolset {
    const registry = this.#registry;
    if (registry !== undefined && registry.revision !== this.#toolset.revision) {
      this.#toolset = atOnce(registry.select(EVERYTHING));
    }
    return this.#toolset;
  }

  /**
   * Runs one call.
   *
   * @param call The call, as a model wrote it. One that continues needs a `ToolDispatcher`.
   * @param context What the host adds; `null` adds nothing.
   * @returns The result. Never rejects.
   */
  dispatch(call: ToolCall | ResumedCall, context?: DispatchContext | null): Promise<ToolResult> {
    const result = this.run(call, context);
    return result instanceof Promise ? result : Promise.resolve(result);
  }

  /**
   * Runs one call, as `dispatch` does, and returns at once if nothing in it waits.
   *
   * @param started Receives the call before it runs; not called where there is no such tool.
   */
  run(
    call: ToolCall | ResumedCall,
    context?: DispatchContext | null,
    started?: CallStarted,
  ): Outcome {
    const request = call as ToolCall;
    const options = context ?? NO_CONTEXT;
    let created: KernelCall | ToolFailure;
    try {
      const { toolset } = this;
      const { bridge } = toolset;
      const target = bridge?.lead(request, this.settings.maxArgumentBytes);
      if (bridge && target) return this.withToolset(bridge.behind).run(target, context, started);
      created = this.#kernel.create(toolset, this.#host, request, options);
    } catch (error) {
      // Only a toolset, a registry or a layer of the host can throw here.
      this.#kernel.report(nameIn(request), "", "internal", error);
      return this.#kernel.refuse(request, options, unreadable(request, "toolset"));
    }
    if (!(created instanceof KernelCall)) return created;
    started?.(created);
    return created.run();
  }

  /**
   * A dispatcher for another caller, who sees other tools. It shares this one's options and layers, and
   * costs next to nothing.
   *
   * @throws {TypeError} If the toolset was made from a list, and there is no engine.
   */
  withToolset(toolset: Toolset): Dispatcher {
    return new Dispatcher(toolset, this.#kernel as unknown as DispatcherOptions);
  }
}

const hosts: WeakMap<KernelSettings, WeakMap<ToolSource, ToolHost>> = new WeakMap();

/** What runs the tools of a toolset: the registry it came from, or one created for its list. */
function hostOf(toolset: Toolset, settings: KernelSettings): ToolHost {
  const { source, bridge } = toolset;
  if (isToolHost(source)) return source;
  const known = once(hosts, settings, () => new WeakMap<ToolSource, ToolHost>());
  return once(known, source, () => {
    const engine = settings.engine ?? (bridge && hostOf(bridge.behind, settings).engine);
    if (engine === undefined) {
      refuse(
        `make a dispatcher for the toolset "${toolset.name}"`,
        "its tools came from a list, so the option engine must say what compiles their schemas",
      );
    }
    // All tools of the list, so that its toolsets share each tool's state.
    return new Registry({ engine, tools: source.tools });
  });
}

/** A registry, as a dispatcher needs it: tools that it can run and select from. */
export interface SelectableToolHost extends ToolHost {
  select(selection?: Selection): Toolset;
}

function isSelectable(source: unknown): source is SelectableToolHost {
  const { select, acquire } = (source ?? {}) as Partial<SelectableToolHost>;
  return isFunction(select) && isFunction(acquire);
}

/** Whether `source` is a toolset. Not `instanceof`: another copy of plue may have made it. */
function isToolset(source: unknown): source is Toolset {
  const { get, isAvailable, tools } = (source ?? {}) as Partial<Toolset>;
  return isFunction(get) && isFunction(isAvailable) && Array.isArray(tools);
}
