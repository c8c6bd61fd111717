/**
 * JSON as data: its types, JSON Pointers, equality, and copies of values that ought to be JSON.
 *
 * @module
 */

import { clip } from "./text.ts";

/** A value that survives `JSON.stringify` and `JSON.parse` unchanged. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** A JSON Schema that is an object: draft-07 or 2020-12. */
export interface JsonSchemaObject {
  readonly [keyword: string]: unknown;
}

/** A JSON Schema: draft-07 or 2020-12. `true` accepts everything, `false` nothing. */
export type JsonSchema = boolean | JsonSchemaObject;

/** Escapes one step of a JSON Pointer (RFC 6901). */
export function pointerStep(key: string | number): string {
  return `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Sets an own property, also one named `__proto__`, which plain assignment would lose. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else target[key] = value;
}

/** The members that are not `undefined`. */
export function defined<Members extends object>(
  members: Members,
): { [Key in keyof Members]?: Exclude<Members[Key], undefined> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  // What was left out is what the type leaves out.
  return Object.fromEntries(entries) as { [Key in keyof Members]?: never };
}

/**
 * Whether two JSON values are equal: the order counts in lists, and not in objects.
 *
 * @param visit Called for each object and each list that is compared, to count the work.
 */
export function jsonEqual(a: unknown, b: unknown, visit?: () => void): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  visit?.();
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length &&
      a.every((item, index) => jsonEqual(item, b[index], visit));
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) =>
    Object.hasOwn(b, key) &&
    jsonEqual((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key], visit)
  );
}

/**
 * JSON with sorted keys. Two JSON values have the same text if they are equal, and only then.
 *
 * @param visit Called for each object and each list, to count the work.
 */
export function canonicalJson(value: unknown, visit?: () => void): string {
  // One text for all levels: to join each level copies a deep value's text as often as it is deep.
  let text = "";
  function write(part: unknown): void {
    if (typeof part !== "object" || part === null) {
      text += JSON.stringify(part);
      return;
    }
    visit?.();
    const isList = Array.isArray(part);
    let comma = "";
    text += isList ? "[" : "{";
    for (const step of isList ? part.keys() : Object.keys(part).sort()) {
      text += isList ? comma : `${comma}${JSON.stringify(step)}:`;
      comma = ",";
      write((part as Record<string, unknown>)[step]);
    }
    text += isList ? "]" : "}";
  }
  write(value);
  return text;
}

/** How deep a value may be. */
export const MAX_DEPTH = 256;

/** What {@linkcode JsonReader.read} answers when it stopped. */
export const STOPPED: unique symbol = Symbol("plue.stopped");

export interface JsonReaderOptions {
  /** How many values it may hold. */
  readonly maxValues?: number;
  /** How many bytes of JSON it may have. Reading stops when it has more for certain. */
  readonly maxBytes?: number;
  /** Asks `toJSON` for what stands for an object, as `JSON.stringify` does. */
  readonly standIns?: boolean;
  /** Freezes the copy, all the way down, but for lists that are longer than this. */
  readonly freezeTo?: number;
}

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
    return clip(this.#steps.toReversed().map(pointerStep).join(""), 200);
  }

  /** A copy of the value, or {@linkcode STOPPED}. Members that are `undefined` are left out. */
  read(value: unknown, depth = 0): unknown {
    const { maxValues = Infinity, maxBytes = Infinity } = this.#options;
    if (++this.#values > maxValues) return this.#refuse(`more than ${maxValues} values`);
    let copy = value;
    if (typeof value === "string") this.bytes += value.length + 2;
    else if (Number.isFinite(value)) this.bytes++;
    else if (typeof value === "boolean" || value === null) this.bytes += 4;
    else if (typeof value !== "object") {
      const isShort = typeof value === "number" || value === undefined;
      return this.#refuse(`${isShort ? value : `a ${typeof value}`}, which is not JSON`);
    } else if (depth < MAX_DEPTH) {
      copy = this.#copy(value as Record<string | number, unknown>, depth + 1);
    } else return this.#refuse(`deeper than ${MAX_DEPTH} levels: it may contain itself`);
    return this.bytes > maxBytes ? STOPPED : copy;
  }

  #copy(value: Readonly<Record<string | number, unknown>>, depth: number): unknown {
    const { standIns, freezeTo = -1 } = this.#options;
    const isList = Array.isArray(value);
    const keys = isList ? undefined : Object.keys(value);
    if (keys !== undefined) {
      if (standIns && typeof value["toJSON"] === "function") {
        this.converts = true;
        return this.read(value["toJSON"](), depth);
      }
      if (!isPlain(value)) {
        // A Date or a Map has no members of its own: its content would be lost.
        if (keys.length === 0 || Object.prototype.toString.call(value) !== "[object Object]") {
          return this.#refuse(`an instance of ${constructorName(value)}, which is not JSON`);
        }
        this.converts = true;
      }
    }
    const copy: Record<string, unknown> | unknown[] = isList ? [] : {};
    // The indexes of a list, holes too. Each member brings a comma, or the other bracket.
    for (const key of keys ?? (value as unknown as readonly unknown[]).keys()) {
      const member = value[key];
      if (member === undefined && !isList) this.converts = true;
      else {
        this.bytes += isList ? 1 : (key as string).length + 4;
        const read = this.read(member, depth);
        if (read === STOPPED) {
          this.#steps.push(key);
          return STOPPED;
        }
        setOwn(copy as Record<string, unknown>, key as string, read);
      }
    }
    this.bytes++;
    return (isList ? value.length : 0) <= freezeTo ? Object.freeze(copy) : copy;
  }

  #refuse(what: string): typeof STOPPED {
    this.what = what;
    return STOPPED;
  }
}

/** Whether it has no prototype, or Object's, also that of another realm. */
export function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function constructorName(object: object): string {
  const name: unknown = (object.constructor as { readonly name?: unknown } | undefined)?.name;
  return typeof name === "string" && name !== "" ? name.slice(0, 60) : "a class";
}

/** Against values made to exhaust memory. */
const OPTIONS = { maxValues: 1_000_000, freezeTo: Infinity };

/** The copies that `copyJson` made. */
const copies = new WeakSet<object>();

/**
 * Copies JSON and freezes the copy, all the way down. Members that are `undefined` are left out,
 * as `JSON.stringify` does. A copy that it made is its own copy: a tool that is made of another one
 * has the same schemas, which are compiled once.
 *
 * @throws {TypeError} If something in it is not JSON, with the JSON Pointer of it.
 */
export function copyJson<T>(value: T, what: string): T {
  if (copies.has(value as object)) return value;
  const reader = new JsonReader(OPTIONS);
  const copy = reader.read(value);
  if (copy === STOPPED) {
    throw new TypeError(`Cannot copy ${what}: at "${reader.pointer}" it is ${reader.what}`);
  }
  if (typeof copy === "object" && copy !== null) copies.add(copy);
  return copy as T;
}
