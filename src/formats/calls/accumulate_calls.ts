/**
 * Puts the calls of a streamed response together.
 *
 * @module
 */

import type { ExportNames, TargetName } from "../types.ts";
import { decodeWireCall, refused } from "./decode_calls.ts";
import { callFormatOf } from "./formats.ts";
import { isWhole } from "./input.ts";
import { isRecord } from "./shape.ts";
import type { CallFormat, DecodedCall, StreamFormat, StreamStep, WireCall } from "./types.ts";

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

/** A call that is being streamed. */
interface Slot {
  id: string | undefined;
  name: string;
  start: unknown;
  text: string;
  /** It was begun, not only continued: blocks of others are continued too. */
  opened: boolean;
  /** Its end was seen, or all of its arguments. */
  closed: boolean;
  tooLong: boolean;
  call: DecodedCall | undefined;
}

class Accumulator implements CallAccumulator {
  readonly #format: CallFormat;
  readonly #stream: StreamFormat;
  readonly #names: ExportNames;
  readonly #maxCharacters: number;
  readonly #maxCalls: number;
  /** In the order in which they began. */
  readonly #slots = new Map<string, Slot>();
  #characters = 0;
  #made = 0;
  #ended = false;

  constructor(
    format: CallFormat,
    stream: StreamFormat,
    names: ExportNames,
    maxCharacters: number,
    maxCalls: number,
  ) {
    this.#format = format;
    this.#stream = stream;
    this.#names = names;
    this.#maxCharacters = maxCharacters;
    this.#maxCalls = maxCalls;
  }

  push(event: unknown): readonly DecodedCall[] {
    if (this.#ended) throw new TypeError("Cannot push an event: the stream has ended");
    if (!isRecord(event)) {
      throw new TypeError("Cannot push an event: it must be an object, parsed from its JSON");
    }
    return this.#stream.steps(event).flatMap((step) => this.#take(step));
  }

  calls(): readonly DecodedCall[] {
    return [...this.#slots.values()].flatMap(({ call }) => call === undefined ? [] : [call]);
  }

  end(): readonly DecodedCall[] {
    if (!this.#ended) {
      this.#ended = true;
      this.#finish(this.#stream.endsSilently !== true, true);
    }
    return this.calls();
  }

  #take(step: StreamStep): readonly DecodedCall[] {
    if (step.type === "finish") return this.#finish(step.cutOff, false);
    const slot = this.#slotOf(step.key);
    if (slot.call !== undefined) return [];
    switch (step.type) {
      case "open":
        slot.opened = true;
        slot.id ??= step.id;
        if (slot.name === "") slot.name = step.name ?? "";
        slot.start ??= step.start;
        return [];
      case "text":
        this.#write(slot, slot.text + step.text);
        return [];
      case "input":
        this.#write(slot, step.text);
        slot.closed = true;
        return [];
      case "whole": {
        const [wire] = this.#format.read([step.raw]);
        if (wire === undefined) this.#slots.delete(step.key);
        return wire === undefined ? [] : [this.#complete(slot, wire)];
      }
      case "close":
        if (!slot.opened) {
          this.#write(slot, "");
          this.#slots.delete(step.key);
          return [];
        }
        slot.closed = true;
        // Without arguments it may have been cut off: the reason for which the model stops tells.
        return slot.text === "" ? [] : [this.#complete(slot, this.#rebuild(slot, false))];
    }
  }

  #slotOf(key: string): Slot {
    let slot = this.#slots.get(key);
    if (slot !== undefined) return slot;
    if (this.#slots.size >= this.#maxCalls) {
      throw new RangeError(
        `Cannot accumulate the calls: there are more than ${this.#maxCalls} in the response`,
      );
    }
    slot = {
      id: undefined,
      name: "",
      start: undefined,
      text: "",
      opened: false,
      closed: false,
      tooLong: false,
      call: undefined,
    };
    this.#slots.set(key, slot);
    return slot;
  }

  #write(slot: Slot, text: string): void {
    if (slot.tooLong) return;
    this.#characters += text.length - slot.text.length;
    slot.text = text;
    if (this.#characters <= this.#maxCharacters) return;
    this.#characters -= text.length;
    slot.text = "";
    slot.tooLong = true;
  }

  /** The model has stopped, or (`broken`) nothing more will come. */
  #finish(cutOff: boolean, broken: boolean): readonly DecodedCall[] {
    const done: DecodedCall[] = [];
    for (const slot of this.#slots.values()) {
      if (!slot.opened || slot.call !== undefined) continue;
      const whole = broken && slot.closed;
      done.push(this.#complete(slot, this.#rebuild(slot, cutOff && !whole && !isWhole(slot.text))));
    }
    return done;
  }

  #rebuild(slot: Slot, cutOff: boolean): WireCall {
    const { id, name, text, start } = slot;
    const [wire] = this.#format.read(this.#stream.rebuild({ id, name, text, start }));
    // A format reads what it rebuilds: this is for the type.
    const call = wire ?? { id, name, input: text, raw: start };
    return { ...call, cutOff };
  }

  /** An id for a call that has none. */
  #newId(): string {
    const taken = new Set([...this.#slots.values()].map(({ id, call }) => call?.callId ?? id));
    for (;;) {
      const id = `call_${++this.#made}`;
      if (!taken.has(id)) return id;
    }
  }

  #complete(slot: Slot, wire: WireCall): DecodedCall {
    slot.opened = true;
    const callId = wire.id ?? this.#newId();
    const call = decodeWireCall(wire, callId, this.#names);
    slot.call = slot.tooLong
      ? {
        ...call,
        name: undefined,
        problem: refused(
          "invalid_arguments",
          wire,
          `the arguments of the response have more than ${this.#maxCharacters} characters`,
        ),
      }
      : call;
    // What was collected is in the call now, and counts as long as the call is kept.
    slot.text = "";
    return slot.call;
  }
}
