/**
 * Reads values that ought to be JSON: copies what is, and says what is not, and where.
 *
 * @module
 */

import { pointerStep, setOwn } from "./json_members.ts";

/** How deep a value may be. */
export const MAX_DEPTH = 256;

/** What {@linkcode JsonReader.read} answers when it stopped. */
export const STOPPED: unique symbol = Symbol("plue.stopped");

/** How a value is read. */
export interface JsonReaderOptions {
  /** How many values it may hold. */
  readonly maxValues?: number;
  /** How many bytes of JSON it may surely have. Reading stops there: it need not be looked at. */
  readonly maxBytes?: number;
  /** Asks `toJSON` for what stands for an object, as `JSON.stringify` does. */
  readonly standIns?: boolean;
  /** Freezes the copy, all the way down. */
  readonly freeze?: boolean;
}

/** One reading of one value. */
export class JsonReader {
  /** The value has at least so many bytes of JSON, as far as it was read. */
  bytes = 0;
  /** The copy differs from the value in more than identity. */
  converts = false;
  /** What was found that is not JSON; `undefined` after stopping at the limit of bytes. */
  what: string | undefined;
  readonly #options: JsonReaderOptions;
  #values = 0;
  /** The way to what was found, innermost step first. */
  readonly #steps: (string | number)[] = [];

  constructor(options: JsonReaderOptions) {
    this.#options = options;
  }

  /** Where it stopped, as a JSON Pointer. */
  get pointer(): string {
    let pointer = "";
    for (const step of this.#steps.toReversed()) {
      pointer += pointerStep(step);
      if (pointer.length > 200) return `${pointer.slice(0, 200)}…`;
    }
    return pointer;
  }

  /** A copy of the value, or {@linkcode STOPPED}. Members that are `undefined` are left out. */
  read(value: unknown, depth = 0): unknown {
    const { maxValues = Infinity } = this.#options;
    if (++this.#values > maxValues) return this.#refuse(`more than ${maxValues} values`);
    switch (typeof value) {
      case "string":
        return this.#counted(value, value.length + 2);
      case "boolean":
        return this.#counted(value, 4);
      case "number":
        if (Number.isFinite(value)) return this.#counted(value, 1);
        break;
      case "object":
        if (value === null) return this.#counted(value, 4);
        if (depth >= MAX_DEPTH) {
          return this.#refuse(`deeper than ${MAX_DEPTH} levels: it may contain itself`);
        }
        return Array.isArray(value)
          ? this.#list(value, depth + 1)
          : this.#object(value as Record<string, unknown>, depth + 1);
    }
    const isShort = typeof value === "number" || value === undefined;
    return this.#refuse(`${isShort ? value : `a ${typeof value}`}, which is not JSON`);
  }

  #list(list: readonly unknown[], depth: number): unknown {
    const copy: unknown[] = [];
    // By index, which visits holes too. Each item brings a comma, or the other bracket.
    for (let index = 0; index < list.length; index++) {
      this.bytes++;
      const item = this.read(list[index], depth);
      if (item === STOPPED) return this.#stopAt(index);
      copy.push(item);
    }
    return this.#counted(this.#done(copy), 1);
  }

  #object(object: Record<string, unknown>, depth: number): unknown {
    const { standIns = false } = this.#options;
    if (standIns && typeof object["toJSON"] === "function") {
      this.converts = true;
      return this.read(object["toJSON"](), depth);
    }
    const keys = Object.keys(object);
    if (!isPlain(object)) {
      // A Date or a Map has no members of its own: its content would be lost.
      if (classOf(object) !== "Object" || keys.length === 0) {
        return this.#refuse(`an instance of ${constructorName(object)}, which is not JSON`);
      }
      this.converts = true;
    }
    const copy: Record<string, unknown> = {};
    for (const key of keys) {
      const member = object[key];
      if (member === undefined) {
        this.converts = true;
        continue;
      }
      this.bytes += key.length + 4;
      const read = this.read(member, depth);
      if (read === STOPPED) return this.#stopAt(key);
      setOwn(copy, key, read);
    }
    return this.#counted(this.#done(copy), 1);
  }

  #done<T>(copy: T): T {
    return this.#options.freeze === true ? Object.freeze(copy) : copy;
  }

  #counted(value: unknown, bytes: number): unknown {
    this.bytes += bytes;
    return this.bytes > (this.#options.maxBytes ?? Infinity) ? STOPPED : value;
  }

  #refuse(what: string): typeof STOPPED {
    this.what = what;
    return STOPPED;
  }

  #stopAt(step: string | number): typeof STOPPED {
    this.#steps.push(step);
    return STOPPED;
  }
}

/** Whether it has no prototype, or Object's, also that of another realm. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** `Object` for every object but the built-in ones, also for an instance of somebody's class. */
function classOf(object: object): string {
  return Object.prototype.toString.call(object).slice("[object ".length, -1);
}

function constructorName(object: object): string {
  const name: unknown = (object.constructor as { readonly name?: unknown } | undefined)?.name;
  return typeof name === "string" && name !== "" ? name.slice(0, 60) : "a class";
}
