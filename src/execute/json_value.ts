/**
 * Looks at a value as JSON, once: is it JSON, how deep, how large. Results and arguments both come
 * this way, so that what is handed on can always be written down and read back unchanged.
 *
 * @module
 */

import { pointerStep } from "../tool/mod.ts";

/** How deep a value may be. */
export const MAX_DEPTH = 256;

/** The longest number: -0.0000012345678901234567. */
const MAX_NUMBER = 25;

/** A value that is JSON, as plain data, with bounds on its size in bytes of JSON. */
export interface JsonAccepted {
  readonly kind: "json";
  /** The value itself, or plain data in its place if it had members that JSON writes otherwise. */
  readonly value: unknown;
  /** It has at most so many bytes: the exact number, or an upper bound within the limit. */
  readonly bytes: number;
}

/** A value that is JSON, and larger than the limit. It has not been looked at to its end. */
export interface JsonTooLarge {
  readonly kind: "large";
  /** It has at least so many bytes. */
  readonly bytes: number;
}

/** A value that is not JSON. */
export interface JsonRefused {
  readonly kind: "refused";
  /** Where, as a JSON Pointer. */
  readonly pointer: string;
  /** What is there, in words. */
  readonly what: string;
}

/** Says where and what: `"/a/1" is NaN, which is not JSON`. */
export function describeRefusal({ pointer, what }: JsonRefused): string {
  return pointer === "" ? `it is ${what}` : `"${pointer}" is ${what}`;
}

/** What {@linkcode readJson} says of a value. */
export type JsonVerdict = JsonAccepted | JsonTooLarge | JsonRefused;

/**
 * Reads a value as JSON.
 *
 * `toJSON` is honoured, members that are `undefined` are left out, and instances of classes become
 * plain objects, all as `JSON.stringify` does it. What `JSON.stringify` would change or lose
 * silently is refused: `NaN`, functions, symbols, `undefined` in a list, a `Map`, an `Error`.
 *
 * @param value What to look at. It is not changed.
 * @param limit How many bytes of JSON it may have.
 */
export function readJson(value: unknown, limit: number): JsonVerdict {
  try {
    const most = quickLook(value, limit, 0);
    if (most <= limit) return { kind: "json", value, bytes: most };
    const walk = new Walk(limit);
    if (!walk.visit(value, 0)) {
      return walk.what === undefined
        ? { kind: "large", bytes: walk.bytes }
        : { kind: "refused", pointer: walk.pointer(), what: walk.what };
    }
    const text = JSON.stringify(value);
    const bytes = utf8Length(text);
    if (bytes > limit) return { kind: "large", bytes };
    return { kind: "json", value: walk.converts ? JSON.parse(text) : value, bytes };
  } catch {
    // A getter, a toJSON or a proxy threw.
    return { kind: "refused", pointer: "", what: "a value that cannot be read" };
  }
}

/**
 * How many bytes of JSON the value has at most; `NaN` if that takes a closer look, because it is
 * large or has something in it that is not plain data. Most values are small and plain, and are
 * looked at in this way only, which allocates nothing.
 */
function quickLook(value: unknown, limit: number, depth: number): number {
  if (typeof value === "string") return 6 * value.length + 2;
  if (typeof value === "number") return Number.isFinite(value) ? MAX_NUMBER : NaN;
  if (typeof value === "boolean") return 5;
  if (typeof value !== "object" || depth === MAX_DEPTH) return NaN;
  if (value === null) return 4;
  let most = 2;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      most += 1 + quickLook(value[index], limit, depth + 1);
      // False for NaN, too.
      if (!(most <= limit)) return NaN;
    }
    return most;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return NaN;
  // Twice as fast as Object.keys. What somebody added to Object.prototype is counted in, which
  // leaves the sum an upper bound.
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    most += 6 * key.length + 4 + quickLook(member, limit, depth + 1);
    if (!(most <= limit)) return NaN;
  }
  return most;
}

const ENCODER = new TextEncoder();

/** How many bytes `text` has in UTF-8. */
export function utf8Length(text: string): number {
  return ENCODER.encode(text).length;
}

/** How many bytes of JSON a string takes. */
export function jsonBytes(text: string): number {
  return utf8Length(JSON.stringify(text));
}

/**
 * One look over a value, which counts the least bytes that its JSON can have: strings need not be
 * read for that, and a value that is surely too large need not be written.
 */
class Walk {
  /** The value has at least so many, as far as it was looked at. */
  bytes = 0;
  /** Some member is not written as it stands. */
  converts = false;
  /** What was found that is not JSON. */
  what: string | undefined;
  readonly #limit: number;
  /** The way to what was found, innermost step first. */
  readonly #steps: (string | number)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  pointer(): string {
    let pointer = "";
    for (const step of this.#steps.reverse()) {
      pointer += pointerStep(step);
      if (pointer.length > 200) return `${pointer.slice(0, 200)}…`;
    }
    return pointer;
  }

  /** Whether the value is JSON and not yet too large. */
  visit(value: unknown, depth: number): boolean {
    switch (typeof value) {
      case "string":
        return this.#count(value.length + 2);
      case "boolean":
        return this.#count(4);
      case "number":
        if (Number.isFinite(value)) return this.#count(1);
        break;
      case "object":
        if (value === null) return this.#count(4);
        if (depth >= MAX_DEPTH) {
          return this.#refuse(`deeper than ${MAX_DEPTH} levels: it may contain itself`);
        }
        return Array.isArray(value)
          ? this.#visitList(value, depth + 1)
          : this.#visitObject(value as Record<string, unknown>, depth + 1);
    }
    const isShort = typeof value === "number" || value === undefined;
    return this.#refuse(`${isShort ? value : `a ${typeof value}`}, which is not JSON`);
  }

  #visitList(list: readonly unknown[], depth: number): boolean {
    // A bracket, and below each member is counted with a comma or the other bracket.
    if (!this.#count(1)) return false;
    for (let index = 0; index < list.length; index++) {
      this.bytes++;
      if (!this.visit(list[index], depth)) return this.#at(index);
    }
    return true;
  }

  #visitObject(object: Record<string, unknown>, depth: number): boolean {
    if (!isPlain(object)) {
      if (typeof object["toJSON"] === "function") return this.#visitStandIn(object, depth);
      if (
        object instanceof Error || ArrayBuffer.isView(object) || Object.keys(object).length === 0
      ) return this.#refuse(`an instance of ${className(object)}, which is not JSON`);
      this.converts = true;
    }
    if (!this.#count(1)) return false;
    for (const key of Object.keys(object)) {
      const member = object[key];
      if (member === undefined) {
        this.converts = true;
        continue;
      }
      if (typeof member === "function" && key === "toJSON") {
        return this.#visitStandIn(object, depth);
      }
      this.bytes += key.length + 4;
      if (!this.visit(member, depth)) return this.#at(key);
    }
    return true;
  }

  #visitStandIn(object: Record<string, unknown>, depth: number): boolean {
    this.converts = true;
    const toJson = object["toJSON"] as () => unknown;
    return this.visit(toJson.call(object), depth);
  }

  #count(bytes: number): boolean {
    this.bytes += bytes;
    return this.bytes <= this.#limit;
  }

  #refuse(what: string): false {
    this.what = what;
    return false;
  }

  #at(step: string | number): false {
    if (this.what !== undefined) this.#steps.push(step);
    return false;
  }
}

/** Whether it has no prototype, or Object's, also that of another realm. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function className(object: object): string {
  const name: unknown = (object.constructor as { readonly name?: unknown } | undefined)?.name;
  return typeof name === "string" && name !== "" ? name.slice(0, 60) : "a class";
}
