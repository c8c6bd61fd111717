/**
 * Reads JSON that somebody else sent: what has another shape is refused with its place, and
 * never quoted.
 *
 * @module
 */

/** A JSON object from outside. */
export interface JsonRecord {
  readonly [field: string]: unknown;
}

/** Whether `value` is an object that is no list. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A member that counts as given: neither absent nor `null`. */
export function given(record: JsonRecord, field: string): boolean {
  return record[field] !== undefined && record[field] !== null;
}

/** A text, or `undefined` for everything else and for the empty one. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * The name of a call. A call without one is refused by itself, so that the calls beside it are
 * answered all the same.
 */
export function calledName(value: unknown): { readonly name: string; readonly refusal?: string } {
  return typeof value === "string" ? { name: value } : { name: "", refusal: "it names no tool" };
}

/** Something in a list of calls that is none: it is refused by itself. */
export function noCall(raw: unknown): {
  readonly name: string;
  readonly input: undefined;
  readonly raw: unknown;
  readonly refusal: string;
} {
  return { name: "", input: undefined, raw, refusal: "it is no call of a tool" };
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Reads one kind of document. */
export class Shape {
  readonly #title: string;

  /** @param title What is read, with its article. */
  constructor(title: string) {
    this.#title = title;
  }

  /** The error for something that has another shape. */
  wrong(at: string, wanted: string): TypeError {
    const what = at === "" ? "it" : `"${at}"`;
    return new TypeError(`Cannot read the calls of ${this.#title}: ${what} must be ${wanted}`);
  }

  record(value: unknown, at: string, wanted = "an object"): JsonRecord {
    if (isRecord(value)) return value;
    throw this.wrong(at, `${wanted}, and is ${kindOf(value)}`);
  }

  list(value: unknown, at: string, wanted = "a list"): readonly unknown[] {
    if (Array.isArray(value)) return value;
    throw this.wrong(at, `${wanted}, and is ${kindOf(value)}`);
  }

  /** A list that may be left out. */
  optionalList(value: unknown, at: string): readonly unknown[] {
    return value === undefined || value === null ? [] : this.list(value, at);
  }

  text(value: unknown, at: string): string {
    if (typeof value === "string") return value;
    throw this.wrong(at, `a text, and is ${kindOf(value)}`);
  }
}
