/**
 * Sends the metadata, the progress and the generator output of a running tool to the host, and the
 * failure of its call. Removes secrets from these and from everything else that leaves the tool.
 */

import {
  attemptOr,
  callHook,
  clip,
  defined,
  fail,
  type HookLog,
  type ToolFailure,
} from "../../tool/mod.ts";
import { nameIn } from "../dispatcher.ts";
import type { Call, Layer } from "../layer.ts";
import { describeRefusal, frozenCopy, readJson } from "../json_value.ts";
import { maxOutputBytes, redacted } from "../output.ts";
import type { DispatchContext } from "../request.ts";

const MAX_PROGRESS_MESSAGE = 1_000;

/** The number of dropped values, by call; most calls drop none. */
const dropped: WeakMap<Call, number> = new WeakMap();

export function countDropped(call: Call): number {
  return dropped.get(call) ?? 0;
}

/**
 * Creates a layer that passes frozen copies of emitted values to the callbacks of the call:
 * `metadata`, `progress`, and `output` for the yields of a generator. A value that is not JSON, or
 * too large, is dropped and reported to `onError`. Without this layer, these values are not sent.
 */
export function emissions(): Layer {
  return {
    name: "emissions",
    stage: "run",
    context: {
      metadata: (call) => (value: unknown) =>
        send(call, "metadata", () => copyOf(call, value).value),
      progress: (call) => (done: number, total?: number, message?: string) =>
        send(call, "progress", () => {
          const areNumbers = [done, total ?? 0].every(Number.isFinite);
          if (!areNumbers) fail("send progress", "its numbers must be finite");
          const text = typeof message === "string"
            ? clip(message, MAX_PROGRESS_MESSAGE)
            : undefined;
          return frozenCopy(redacted(call, defined({ done, total, message: text })));
        }),
    },
    observe: () => ({
      async yielded(call, value) {
        const { options } = call;
        if (options.output === undefined || call.isOver) return;
        const copy = tryCopy(call, () => copyOf(call, value));
        if (copy !== undefined) await options.output(copy.value, copy.bytes);
      },
    }),
  };
}

/**
 * A layer that sends `{ type: "error", tool, error, message, issues }` to the `metadata` callback
 * of a failed call, as its last value. Stage `call`.
 */
export function failureNotice(): Layer {
  return {
    name: "failure-notice",
    stage: "call",
    observe: ({ id }) => ({
      failed: (call, failed) =>
        notify(call.options, id, failed, (error) => call.report("metadata", error)),
    }),
    unresolved: (request, options, failed, report) =>
      notify(options, nameIn(request), failed, (error) => report("metadata", error)),
  };
}

/** Sends a value. An invalid value is dropped and counted, and never fails the tool. */
function send(call: Call, name: "metadata" | "progress", copy: () => unknown): void {
  const { options } = call;
  if (options[name] === undefined || call.isOver) return;
  const copied = tryCopy(call, copy);
  if (copied === undefined) return;
  callHook(() => options[name]?.(copied as never), (error) => call.report("metadata", error));
}

function tryCopy<T>(call: Call, copy: () => T): T | undefined {
  try {
    return copy();
  } catch (error) {
    dropped.set(call, countDropped(call) + 1);
    call.report("metadata", error);
    return undefined;
  }
}

function copyOf(call: Call, value: unknown): { readonly value: unknown; readonly bytes: number } {
  const limit = maxOutputBytes(call);
  const verdict = readJson(value, limit);
  if (verdict.kind === "json") {
    return { value: frozenCopy(redacted(call, verdict.value)), bytes: verdict.bytes };
  }
  const why = verdict.kind === "large"
    ? `it is larger than ${limit} bytes of JSON`
    : describeRefusal(verdict);
  throw new TypeError(`Cannot send a value: ${why}`);
}

function notify(
  options: DispatchContext,
  tool: string,
  { error: { code: error, message, issues } }: ToolFailure,
  log: HookLog,
): void {
  if (error === "input_required") return;
  const notice = frozenCopy({ type: "error", tool, error, message, issues });
  callHook(() => options.metadata?.(notice), log);
}

/**
 * Removes secrets from everything that leaves the tool of a call, before other layers receive it:
 * JSON (its result or failure, the values that it sends, its questions, the results of its steps)
 * and errors for `onError`. For layers that give secrets to tools.
 *
 * @param change Returns a value without the secrets. If it throws, the value is not sent.
 */
export function redactWith(call: Call, change: (value: unknown) => unknown): void {
  const { redact = (value: unknown): unknown => value } = call;
  const hidden = call.fail("threw", "secrets in its values could not be removed");
  const all = (value: unknown): unknown => attemptOr<unknown>(hidden, () => change(redact(value)));
  Object.assign(call, { redact: all });
}
