/**
 * Puts the calls of a streamed response together.
 *
 * @module
 */

import type { ExportNames, TargetName } from "../types.ts";
import { Accumulator } from "./accumulator.ts";
import { callFormatOf } from "./formats.ts";
import type { CallFormat, DecodedCall } from "./types.ts";

/** Options for {@linkcode accumulateCalls}. */
export interface AccumulateOptions {
  /**
   * How long the arguments of all calls may be together, in characters. A call that goes beyond it
   * is refused; the others are not.
   *
   * @default {4_194_304}
   */
  readonly maxCharacters?: number;
  /**
   * How many calls there may be.
   *
   * @default {1_024}
   */
  readonly maxCalls?: number;
}

/** The calls of one streamed response, as they come. */
export interface CallAccumulator {
  /**
   * Takes the next event of the stream, parsed. Events that say nothing about calls are ignored.
   *
   * @returns The calls that are whole since this event.
   * @throws {TypeError} If it is no object, or the stream has ended.
   * @throws {RangeError} If there are more calls than allowed.
   */
  push(event: unknown): readonly DecodedCall[];
  /** The calls that are whole by now, in the order in which they began. */
  calls(): readonly DecodedCall[];
  /**
   * Ends the stream, also one that broke off: a call that is not whole then is refused.
   *
   * @returns All calls, in the order in which they began. Asked again, the same.
   */
  end(): readonly DecodedCall[];
}

/** A target whose calls are streamed. */
export type StreamTarget = Exclude<TargetName, `mcp${string}` | `openapi${string}`>;

/**
 * Puts the calls of a streamed response together, from the events of the provider's API or SDK.
 *
 * A call is given out as soon as it is sure to be whole: at its own end where the target marks that
 * (Responses, Anthropic, Bedrock, Cohere), or else when the model stops. Calls may be interleaved.
 * A call that the token limit or a broken connection cut off is refused, never run with a part of
 * its arguments; see `callNotes("langchain")` for the one exception.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool } from "@plue/tools";
 * import { accumulateCalls, exportTools } from "@plue/tools/formats";
 *
 * const { names } = exportTools([defineTool({ name: "add", description: "Adds." })], "anthropic");
 * const stream = accumulateCalls("anthropic", names);
 * const block = { type: "tool_use", id: "toolu_1", name: "add", input: {} };
 * stream.push({ type: "content_block_start", index: 0, content_block: block });
 * stream.push({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"a":' } });
 * stream.push({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "1}" } });
 *
 * const [call] = stream.push({ type: "content_block_stop", index: 0 });
 * assert.deepEqual(call?.arguments, { a: 1 });
 * assert.equal(stream.end().length, 1);
 * ```
 *
 * @param target The target that the tools were exported to.
 * @param names The names of the export.
 * @param options Bounds.
 * @returns What takes the events.
 * @throws {RangeError} If there is no such target, or a bound is no positive whole number.
 * @throws {TypeError} If its calls are not streamed.
 */
export function accumulateCalls(
  target: StreamTarget,
  names: ExportNames,
  options: AccumulateOptions = {},
): CallAccumulator {
  const { maxCharacters = 4_194_304, maxCalls = 1_024 } = options;
  for (const [name, bound] of Object.entries({ maxCharacters, maxCalls })) {
    if (!Number.isSafeInteger(bound) || bound < 1) {
      throw new RangeError(`Cannot accumulate calls: ${name} must be a positive whole number`);
    }
  }
  const format: CallFormat = callFormatOf(target);
  if (format.stream === undefined) {
    throw new TypeError(`Cannot accumulate calls of "${target}": they are not streamed`);
  }
  return new Accumulator(format, format.stream(), names, maxCharacters, maxCalls);
}
