/** Assembles the calls of a streamed response. */

import { isObject, type JsonValue, once, setOwn, wholeFrom } from "../tool/mod.ts";
import { decodeArguments } from "./argument_rewrite.ts";
import type { CallFormat, StreamFormat, StreamStep, WireCall } from "./call_format.ts";
import { isWhole } from "./wire.ts";
import { type DecodedCall, decodeWireCall, isOurs, toProblem } from "./decode.ts";
import type { ExportNames } from "./export_names.ts";
import { checkTarget, type Target } from "./target.ts";

/** Options for {@linkcode accumulateCalls}. */
export interface AccumulateOptions {
  /** The maximum length of all arguments. Only calls beyond it fail. @default {4_194_304} */
  readonly maxCharacters?: number;
  /** The maximum number of calls. @default {1_024} */
  readonly maxCalls?: number;
}

/** The known part of an incomplete call, for display. It cannot be run. */
export interface PartialCall {
  readonly callId: string | undefined;
  /** The name, which may still become longer. */
  readonly wireName: string;
  /** The id of the tool with that name. */
  readonly tool: string | undefined;
  /** The known arguments in the tool's own form. Texts, lists and objects may still grow. */
  readonly partialArguments: unknown;
}

interface Slot {
  id: string | undefined;
  name: string;
  start: unknown;
  text: string;
  /** True after an event that begins a call. Deltas alone may belong to other blocks. */
  opened: boolean;
  /** True after the end of the call, or after all of its arguments. */
  closed: boolean;
  tooLong: boolean;
  call: DecodedCall | undefined;
}

const checkCount = wholeFrom(1);

/** Reads the calls of a streamed response with the record of a target. */
export function accumulateCallsOf(
  target: Target,
  names: ExportNames,
  options: AccumulateOptions = {},
): CallAccumulator {
  return new CallAccumulator(target, names, options);
}

/** Collects the calls of one streamed response. {@linkcode accumulateCalls} creates it. */
export class CallAccumulator {
  readonly #names: ExportNames;
  readonly #format: CallFormat;
  readonly #reader: StreamFormat;
  readonly #maxCharacters: number;
  readonly #maxCalls: number;
  /** The calls, in the order in which they began. */
  readonly #slots = new Map<string, Slot>();
  #characters = 0;
  #newIds = 0;
  #ended = false;

  constructor(target: Target, names: ExportNames, options: AccumulateOptions) {
    const { maxCharacters = 4_194_304, maxCalls = 1_024 } = options;
    this.#maxCharacters = checkCount("accumulate calls", maxCharacters, "maxCharacters");
    this.#maxCalls = checkCount("accumulate calls", maxCalls, "maxCalls");
    const { id, calls } = checkTarget(target);
    if (calls.stream === undefined) {
      throw new TypeError(`Cannot accumulate calls of "${id}": they are not streamed`);
    }
    this.#names = names;
    this.#format = calls;
    this.#reader = calls.stream();
  }

