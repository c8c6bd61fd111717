/**
 * The step that runs the tool, and the hooks around it.
 *
 * @module
 */

import {
  describeThrown,
  inPromise,
  isFunction,
  isObject,
  refuse,
  type ToolFailure,
  type ToolResult,
} from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { CallView } from "./context.ts";
import { sendOutput } from "./events.ts";
import { interruption, readResult } from "./failures.ts";
import { readAgain, readOutput } from "./output.ts";
import { withheld } from "./port_steps.ts";
import type { ToolHooks } from "./ports.ts";

/** Runs the tool: a value, a promise, or a generator whose yields are streamed. */
export function runTool(call: Call): unknown {
  call.ran = call.isRunning = true;
  const output: unknown = call.tool.execute?.(call.args, call.context);
  return isGenerator(output) ? drain(call, output) : inPromise(output);
}

export function keepOutput(call: Call, output: unknown): undefined {
  call.isRunning = false;
  call.output = output;
}

/** Streams what a generator yields as fast as it is taken, and gives what it returns. */
async function drain(
  call: Call,
  generator: AsyncGenerator<unknown, unknown, void>,
): Promise<unknown> {
  // Async, because an object that only looks like a generator may throw, or answer no promise.
  call.stopTool = async () => await generator.return(undefined);
  for (;;) {
    const step = await generator.next();
    if (step.done === true) return step.value;
    await sendOutput(call, step.value);
    // Without real awaits in the generator no timer fires, so the time is read here.
    if (call.over || call.deadline.expired()) {
      await generator.return(undefined);
      return undefined;
    }
  }
}

export function threw(call: Call, error: unknown): ToolFailure {
  call.isRunning = false;
  const why = `the tool threw: ${describeThrown(error)}`;
  // A tool that stops by throwing the signal's reason did as it should, and is not reported.
  return call.interruptedBy !== undefined && error === call.deadline.signal.reason
    ? call.fail("threw", why)
    : call.failed("execute", error, "threw", why);
}

function isGenerator(value: unknown): value is AsyncGenerator<unknown, unknown, void> {
  return isObject(value) && isFunction(value["next"]) && isFunction(value["return"]) &&
    Symbol.asyncIterator in value;
}

/** Runs the tool inside the `around` hooks, the first one outermost. */
export function runAround(call: Call): Promise<ToolResult> {
  /** The results that were checked. */
  const checked = new WeakSet<ToolResult>();
  let run = async (): Promise<ToolResult> => {
    const result = await attempt(call);
    checked.add(result);
    return result;
  };
  for (const hook of call.settings.aroundHooks) {
    const inner = run;
    run = async () => {
      const result = await surround(call, hook, inner, checked);
      checked.add(result);
      return result;
    };
  }
  return run();
}

async function surround(
  call: Call,
  hook: ToolHooks,
  run: () => Promise<ToolResult>,
  checked: WeakSet<ToolResult>,
): Promise<ToolResult> {
  try {
    const answer = await hook.around?.(new CallView(call), run);
    if (isObject(answer) && checked.has(answer as ToolResult)) return answer as ToolResult;
    const result = readResult(answer);
    if (result === undefined) return withheld(call, hook);
    // It has been a tool's result: a library's schema, which may transform, has seen it.
    return result.ok ? replay(readAgain(call, result), answer) : result;
  } catch (error) {
    call.report("around", error);
    return withheld(call, hook);
  }
}

/** A success that a hook says is an earlier call's. */
function replay(result: ToolResult, said: unknown): ToolResult {
  const isReplayed = isObject(said) && said["replayed"] === true;
  return result.ok && isReplayed ? { ...result, replayed: true } : result;
}

/** Runs the tool once, and checks what it gave. */
async function attempt(call: Call): Promise<ToolResult> {
  const { interruptedBy } = call;
  if (interruptedBy !== undefined) return interruption(call.tool.id, interruptedBy, "about to run");
  if (call.isRunning) refuse("run the tool again", "it still runs");
  call.stopTool = undefined;
  if (call.ran) call.questions?.runAgain();
  try {
    keepOutput(call, await runTool(call));
  } catch (error) {
    return threw(call, error);
  }
  return await readOutput(call);
}
