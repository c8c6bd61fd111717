/** JSON as data: its types, JSON Pointers, equality, and validating copies. */

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

/** Sets an own property, even if its name is `__proto__`, which plain assignment would lose. */
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

export function defined<Members extends object>(
  members: Members,
): { [Key in keyof Members]?: Exclude<Members[Key], undefined> } {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  // No value is `undefined`, so the return type is right.
  return Object.fromEntries(entries) as { [Key in keyof Members]?: never };
}

/** Compares two JSON values. `visit` is called for each object and list, to count the work. */
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

/** Returns JSON with sorted keys: one text for equal values. `visit` counts objects and lists. */
export function canonicalJson(value: unknown, visit?: () => void): string {
  // Appends to one text, because joining the text of each level would copy deep values many times.
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

export const MAX_DEPTH = 256;

/** The result of {@linkcode JsonReader.read} if the value is not JSON or exceeds a limit. */
export const STOPPED: unique symbol = Symbol();

export interface JsonReaderOptions {
  readonly maxValues?: number;
  /** The maximum size of the JSON, in bytes. Reading stops as soon as the value exceeds it. */
  readonly maxBytes?: number;
  /** Calls `toJSON`, as `JSON.stringify` does. */
  readonly standIns?: boolean;
  /** Freezes the copy deeply, except for lists that are longer than this. */
  readonly freezeTo?: number;
}

export class JsonReader {
  /** A lower bound of the bytes of JSON that were read. */
  bytes = 0;
  /** True if the copy's members differ from the value's: by `toJSON`, a class or `undefined`. */
  converts = false;
  /** Describes the value that is not JSON; `undefined` if reading stopped at `maxBytes`. */
  what: string | undefined;
  readonly #options: JsonReaderOptions;
  #values = 0;
  /** The path to the value at which reading stopped, innermost key first. */
  readonly #steps: (string | number)[] = [];

  constructor(options: JsonReaderOptions) {
    this.#options = options;
  }

  /** The JSON Pointer of the value at which reading stopped. */
  get pointer(): string {
    return clip(this.#steps.toReversed().map(pointerStep).join(""), 200);
  }

  /** Returns a copy, or {@linkcode STOPPED}. Members that are `undefined` are omitted. */
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
    // A list's indexes include holes. Each item adds a comma, or the closing bracket.
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

/** Returns true if the object has no prototype, or the Object prototype of any realm. */
export function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function constructorName(object: object): string {
  const name: unknown = (object.constructor as { readonly name?: unknown } | undefined)?.name;
  return typeof name === "string" && name !== "" ? name.slice(0, 60) : "a class";
}

/** Protects against values that exhaust memory. */
const OPTIONS = { maxValues: 1_000_000, freezeTo: Infinity };

const copies = new WeakSet<object>();

/**
 * Copies JSON and freezes the copy deeply. A frozen copy is returned unchanged, so a tool made from
 * another tool shares its compiled schemas. Throws a `TypeError` with the JSON Pointer of a part
 * that is not JSON.
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
