/**
 * What a streamed response has become so far.
 *
 * @module
 */

import type { ExportNames } from "../types.ts";
import { decodeWireCall, refused } from "./decode_calls.ts";
import { isWhole } from "./input.ts";
import { isRecord } from "./shape.ts";
import type { CallFormat, DecodedCall, StreamFormat, StreamStep, WireCall } from "./types.ts";

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

/**
 * Collects the calls of one stream. The format's {@linkcode StreamFormat} says what an event means;
 * this says when a call is whole, and keeps to the bounds.
 */
export class Accumulator {
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
