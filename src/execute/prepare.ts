/**
 * The steps before a call's arguments matter: is the tool there, can it run, is it ready?
 *
 * @module
 */

import { ToolLifecycleError, type ToolRuntime } from "../registry/mod.ts";
import type { ToolFailure } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { interruption } from "./failures.ts";
import type { StepAnswer } from "./plan.ts";

/** A call that was over before it began does not begin. */
export function checkTime({ tool, options: { signal, timeoutMs } }: Call): ToolFailure | undefined {
  if (signal?.aborted === true) return interruption(tool.id, "aborted", "beginning");
  return typeof timeoutMs === "number" && timeoutMs <= 0
    ? interruption(tool.id, "timeout", "beginning")
    : undefined;
}

/** Asks the tool's availability again: it may have changed since it was listed. */
export function checkAvailable(call: Call): ToolFailure | undefined {
  return call.toolset.isAvailable(call.tool)
    ? undefined
    : call.fail("unavailable", "the tool is not available now");
}

/** A tool without `execute` is a definition only. */
export function refuseDefinition(call: Call): ToolFailure {
  return call.fail("not_executable", "it is a definition only and cannot be run here");
}

/** Makes the tool ready, which runs its `init` before the first call. */
export function acquireTool(call: Call): StepAnswer {
  const { host, tool } = call;
  try {
    const runtime = host.acquire(tool);
    if (runtime instanceof Promise) {
      return runtime.then((ready) => hold(call, ready), (error: unknown) => notReady(call, error));
    }
    return hold(call, runtime);
  } catch (error) {
    return notReady(call, error);
  }
}

function hold(call: Call, runtime: ToolRuntime): undefined {
  // The call may have ended meanwhile; the tool must not be held for it.
  if (call.over) call.host.release(runtime);
  else call.hold(runtime);
}

function notReady(call: Call, error: unknown): ToolFailure {
  // Other errors are of the host's making, and were not written for a model.
  const why = error instanceof ToolLifecycleError
    ? error.message
    : "the tool could not be made ready";
  return call.failed("init", error, "unavailable", why);
}
