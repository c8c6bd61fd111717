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
import {
  type CallShared,
  KernelCall,
  type Observe,
  type Plan,
  REQUIREMENTS,
  type Ring,
} from "./call.ts";
import type { CallObserver, Layer, LayerFunction, Next, Outcome, Requirement } from "./layer.ts";

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
  // A condition that is a function may read the arguments, so it is evaluated where they are parsed.
  const isPlain = applied.every(({ when, meets, stage }) =>
    (when ?? meets) !== undefined && (typeof when !== "function" || stage === "call")
  );
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
  const reader = layers.find(({ readText }) => readText);
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
    yielded: part("yielded") as Plan["yielded"],
    readText: reader?.readText?.bind(reader),
    layerCount: applied.length,
    // The requirements are the keys of the table. Two of them follow from the tool alone.
    unmet: (Object.keys(REQUIREMENTS) as Requirement[]).filter((requirement) =>
      !applied.some(({ meets }) => meets === requirement) &&
      (requirement !== "transaction" || tool.requiresTransaction) &&
      (requirement !== "context" || tool.context !== undefined)
    ),
    timeoutMs: Math.min(tool.timeoutMs ?? timeoutMs, maxTimeoutMs),
  };
}

/** Runs one layer. Whatever it throws or returns, the call has a result. */
function surround(call: KernelCall, layer: Layer, around: LayerFunction, next: Ring): Outcome {
  const check = (result: ToolResult): ToolResult => {
    try {
      if (result.ok === true || (result.ok === false && isObject(result.error))) return result;
    } catch {
      // It is none, or a getter of it throws.
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
  // What it did not wait for ends first: layers around it must not commit while the tool still runs.
  return rest === undefined
    ? settled
    : settled.then((result) => rest?.then(() => result) ?? result);
}
