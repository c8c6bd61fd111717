/**
 * Reads and writes the JSON of providers: members of it, calls in responses, parts of tools.
 *
 * @module
 */

import { clip, isObject, type JsonSchema } from "../tool/mod.ts";
import type { Answer, StreamFormat, StreamStep, WireCall } from "./call_format.ts";

/** A JSON object from outside. */
export interface JsonRecord {
  readonly [key: string]: unknown;
}

/** An own member of an object, so that `constructor` is not found in every one. */
export function member(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

export function objectIn(value: unknown, key: string): JsonRecord | undefined {
  const found = member(value, key);
  return isObject(found) ? found : undefined;
}

export function listIn(value: unknown, key: string): readonly unknown[] | undefined {
  const found = member(value, key);
  return Array.isArray(found) ? found : undefined;
}

export function textIn(value: unknown, key: string): string | undefined {
  const found = member(value, key);
  return typeof found === "string" ? found : undefined;
}

export function wordsIn(value: unknown, key: string): string | undefined {
  const found = textIn(value, key);
  return found === undefined || found.trim() === "" ? undefined : found;
}

export function flagIn(value: unknown, key: string): boolean | undefined {
  const found = member(value, key);
  return typeof found === "boolean" ? found : undefined;
}

/** A value for a message: a string in quotes, or the type of anything else. */
export function quote(value: unknown, length?: number): string {
  return typeof value === "string" ? `"${clip(value, length)}"` : `of type ${typeof value}`;
}

/** True if a member is neither absent nor `null`. */
export function given(record: JsonRecord, field: string): boolean {
  return record[field] !== undefined && record[field] !== null;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * The name of a call. Only the call without a name is rejected, so that the other calls are answered.
 */
export function calledName(value: unknown): { readonly name: string; readonly refusal?: string } {
  return typeof value === "string" ? { name: value } : { name: "", refusal: "it names no tool" };
}

/** An entry in a list of calls that is not a call. Only this entry is rejected. */
export function noCall(raw: unknown): {
  readonly name: string;
  readonly input: undefined;
  readonly raw: unknown;
  readonly refusal: string;
} {
  return { name: "", input: undefined, raw, refusal: "it is not a call of a tool" };
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

export class Shape {
  readonly #title: string;

  /** @param title Words for the response, with an article. */
  constructor(title: string) {
    this.#title = title;
  }

  wrong(at: string, wanted: string): TypeError {
    const what = at === "" ? "it" : `"${at}"`;
    return new TypeError(`Cannot read the calls of ${this.#title}: ${what} must be ${wanted}`);
  }

  record(value: unknown, at: string, wanted = "an object"): JsonRecord {
    if (isObject(value)) return value;
    throw this.wrong(at, `${wanted}, and is ${kindOf(value)}`);
  }

  list(value: unknown, at: string, wanted = "a list"): readonly unknown[] {
    if (Array.isArray(value)) return value;
    throw this.wrong(at, `${wanted}, and is ${kindOf(value)}`);
  }

  /** The calls of a list of objects, each of which holds some. */
  calls(
    list: readonly unknown[],
    at: string,
    read: (item: JsonRecord, at: string) => readonly WireCall[],
  ): readonly WireCall[] {
    return list.flatMap((item, index) => {
      const here = `${at}/${index}`;
      return read(this.record(item, here), here);
    });
  }

  /** A list that may be absent. */
  optionalList(value: unknown, at: string): readonly unknown[] {
    return value === undefined || value === null ? [] : this.list(value, at);
  }

  text(value: unknown, at: string): string {
    if (typeof value === "string") return value;
    throw this.wrong(at, `a text, and is ${kindOf(value)}`);
  }
}

/** The stop reasons of all providers that mean that the response is incomplete. */
const REASONS: ReadonlySet<unknown> = new Set([
  "length",
  "content_filter",
  "error",
  "max_tokens",
  "model_length",
  "model_context_window_exceeded",
  "MAX_TOKENS",
  "ERROR",
  "TIMEOUT",
]);

/** True if a stop reason means that the response is incomplete. */
export function isCutOff(reason: unknown): boolean {
  return REASONS.has(reason);
}

/** Marks the last call if the response is incomplete. The calls before it are complete. */
export function markCutOff(calls: readonly WireCall[], reason: unknown): readonly WireCall[] {
  if (!isCutOff(reason)) return calls;
  return calls.map((call, index) => index === calls.length - 1 ? { ...call, cutOff: true } : call);
}

/** The value of a JSON text. An empty text is `{}`, and a text that is not JSON stays a text. */
export function parsed(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    // JSON inside a JSON text stays unchanged, and validation reports it.
    return typeof value === "string" ? text : value ?? {};
  } catch {
    return text;
  }
}

/** True if the arguments of a model that was stopped are complete: a text with a closed object. */
export function isWhole(input: unknown): boolean {
  return typeof input === "string" && input.trim() !== "" && isObject(parsed(input));
}

export function unlessEmpty<Item>(list: readonly Item[]): Item[] | undefined {
  return list.length === 0 ? undefined : [...list];
}

/** The description, for targets where it is optional. */
export function descriptionOf(
  view: { readonly description: string; readonly sendsDescription: boolean },
): { description?: string } {
  return view.sendsDescription ? { description: view.description } : {};
}

/** A schema as an object, for fields that do not take `true` and `false`. */
export function asObject(schema: JsonSchema): { [keyword: string]: unknown } {
  if (typeof schema === "boolean") return schema ? {} : { not: {} };
  return schema as { [keyword: string]: unknown };
}

/** A mutable JSON value, as the types of some SDKs require. */
export type WireValue =
  | null
  | boolean
  | number
  | string
  | WireValue[]
  | { [key: string]: WireValue };

/**
 * How a provider streams whose chunks are responses, each with whole calls.
 *
 * @param read Reads the calls of a response.
 * @param fields Fields of which a chunk with calls has at least one.
 */
export function streamResponses(
  read: (response: unknown) => readonly WireCall[],
  fields: readonly string[],
): () => StreamFormat {
  return () => {
    let count = 0;
    return {
      steps: (event) => {
        if (!fields.some((field) => isObject(event[field]) || Array.isArray(event[field]))) {
          return [];
        }
        return read(event)
          .map(({ raw }): StreamStep => ({ type: "whole", key: `${count++}`, raw }));
      },
      rebuild: () => undefined,
      endsSilently: true,
    };
  };
}

/** The text of an answer, for targets without a field for failures. */
export function plainText(answer: Answer): string {
  return answer.ok ? answer.text : `Error (${answer.error.code}): ${answer.text}`;
}
