/**
 * The steps before a call's arguments matter: is the tool there, can it run, is it ready?
 *
 * @module
 */

import { ToolLifecycleError } from "../registry/mod.ts";
import type { ToolFailure } from "../tool/mod.ts";
import type { Call } from "./call.ts";
import { failure } from "./failures.ts";
import type { StepAnswer } from "./plan.ts";

/** Asks the tool's availability again: it may have changed since it was listed. */
export function checkAvailable(call: Call): ToolFailure | undefined {
  return call.toolset.isAvailable(call.tool)
    ? undefined
    : failure("unavailable", call.tool.id, "the tool is not available now");
}

/** A tool without `execute` is a definition only. */
export function refuseDefinition(call: Call): ToolFailure {
  return failure("not_executable", call.tool.id, "it is a definition only and cannot be run here");
}

/** Makes the tool ready, which runs its `init` before the first call. */
export function acquireTool(call: Call): StepAnswer {
  const { host, tool } = call;
  try {
    const runtime = host.acquire(tool);
    if (!(runtime instanceof Promise)) {
      call.hold(runtime);
      return undefined;
    }
    return runtime.then(
      (ready) => {
        // The call may have ended meanwhile; the tool must not be held for it.
        if (call.over) host.release(ready);
        else call.hold(ready);
        return undefined;
      },
      (error: unknown) => notReady(call, error),
    );
  } catch (error) {
    return notReady(call, error);
  }
}

function notReady(call: Call, error: unknown): ToolFailure {
  call.report("init", error);
  return failure(
    "unavailable",
    call.tool.id,
    // Other errors are of the host's making, and were not written for a model.
    error instanceof ToolLifecycleError ? error.message : "the tool could not be made ready",
  );
}
