/** Reads and writes the JSON of providers: members of objects, calls, and parts of tools. */

import { attemptOr, clip, isObject, type JsonSchema } from "../tool/mod.ts";
import type { Answer, StreamedParts, StreamFormat, StreamStep, WireCall } from "./call_format.ts";

export interface JsonRecord {
  readonly [key: string]: unknown;
}

/** Returns an own member of an object, because objects inherit members such as `constructor`. */
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

/** Quotes a string for a message, or describes the type of another value. */
export function quote(value: unknown, length?: number): string {
  return typeof value === "string" ? `"${clip(value, length)}"` : `of type ${typeof value}`;
}

/** Returns true if a field is neither absent nor `null`. */
export function isSet(record: JsonRecord, field: string): boolean {
  return record[field] !== undefined && record[field] !== null;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The names of the fields that hold the id, the name and the arguments of a call. */
export interface CallFields {
  readonly id: string;
  readonly name: string;
  readonly input: string;
}

/** Reads a call. A call without a name is rejected, and the other calls are not. */
export function callFrom(
  { id, name, input }: CallFields,
  called: JsonRecord,
  raw: JsonRecord = called,
): WireCall {
  const wireName = called[name];
  return {
    id: textOf(raw[id]),
    ...(typeof wireName === "string"
      ? { name: wireName }
      : { name: "", refusal: "it names no tool" }),
    input: called[input],
    raw,
  };
}

/** Returns the step that begins a streamed call. */
export function openStep(
  key: string,
  { id, name }: CallFields,
  called: JsonRecord,
  start?: unknown,
): StreamStep {
  return { type: "open", key, id: textOf(called[id]), name: textOf(called[name]), start };
}

/** Returns the step that ends a response, if there is a stop reason. */
export function finishSteps(reason: unknown): readonly StreamStep[] {
  return typeof reason === "string" ? [{ type: "finish", cutOff: isCutOff(reason) }] : [];
}

/** Writes a streamed call in the form that the call has in a whole response. */
export function streamedCall(
  fields: CallFields,
  { id, name, start }: StreamedParts,
  input: unknown,
  otherwise: JsonRecord = {},
): JsonRecord {
  return {
    ...(isObject(start) ? start : otherwise),
    ...(id === undefined ? {} : { [fields.id]: id }),
    [fields.name]: name,
    [fields.input]: input,
  };
}

/** Creates a rejected call for an entry that is in a list of calls, but is not a call. */
export function noCall(raw: unknown): WireCall {
  return { name: "", input: undefined, raw, refusal: "it is not a call of a tool" };
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Checks the types of the parts of a response. */
export class Shape {
  readonly #title: string;

  /** @param title The name of the response in messages, such as "a LangChain message". */
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

  list(value: unknown, at: string): readonly unknown[] {
    if (Array.isArray(value)) return value;
    throw this.wrong(at, `a list, and is ${kindOf(value)}`);
  }

  text(value: unknown, at: string): string {
    if (typeof value === "string") return value;
    throw this.wrong(at, `a text, and is ${kindOf(value)}`);
  }

  /** Reads a request, or a list of requests. */
  each(value: unknown, read: (item: unknown, at: string) => WireCall): readonly WireCall[] {
    if (!Array.isArray(value)) return [read(value, "")];
    return value.map((item, index) => read(item, `/${index}`));
  }
}

export interface ResponseShape {
  /** The name of the response in messages, such as "a LangChain message". */
  readonly title: string;
  /** The possible paths from a response to its message. A step `0` is the first item of a list. */
  readonly messages?: readonly string[];
  /** The names of the lists that may have a message's calls. The first existing list is read. */
  readonly lists: readonly string[];
  /** Members of messages without calls. An object with such a member is not an error. */
  readonly marks?: readonly string[];
  /** True if a response may have no message. */
  readonly mayBeEmpty?: true;
  /** True if an entry that is not an object becomes a rejected call. By default, it is an error. */
  readonly onlyCalls?: true;
  /** Returns the stop reason, which is in a message or in the message's parent. */
  reasonOf?(holder: JsonRecord): unknown;
  isCall(entry: JsonRecord, isInList: boolean): boolean;
  call(entry: JsonRecord, at: string, shape: Shape): WireCall;
  /** Reads the calls of a message that are not in one of its lists. */
  others?(message: JsonRecord, at: string, shape: Shape): readonly WireCall[];
}

/** Creates a function that reads a response, a message, a list of entries, or one call. */
export function callReader(places: ResponseShape): (response: unknown) => readonly WireCall[] {
  const { messages = [], lists, marks = [], onlyCalls, mayBeEmpty } = places;
  const shape = new Shape(places.title);
  const starts = messages.map((path) => path.split("/"));

  function readList(list: readonly unknown[], at: string): readonly (WireCall | undefined)[] {
    return list.map((item, index) => {
      if (onlyCalls === true && at !== "" && !isObject(item)) return noCall(item);
      const here = `${at}/${index}`;
      const entry = shape.record(item, here);
      return places.isCall(entry, true) ? places.call(entry, here, shape) : undefined;
    });
  }

  function readMessage(message: JsonRecord, at: string, reason: unknown): readonly WireCall[] {
    const name = lists.find((list) => isSet(message, list));
    // The content of a message may be a text.
    const list = name === undefined || (name === "content" && typeof message[name] === "string")
      ? []
      : readList(shape.list(message[name], `${at}/${name}`), `${at}/${name}`);
    const calls = list.filter((call) => call !== undefined);
    const others = places.others?.(message, at, shape) ?? [];
    // After a call that was cut off, the response has no further entries.
    const isLast = list.length === 0 || list.at(-1) !== undefined;
    return [...(isLast ? markCutOff(calls, reason) : calls), ...others];
  }

  return (response) => {
    if (Array.isArray(response)) {
      return readList(response, "").filter((call) => call !== undefined);
    }
    const top = shape.record(response, "", "an object or a list");
    if (places.isCall(top, false)) return [places.call(top, "", shape)];
    const path = starts.find(([first = ""]) => isSet(top, first)) ?? [];
    if (path.length === 0 && ![...lists, ...marks].some((member) => isSet(top, member))) {
      const members = [...starts.map(([first]) => first), ...lists];
      const wanted = members.map((member) => `"${member}"`).join(" or ");
      throw shape.wrong("", `an object with ${wanted}, or a call`);
    }
    let at = "";
    let value: unknown = top;
    let reason: unknown;
    for (const step of path) {
      if (step === "0") {
        [value] = shape.list(value, at);
        if (value === undefined) return [];
      } else {
        const holder = shape.record(value, at);
        reason ??= places.reasonOf?.(holder);
        value = holder[step];
      }
      at += `/${step}`;
    }
    if (mayBeEmpty === true && (value === undefined || value === null)) return [];
    const message = shape.record(value, at);
    return readMessage(message, at, reason ?? places.reasonOf?.(message));
  };
}

/** The stop reasons of all providers for incomplete responses. */
const REASONS: ReadonlySet<unknown> = new Set([
  "length",
  "content_filter",
  "error",
  "max_tokens",
  "model_length",
  "model_context_window_exceeded",
  "incomplete",
  "MAX_TOKENS",
  "ERROR",
  "TIMEOUT",
]);

export function isCutOff(reason: unknown): boolean {
  return REASONS.has(reason);
}

/** Marks the last call if the response is incomplete. The calls before it are complete. */
function markCutOff(calls: readonly WireCall[], reason: unknown): readonly WireCall[] {
  if (!isCutOff(reason)) return calls;
  return calls.map((call, index) => index === calls.length - 1 ? { cutOff: true, ...call } : call);
}

/** Parses a JSON text. An empty text is `{}`, and a text that is not JSON stays a text. */
export function parsed(text: string): unknown {
  if (text.trim() === "") return {};
  const value: unknown = attemptOr(text, () => JSON.parse(text));
  // If the value is a string, the text stays unchanged, and validation reports that it is a text.
  return typeof value === "string" ? text : value ?? {};
}

/** Returns true for the JSON text of a complete object. */
export function isWhole(input: unknown): boolean {
  return typeof input === "string" && input.trim() !== "" && isObject(parsed(input));
}

export function unlessEmpty<Item>(list: readonly Item[]): Item[] | undefined {
  return list.length === 0 ? undefined : [...list];
}

/** Returns the description, unless the description was generated. */
export function descriptionOf(
  view: { readonly description: string; readonly sendsDescription: boolean },
): { description?: string } {
  return view.sendsDescription ? { description: view.description } : {};
}

/** Returns a schema as an object, for fields that do not accept `true` and `false`. */
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

/** Reads a stream of whole responses. A chunk with calls has one of the `fields`. */
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

/** Returns the text of an answer, for targets without a field for failures. */
export function plainText(answer: Answer): string {
  return answer.ok ? answer.text : `Error (${answer.error.code}): ${answer.text}`;
}
