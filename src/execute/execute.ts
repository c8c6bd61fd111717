/**
 * The step that runs the tool.
 *
 * @module
 */

import { describeThrown, type ToolFailure } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { interruption } from "./failures.ts";
import type { StepAnswer } from "./plan.ts";

/** Runs the tool: a value, a promise, or a generator whose yields are streamed. */
export function runTool(call: Call): StepAnswer {
  const { tool, interruptedBy } = call;
  // The last moment at which a call can end without its tool having been touched.
  if (interruptedBy !== undefined) return interruption(tool.id, interruptedBy, "about to run");
  call.ran = true;
  try {
    const output: unknown = tool.execute?.(call.args, call.context);
    if (typeof output === "object" && output !== null) {
      if (isGenerator(output)) return runToEnd(call, drain(call, output));
      // A thenable that throws in `then` rejects here, as any other.
      if (isThenable(output)) return runToEnd(call, Promise.resolve(output));
    }
    call.output = output;
    return undefined;
  } catch (error) {
    return threw(call, error);
  }
}

function runToEnd(call: Call, running: Promise<unknown>): StepAnswer {
  const ended = running.then(
    (output) => {
      call.output = output;
      return undefined;
    },
    (error: unknown) => threw(call, error),
  );
  call.running = ended;
  return ended;
}

/** Streams what a generator yields, as fast as it is taken; answers what it returns. */
async function drain(
  call: Call,
  generator: AsyncGenerator<unknown, unknown, void>,
): Promise<unknown> {
  // Async, because a generator that is none of the language's own may throw, or answer no promise.
  call.stopTool = async () => await generator.return(undefined);
  for (;;) {
    const step = await generator.next();
    if (step.done === true) return step.value;
    await call.sender.output(step.value);
    // A generator that never waits for anything lets no timer fire.
    if (call.over || call.deadline.expired()) {
      await generator.return(undefined);
      return undefined;
    }
  }
}

function threw(call: Call, error: unknown): ToolFailure {
  const why = `the tool threw: ${describeThrown(error)}`;
  // A tool that stops by throwing the reason it was given did as it should: no news for the host.
  return call.interruptedBy !== undefined && error === call.deadline.signal.reason
    ? call.fail("threw", why)
    : call.failed("execute", error, "threw", why);
}

function isGenerator(value: object): value is AsyncGenerator<unknown, unknown, void> {
  const { next, return: stop } = value as { readonly next?: unknown; readonly return?: unknown };
  return typeof next === "function" && typeof stop === "function" && Symbol.asyncIterator in value;
}

function isThenable(value: object): value is PromiseLike<unknown> {
  return typeof (value as { readonly then?: unknown }).then === "function";
}