  /**
   * Reads the next event, as parsed JSON. Events that are not about calls are ignored.
   *
   * @returns The calls that this event completed.
   * @throws {TypeError} If the event is not an object, or the stream has ended.
   * @throws {RangeError} If there are more calls than allowed.
   */
  push(event: unknown): readonly DecodedCall[] {
    if (this.#ended) throw new TypeError("Cannot push an event: the stream has ended");
    if (!isObject(event)) {
      throw new TypeError("Cannot push an event: it must be an object, parsed from its JSON");
    }
    return this.#reader.steps(event).flatMap((step) => this.#take(step));
  }

  /** Returns the incomplete calls, for display. Parses their whole texts each time. */
  partial(): readonly PartialCall[] {
    return this.#open().map((slot) => {
      const { id: callId, name: wireName, namespace } = this.#rebuild(slot, false);
      const tool = this.#names.idOf(wireName, namespace);
      const known = readPartialJson(slot.text);
      const rewrite = tool === undefined ? undefined : this.#names.encodingOf(tool)?.input;
      const partialArguments = known === undefined ? undefined : decodeArguments(known, rewrite);
      return { callId, wireName, tool, partialArguments };
    });
  }

  /** Ends the stream, rejects incomplete calls, and returns all calls in their order. */
  end(): readonly DecodedCall[] {
    if (!this.#ended) {
      this.#ended = true;
      this.#finish(this.#reader.endsSilently !== true, true);
    }
    return [...this.#slots.values()].flatMap(({ call }) => call ?? []);
  }

  #open(): readonly Slot[] {
    return [...this.#slots.values()].filter(({ opened, call }) => opened && call === undefined);
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
        const [wire] = this.#format.read([step.raw]).filter((one) => isOurs(one, this.#names));
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
        // Without a text, the call may have been cut off. The later stop reason decides.
        return slot.text === "" ? [] : [this.#complete(slot, this.#rebuild(slot, false))];
    }
  }

  #slotOf(key: string): Slot {
    return once(this.#slots, key, () => {
      if (this.#slots.size >= this.#maxCalls) {
        throw new RangeError(
          `Cannot accumulate the calls: there are more than ${this.#maxCalls} in the response`,
        );
      }
      const unknown = { id: undefined, name: "", start: undefined, text: "", call: undefined };
      return { ...unknown, opened: false, closed: false, tooLong: false };
    });
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

  /** Completes the open calls when the model has stopped or the stream broke off. */
  #finish(cutOff: boolean, broken: boolean): readonly DecodedCall[] {
    return this.#open().map((slot) => {
      const isComplete = (broken && slot.closed) || isWhole(slot.text);
      return this.#complete(slot, this.#rebuild(slot, cutOff && !isComplete));
    });
  }

  #rebuild({ id, name, text, start }: Slot, cutOff: boolean): WireCall {
    const [wire] = this.#format.read(this.#reader.rebuild({ id, name, text, start }));
    // `read` always returns the call of `rebuild`, so the default is only for the type.
    return { ...wire ?? { id, name, input: text, raw: start }, cutOff };
  }

  #complete(slot: Slot, wire: WireCall): DecodedCall {
    slot.opened = true;
    const call = decodeWireCall(wire, wire.id ?? this.#newId(), this.#names);
    const excess = `the arguments of the response have more than ${this.#maxCharacters} characters`;
    slot.call = slot.tooLong
      ? { ...call, name: undefined, problem: toProblem("invalid_arguments", wire, excess) }
      : call;
    // The text is freed, because the call contains it. Its length still counts for the limit.
    slot.text = "";
    return slot.call;
  }

  #newId(): string {
    const taken = new Set([...this.#slots.values()].map(({ id, call }) => call?.callId ?? id));
    for (;;) {
      const id = `call_${++this.#newIds}`;
      if (!taken.has(id)) return id;
    }
  }
}

// The beginning of a JSON text

/** The maximum depth of partial arguments. Deeper values are omitted. */
const MAX_DEPTH = 64;

const WHITE = /[ \t\n\r]*/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=[ \t\n\r,\]}])/y;
/** Whole characters of a text. Escapes are bounded, because engines use stack for each escape. */
const CHARACTERS = /[^"\\]+|(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})){1,1000}/y;

/** Reads the beginning of a JSON text. Omits numbers, literals and members that may change. */
export function readPartialJson(text: string): JsonValue | undefined {
  let at = 0;

  function take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  }

  function is(character: string): boolean {
    take(WHITE);
    if (text[at] !== character) return false;
    at++;
    return true;
  }

  /** Returns `ended: false` if more of the value may follow, or the text is invalid. */
  function read(depth: number): { readonly value: JsonValue; readonly ended: boolean } | undefined {
    take(WHITE);
    if (depth > MAX_DEPTH) return undefined;
    if (text[at] === '"') return readText();
    if (is("[")) {
      const value: JsonValue[] = [];
      const ended = readAll("]", () => {
        const item = read(depth + 1);
        if (item !== undefined) value.push(item.value);
        return item?.ended === true;
      });
      return { value, ended };
    }
    if (is("{")) {
      const value: { [name: string]: JsonValue } = {};
      const ended = readAll("}", () => {
        take(WHITE);
        const name = text[at] === '"' ? readText() : undefined;
        if (name?.ended !== true || !is(":")) return false;
        const member = read(depth + 1);
        if (member !== undefined) setOwn(value, name.value, member.value);
        return member?.ended === true;
      });
      return { value, ended };
    }
    const scalar = take(SCALAR);
    return scalar === null ? undefined : { value: JSON.parse(scalar[0]), ended: true };
  }

  /** Reads the items of a list or an object. Returns false if more items may follow. */
  function readAll(close: string, readOne: () => boolean): boolean {
    if (is(close)) return true;
    for (;;) {
      if (!readOne()) return false;
      if (!is(",")) return is(close);
    }
  }

  function readText(): { readonly value: string; readonly ended: boolean } {
    at++;
    let inside = "";
    for (let found; (found = take(CHARACTERS)) !== null;) inside += found[0];
    // The text may end within a surrogate pair. Some models do not escape control characters.
    const escaped = inside.replace(/\p{Cc}/gu, (one) => JSON.stringify(one).slice(1, -1));
    const value: string = JSON.parse(`"${escaped}"`);
    const ended = text[at] === '"';
    if (ended) at++;
    return { value: ended ? value : value.replace(/[\ud800-\udbff]$/, ""), ended };
  }

  return read(0)?.value;
}
