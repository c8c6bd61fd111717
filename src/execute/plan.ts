/**
 * Composes the function for the calls of a tool, once per tool. A ring runs the rest of a call.
 *
 * The rings from the outside in: layers of stage `call`; closing and cleanups; availability,
 * parsing and `init`; layers of stage `input`; validation; layers of stage `run`; the tool.
 */

import type { ToolHost } from "../registry/mod.ts";
import {
  assertSync,
  callHook,
  isFunction,
  isObject,
  type Tool,
  type ToolResult,
} from "../tool/mod.ts";
import { validate } from "./arguments.ts";
import {
  type CallShared,
  conditionOf,
  KernelCall,
  type Plan,
  REQUIREMENTS,
  type Ring,
} from "./call.ts";
import type { Layer, LayerFunction, Next, Outcome, Requirement } from "./layer.ts";

export function compose(tool: Tool, host: ToolHost, kernel: CallShared): Plan {
  const { layers, timeoutMs, maxTimeoutMs } = kernel.settings;
  const applied: Layer[] = [];
  const stage = (name: Layer["stage"], inner: Ring): Ring =>
    layers.reduceRight((next: Ring, layer) => {
      const around = layer.stage === name ? assertSync(layer.for?.(tool, host)) : undefined;
      if (around === undefined) return next;
      const applies = conditionOf(layer);
      applied.push(layer);
      return (call) => applies(call) ? surround(call, layer, around, next) : next(call);
    }, inner);
  const { runTool } = KernelCall;
  const inner = stage("input", validate(tool, host, stage("run", runTool)));
  const layered = stage("call", (call) => {
    const outcome = call.enter(() => call.open(inner));
    return outcome instanceof Promise
      ? outcome.then((result) => call.close(result))
      : call.close(outcome);
  });
  // `run` checks the conditions before the arguments are parsed, and a function may read these.
  const isPlain = applied.every(({ when, meets, stage }) =>
    (when ?? meets) !== undefined && (typeof when !== "function" || stage === "call")
  );
  return {
    tool,
    host,
    layered,
    direct: isPlain ? validate(tool, host, runTool) : undefined,
    // Layers that meet the same requirement have one condition.
    conditions: isPlain
      ? [
        ...new Map(applied.map((layer) => [layer.when ? layer : layer.meets, conditionOf(layer)]))
          .values(),
      ]
      : [],
    observers: observersOf(tool, kernel),
    reader: layers.find(({ readText }) => readText),
    layerCount: applied.length,
    unmet: (Object.keys(REQUIREMENTS) as Requirement[]).filter((name) =>
      !applied.some(({ meets }) => meets === name) && REQUIREMENTS[name][1](tool)
    ),
    timeoutMs: Math.min(tool.timeoutMs ?? timeoutMs, maxTimeoutMs),
  };
}

function observersOf(tool: Tool, kernel: CallShared): Plan["observers"] {
  const observers: Plan["observers"] = {
    began: [],
    toolStarted: [],
    ended: [],
    failed: [],
    toolEnded: [],
    yielded: [],
  };
  for (const layer of kernel.settings.layers) {
    // An observer that cannot be created must not fail the calls.
    callHook(() => {
      const observer = Object(assertSync(layer.observe?.(tool)));
      for (const [name, list] of Object.entries(observers)) {
        if (isFunction(observer[name])) list.push(observer[name].bind(observer) as never);
      }
    }, (error) => kernel.report(tool.id, "", "internal", error));
  }
  return observers;
}

/** Runs one layer. The call has a result even if the layer throws or returns an invalid value. */
function surround(call: KernelCall, layer: Layer, around: LayerFunction, next: Ring): Outcome {
  const check = (result: ToolResult): ToolResult => {
    try {
      if (result.ok === true || (result.ok === false && isObject(result.error))) return result;
    } catch {
      // The value is not a result, or one of its getters throws.
    }
    return call.thrown(new TypeError(`The layer "${layer.name}" returned no result`));
  };
  let rest: Promise<unknown> | undefined;
  const inner: Next = () => {
    const outcome = call.enter(next);
    if (outcome instanceof Promise && layer.stage !== "call") {
      rest = rest === undefined ? outcome : Promise.all([rest, outcome]);
    }
    return outcome;
  };
  const outcome = call.enter(() => around(call, inner));
  if (!(outcome instanceof Promise) && rest === undefined) return check(outcome);
  const failed = (error: unknown): ToolResult => call.thrown(error);
  const settled = Promise.resolve(outcome).then(check, failed);
  // Wait for calls of `next` that the layer did not await: outer layers must not commit while the
  // tool still runs.
  return rest === undefined
    ? settled
    : settled.then((result) => rest?.then(() => result) ?? result);
}
