/**
 * A call that runs in this process, and may outlive its request.
 *
 * @module
 */

import { ToolResult } from "../../tool/mod.ts";
import type { DispatchContext, ToolProgress } from "../request.ts";

/** A call that runs in this process, and may be a task. */
export interface Run {
  /** Aborts the call. */
  readonly abort: () => void;
  readonly owner: string;
  result: Promise<ToolResult>;
  progress: ToolProgress | undefined;
  /** Called when there is progress. */
  changed: () => void;
  /** Detaches the call from the caller's request. */
  detach(): void;
}

/** Runs a call with a separate signal. */
export function beginRun(
  owner: string,
  context: DispatchContext,
  dispatch: (context: DispatchContext) => Promise<ToolResult>,
): Run {
  const controller = new AbortController();
  const { signal } = context;
  const caller = typeof signal === "function" ? signal() : signal;
  const abort = (): void => controller.abort(caller?.reason);
  let isAttached = true;
  let cancel = (): void => {};
  // On Workers, a request that cancels a task must not run the code of the request that started it.
  void new Promise<void>((resolve) => cancel = resolve).then(() =>
    controller.abort(new DOMException("The task was cancelled", "AbortError"))
  );
  const run: Run = {
    abort: cancel,
    owner,
    progress: undefined,
    changed: () => {},
    result: Promise.resolve(ToolResult.error("The call has not begun")),
    detach() {
      isAttached = false;
      caller?.removeEventListener("abort", abort);
    },
  };
  if (caller?.aborted === true) abort();
  else caller?.addEventListener("abort", abort, { once: true });
  run.result = dispatch({
    ...context,
    signal: controller.signal,
    progress(progress) {
      run.progress = progress;
      run.changed();
      if (isAttached) context.progress?.(progress);
    },
    metadata: (value) => isAttached ? context.metadata?.(value) : undefined,
    output: (value, bytes) => isAttached ? context.output?.(value, bytes) : undefined,
  });
  return run;
}
