/**
 * How calls of a tool run, composed once per tool from rings and layers.
 *
 * From the outside in: the layers of stage `call`; closing with its cleanups; availability, parsing
 * and starting up; the layers of stage `input`; validation; the layers of stage `run`; the tool.
 *
 * @module
 */

import type { ToolHost } from "../registry/mod.ts";
import { atOnce, callHook, isObject, type Tool, type ToolResult } from "../tool/mod.ts";
import { validate } from "./arguments.ts";
import { type CallShared, KernelCall, type Observe, type Plan, type Ring } from "./call.ts";
import type { CallObserver, Layer, LayerFunction, Next, Outcome } from "./layer.ts";

/** Composes the layers around calls of a tool. */
export function compose(tool: Tool, host: ToolHost, kernel: CallShared): Plan {
  const { layers, timeoutMs, maxTimeoutMs } = kernel.settings;
  const applied: Layer[] = [];
  const stage = (name: Layer["stage"], inner: Ring): Ring =>
    layers.reduceRight((next: Ring, layer) => {
      const around = layer.stage === name ? atOnce(layer.for?.(tool, host)) : undefined;
      if (around === undefined) return next;
      applied.push(layer);
      return (call) => call.concerns(layer) ? surround(call, layer, around, next) : next(call);
    }, inner);
  const { runTool } = KernelCall;
  const inner = stage("input", validate(tool, host, stage("run", runTool)));
  const layered = stage("call", (call) => {
    const outcome = call.enter(() => call.open(inner));
    return outcome instanceof Promise
      ? outcome.then((result) => call.close(result))
      : call.close(outcome);
  });
  const isPlain = applied.every(({ when, meets }) => (when ?? meets) !== undefined);
  const observers = layers.flatMap((layer) => {
    let observer: unknown;
    // An observer that cannot be made must not fail the calls.
    callHook(
      () => observer = layer.observe?.(tool),
      (error) => kernel.report(tool.id, "", "internal", error),
    );
    return isObject(observer) ? observer as CallObserver : [];
  });
  const part = (name: keyof CallObserver): readonly Observe[] =>
    observers.flatMap((observer) =>
      (observer[name] as Observe | undefined)?.bind?.(observer) ?? []
    );
  return {
    tool,
    host,
    layered,
    direct: isPlain ? validate(tool, host, runTool) : undefined,
    conditional: isPlain ? applied : [],
    began: part("began"),
    ended: part("ended"),
    failed: part("failed"),
    toolEnded: part("toolEnded"),
    layerCount: applied.length,
    timeoutMs: Math.min(tool.timeoutMs ?? timeoutMs, maxTimeoutMs),
  };
}

/** Runs one layer. Whatever it throws or returns, the call has a result. */
function surround(call: KernelCall, layer: Layer, around: LayerFunction, next: Ring): Outcome {
  const check = (result: ToolResult): ToolResult =>
    isObject(result) && typeof (result as ToolResult).ok === "boolean"
      ? result
      : call.thrown(new TypeError(`The layer "${layer.name}" returned no result`));
  const inner: Next = () => call.enter(next);
  const outcome = call.enter(() => around(call, inner));
  return outcome instanceof Promise
    ? outcome.then(check, (error) => call.thrown(error))
    : check(outcome);
}
