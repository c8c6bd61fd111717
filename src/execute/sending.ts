/**
 * Sends what a tool emits while it runs to the host: metadata, progress and the output of generators.
 *
 * @module
 */

import { callHook, clip } from "../tool/mod.ts";
import { describeRefusal, frozenCopy, readJson } from "./json_value.ts";
import type { Call } from "./layer.ts";
import { maxOutputBytes } from "./output.ts";

const MAX_PROGRESS_MESSAGE = 1_000;

/** How many values were dropped, by call; most calls drop none. */
const dropped: WeakMap<Call, number> = new WeakMap();

/** How many values the tool of a call sent that were not JSON or too large. */
export function countDropped(call: Call): number {
  return dropped.get(call) ?? 0;
}

/** Sends a value. One that is not JSON is dropped and counted: it never fails the tool. */
export function sendMetadata(call: Call, value: unknown): void {
  const { options } = call;
  if (options.metadata === undefined || call.isOver) return;
  const copy = copyOf(call, value);
  if (copy === undefined) return;
  callHook(() => options.metadata?.(copy.value), (error) => call.report("metadata", error));
}

export function sendProgress(
  call: Call,
  done: number,
  total: number | undefined,
  message: string | undefined,
): void {
  const { options } = call;
  if (options.progress === undefined || call.isOver) return;
  if (![done, total ?? 0].every(Number.isFinite)) {
    return drop(call, new RangeError("Cannot send progress: it must be finite numbers"));
  }
  const progress = Object.freeze({
    done,
    ...(total !== undefined && { total }),
    ...(typeof message === "string" && { message: clip(message, MAX_PROGRESS_MESSAGE) }),
  });
  callHook(() => options.progress?.(progress), (error) => call.report("metadata", error));
}

/** Sends what a generator yielded. Resolves when the generator may continue. */
export async function sendOutput(call: Call, value: unknown): Promise<void> {
  const { options } = call;
  if (options.output === undefined || call.isOver) return;
  const copy = copyOf(call, value);
  if (copy === undefined) return;
  try {
    await options.output(copy.value, copy.bytes);
  } catch (error) {
    call.report("metadata", error);
  }
}

/** A frozen copy for the host; `undefined` if the value is dropped. */
function copyOf(
  call: Call,
  value: unknown,
): { readonly value: unknown; readonly bytes: number } | undefined {
  const limit = maxOutputBytes(call);
  const verdict = readJson(value, limit);
  if (verdict.kind === "json") return { value: frozenCopy(verdict.value), bytes: verdict.bytes };
  const why = verdict.kind === "large"
    ? `it is larger than ${limit} bytes of JSON`
    : describeRefusal(verdict);
  drop(call, new TypeError(`Cannot send a value: ${why}`));
  return undefined;
}

function drop(call: Call, error: Error): void {
  dropped.set(call, countDropped(call) + 1);
  call.report("metadata", error);
}
