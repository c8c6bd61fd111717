/**
 * The kernel: how calls of a tool run, composed once per tool from rings and layers.
 *
 * From the outside in: the layers of stage `call`; closing with its cleanups; availability, parsing
 * and starting up; the layers of stage `input`; validation; the layers of stage `run`; the tool.
 *
 * @module
 */

import type { ToolHost } from "../registry/mod.ts";
import { nearIds, type Toolset } from "../select/mod.ts";
import {
  atOnce,
  callHook,
  clip,
  describe,
  type HookLog,
  isFunction,
  isObject,
  isToolResult,
  NO_LOG,
  refuse,
  type Tool,
  type ToolFailure,
  ToolResult,
} from "../tool/mod.ts";
import { parseArguments, unparsed, UnparsedText } from "./arguments.ts";
import {
  type CallShared,
  chosenCallId,
  continueAfter,
  KernelCall,
  type Observe,
  type Plan,
  type Ring,
  settle,
} from "./call.ts";
import { validate } from "./checks.ts";
import { CallContext } from "./context.ts";
import { failure, interruption, unknownTool } from "./failures.ts";
import type { KernelSettings } from "./kernel_options.ts";
import type {
  Call,
  CallObserver,
  DispatchPhase,
  Layer,
  LayerFunction,
  Next,
  Outcome,
} from "./layer.ts";
import { type DispatchContext, type ToolCall, unknownField } from "./request.ts";
import { checkRequirements, type RequirementCheck } from "./requirements.ts";

/** More plans than a registry has tools: those of tools that were removed are dropped then. */
const MAX_PLANS = 20_000;

/** Runs calls. Shared by a dispatcher and its views for other callers. */
export class Kernel implements CallShared {
  readonly settings: KernelSettings;
  /** The class of the contexts that tools receive, with the members that layers add. */
  readonly Context: typeof CallContext;
  readonly #plans: Map<string, Plan> = new Map();
  #callIdPrefix: string | undefined;
  #calls = 0;

  constructor(settings: KernelSettings) {
    this.settings = settings;
    this.Context = contextWith(settings.layers);
  }

  /** Creates a call of the tool with that name, or the failure that there is none. */
  create(
    toolset: Toolset,
    host: ToolHost,
    request: ToolCall,
    options: DispatchContext,
  ): KernelCall | ToolFailure {
    const name = readName(request);
    const tool = name === undefined ? undefined : toolset.resolve(name);
    if (tool !== undefined) {
      return new KernelCall(this, toolset, this.#planOf(tool, host), request, options);
    }
    const failed = name === undefined
      ? ToolResult.error(
        "unknown_tool",
        "Cannot call a tool: the call names none; decodeCalls() reads what a provider sent",
      )
      : unknownTool(name, nearIds(name, toolset.available().map(({ id }) => id)));
    return this.refuse(request, options, failed);
  }

  /** Ends a call that never was a call of a tool: its layers see that as `unresolved`. */
  refuse(request: ToolCall, options: DispatchContext, failed: ToolFailure): ToolFailure {
    settle(failed, "no");
    const report = (phase: DispatchPhase, error: unknown): void =>
      this.report(nameIn(request), chosenCallId(request) ?? this.nextCallId(), phase, error);
    for (const layer of this.settings.layers) {
      callHook(
        () => layer.unresolved?.(request, options, failed, report),
        (error) => report("internal", error),
      );
    }
    return failed;
  }

  #planOf(tool: Tool, host: ToolHost): Plan {
    const known = this.#plans.get(tool.id);
    if (known?.tool === tool && known.host === host) return known;
    const plan = compose(tool, host, this);
    if (this.#plans.size >= MAX_PLANS) this.#plans.clear();
    this.#plans.set(tool.id, plan);
    return plan;
  }

  /** An id for a call that has none. */
  nextCallId(): string {
    // Not before the first call: edge runtimes refuse randomness while a module loads.
    this.#callIdPrefix ??= `call_${crypto.randomUUID().slice(0, 13)}`;
    return `${this.#callIdPrefix}-${(++this.#calls).toString(36)}`;
  }

  /** Passes what was thrown to the host. */
  report(toolId: string, callId: string, phase: DispatchPhase, error: unknown): void {
    this.settings.onError({ toolId, callId, phase, error });
  }
}

function compose(tool: Tool, host: ToolHost, kernel: Kernel): Plan {
  const { layers, timeoutMs, maxTimeoutMs } = kernel.settings;
  const applied: Layer[] = [];
  const stage = (name: Layer["stage"], inner: Ring): Ring =>
    layers.reduceRight((next: Ring, layer) => {
      const around = layer.stage === name ? functionOf(layer, tool, host) : undefined;
      if (around === undefined) return next;
      applied.push(layer);
      const layered: Ring = (call) => surround(call, layer, around, next as Next);
      return layer.when === undefined
        ? layered
        : (call) => isConcerned(layer, call) ? layered(call) : next(call);
    }, inner);
  const keepsText = layers.some(({ repairsText }) => repairsText);
  const required = checkRequirements(tool, layers);
  const run: Ring = (call) => call.runTool();
  const inner = stage("input", checkText(keepsText, validate(tool, host, stage("run", run))));
  const layered = stage("call", close(open(tool, keepsText, required, inner)));
  const conditions = applied.flatMap((layer) =>
    typeof layer.when === "function" ? layer.when.bind(layer) : []
  );
  const fields = applied.flatMap(({ when }) => typeof when === "string" ? when : []);
  return {
    tool,
    host,
    layered,
    direct: applied.every(({ when }) => when !== undefined)
      ? open(tool, false, required, validate(tool, host, run))
      : undefined,
    isPlain(call) {
      try {
        for (const field of fields) if (call.options[field] !== undefined) return false;
        for (const when of conditions) {
          const answer: unknown = when(call);
          if (answer !== false && isTrue(answer)) return false;
        }
        return true;
      } catch {
        return false;
      }
    },
    ...observersOf(layers, tool, (error) => kernel.report(tool.id, "", "internal", error)),
    layerCount: applied.length,
    timeoutMs: Math.min(tool.timeoutMs ?? timeoutMs, maxTimeoutMs),
  };
}

/** A layer whose condition cannot be read takes part: a check must not be skipped. */
function isConcerned(layer: Layer, call: Call): boolean {
  const { when } = layer;
  try {
    return typeof when === "string"
      ? call.options[when] !== undefined
      : when === undefined || isTrue(when.call(layer, call));
  } catch {
    return true;
  }
}

/** True for any answer of a condition but `false`. The rejection of a promise does not get away. */
function isTrue(answer: unknown): boolean {
  if (typeof answer !== "boolean") callHook(() => answer, NO_LOG);
  return answer !== false;
}

/** The function of a layer for calls of this tool. */
function functionOf(layer: Layer, tool: Tool, host: ToolHost): LayerFunction | undefined {
  const around: unknown = layer.for?.(tool, host);
  if (around === undefined || isFunction(around)) return around as LayerFunction | undefined;
  return refuse(`use the layer "${layer.name}"`, `its for returned ${describe(atOnce(around))}`);
}

/** Runs one layer. Whatever it throws or returns, the call has a result. */
function surround(
  call: KernelCall,
  layer: Layer,
  around: LayerFunction,
  next: Next,
): Outcome {
  let outcome: Outcome;
  const inner: Next = () => {
    try {
      return next(call);
    } catch (error) {
      return call.thrown(error);
    }
  };
  try {
    outcome = around(call, inner);
  } catch (error) {
    return call.thrown(error);
  }
  return outcome instanceof Promise
    ? outcome.then((result) => checkResult(call, layer, result), (error) => call.thrown(error))
    : checkResult(call, layer, outcome);
}

/** The result of a layer: a result, and one that the kernel may complete for this call alone. */
function checkResult(call: KernelCall, { name }: Layer, result: ToolResult): ToolResult {
  if (!isObject(result) || typeof (result as ToolResult).ok !== "boolean") {
    return call.thrown(new TypeError(`The layer "${name}" returned no result`));
  }
  const isFrozen = Object.isFrozen(result) || (!result.ok && Object.isFrozen(result.error));
  if (!isFrozen && !isToolResult(result)) return result;
  return result.ok ? { ...result } : { ...result, error: { ...result.error } };
}

/** The functions of all observers, guarded once, so that a call need not. */
function observersOf(
  layers: readonly Layer[],
  tool: Tool,
  report: HookLog,
): Pick<Plan, keyof CallObserver> {
  const observers = layers.flatMap((layer) => {
    let observer: unknown;
    // An observer that cannot be made must not fail the calls.
    callHook(() => observer = layer.observe?.(tool), report);
    return isObject(observer) ? observer as CallObserver : [];
  });
  const guarded = (part: keyof CallObserver): readonly Observe[] =>
    observers.flatMap((observer) => {
      const observe = observer[part] as Observe | undefined;
      if (typeof observe !== "function") return [];
      return (call, result, now): void => {
        // Every call comes here: no function is created for it.
        try {
          const answer: unknown = observe.call(observer, call, result, now);
          if (answer !== undefined) {
            callHook(() => answer, (error) => call.report("internal", error));
          }
        } catch (error) {
          call.report("internal", error);
        }
      };
    });
  return {
    began: guarded("began"),
    ended: guarded("ended"),
    failed: guarded("failed"),
    toolEnded: guarded("toolEnded"),
  };
}

/** The first ring: the call's fields, the tool's availability, the arguments, and its start. */
function open(
  tool: Tool,
  keepsText: boolean,
  checkRequired: RequirementCheck,
  next: Ring,
): Ring {
  return (call) => {
    const problem = unknownField(call.request, call.options);
    if (problem !== undefined) return call.fail("invalid_arguments", problem);
    const { interruptedBy } = call;
    if (interruptedBy !== undefined) return interruption(tool.id, interruptedBy, "beginning");
    // The availability may have changed since the tool was listed.
    if (tool.isAvailable !== true && !call.toolset.isAvailable(tool)) {
      return call.fail("unavailable", "the tool is not available now");
    }
    if (tool.execute === undefined) {
      return call.fail("not_executable", "it is a definition only and cannot be run here");
    }
    const unmet = checkRequired?.(call);
    if (unmet !== undefined) return unmet;
    const parsed = parseArguments(call, call.request.arguments, keepsText);
    if (parsed === undefined) return call.acquire(next);
    return parsed instanceof Promise
      ? continueAfter(call, call.wait("reading the arguments", parsed), () => call.acquire(next))
      : parsed;
  };
}

/** Before validation: text that no layer has repaired. */
function checkText(keepsText: boolean, next: Ring): Ring {
  if (!keepsText) return next;
  return (call) => call.arguments instanceof UnparsedText ? unparsed(call) : next(call);
}

/** Closes the call before the layers of stage `call` see its result. */
function close(next: Ring): Ring {
  return (call) => {
    let outcome: Outcome;
    try {
      outcome = next(call);
    } catch (error) {
      outcome = call.thrown(error);
    }
    return outcome instanceof Promise
      ? outcome.then((result) => call.close(result), (error) => call.close(call.thrown(error)))
      : call.close(outcome);
  };
}

/** The class of contexts with the members of these layers. */
function contextWith(layers: readonly Layer[]): typeof CallContext {
  const members = layers.flatMap(({ context }) => Object.entries(context ?? {}));
  if (members.length === 0) return CallContext;
  const Context = class extends CallContext {
    // The constructor that JavaScript adds spreads its arguments, which takes Bun twice as long.
    constructor(call: Call) {
      super(call);
    }
  };
  for (const [name, get] of members) {
    Object.defineProperty(Context.prototype, name, {
      configurable: true,
      get(this: CallContext): unknown {
        return get(CallContext.callOf(this));
      },
    });
  }
  return Context;
}

/** The name in a call; `undefined` if it has none, or cannot be read. */
function readName(request: Partial<ToolCall> | null | undefined): string | undefined {
  try {
    const name: unknown = request?.name;
    return typeof name === "string" ? name : undefined;
  } catch {
    return undefined;
  }
}

/** The name in a call, for messages. */
export function nameIn(request: Partial<ToolCall> | null | undefined): string {
  return clip(readName(request) ?? "");
}

/** The failure of a call whose toolset or context cannot be read. */
export function unreadable(request: Partial<ToolCall>, what: string): ToolFailure {
  return failure("threw", nameIn(request), `its ${what} cannot be read`);
}
