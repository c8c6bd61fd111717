/**
 * How a provider writes calls and takes their results: the half of a target that is about calls.
 *
 * @module
 */

import { type ContentBlock, isObject, type JsonValue, type ToolCallError } from "../tool/mod.ts";
import type { JsonRecord } from "./json_fields.ts";

/** The parts of a call that its answer needs. Every `DecodedCall` has it. */
export interface AnsweredCall {
  readonly callId: string;
  /** The id of the tool, if one was called. */
  readonly name?: string | undefined;
  readonly wireName: string;
  /** The call as the provider sent it. Some answers repeat parts of it. */
  readonly raw?: unknown;
}

/** A call as it is read from a response, before its tool is looked up. */
export interface WireCall {
  /** The provider's id; absent or empty if it gave none. */
  readonly id?: string | undefined;
  readonly name: string;
  readonly namespace?: string | undefined;
  /** The tool's id, if the request has it instead of an exported name. */
  readonly toolId?: string;
  /** The arguments, as a value or as JSON text. */
  readonly input: unknown;
  readonly raw: unknown;
  /** The model was stopped, so the arguments may be incomplete. */
  readonly cutOff?: boolean;
  /** Why the call cannot be run, as the end of a sentence. */
  readonly refusal?: string;
  /** It is a search for tools, which the request has as such and not by a name. */
  readonly searches?: true;
}

/** The outcome of a call, as a value and as text. */
export type Answer =
  | {
    readonly ok: true;
    /** What the tool answered, in the form of the exported result schema. */
    readonly value: JsonValue;
    /** The same as text: a string is itself, everything else is JSON. */
    readonly text: string;
    /** The provider was sent the schema of the value. */
    readonly typed: boolean;
    /** What a result of blocks, such as an image, has besides. */
    readonly blocks?: AnswerBlocks;
    /** The tools that a search for tools has found, in the target's shape. */
    readonly found?: unknown;
  }
  | {
    readonly ok: false;
    readonly error: ToolCallError;
    /** What went wrong, for the model. */
    readonly text: string;
  };

/**
 * A result of blocks. Its `text` is what of it is words, with a short text for each file that the
 * target does not take; its `value` is what the tool gave as one, or that text.
 */
export interface AnswerBlocks {
  /** As the tool made them. */
  readonly content: readonly ContentBlock[];
  /** In the target's own blocks; absent if all of it is words. */
  readonly parts?: readonly unknown[];
  /** Whether the tool gave words with them. */
  readonly hasText: boolean;
  /** Whether the tool gave a value with them. */
  readonly hasValue: boolean;
  /** For the application. A target sends it only where no model reads it. */
  readonly metadata?: { readonly [key: string]: unknown };
}

/** A file in a result, such as an image. */
export interface MediaFile {
  /** In lower case, without parameters. */
  readonly mimeType: string;
  /** The bytes in base64. */
  readonly data: string;
  readonly name?: string;
}

/**
 * How a target writes the blocks of a result.
 *
 * @typeParam Block A block of the target.
 */
export interface MediaFormat<Block = unknown> {
  /** Whether the answer to a call may have files; absent: every one may. */
  takes?(call: AnsweredCall): boolean;
  /** Writes a text. */
  text(text: string): Block;
  /**
   * Writes a file; `undefined` if the target takes none of its type: a text stands for it then.
   *
   * @param id Another one for each file of a conversation.
   */
  file(file: MediaFile, id: string): Block | undefined;
}

/** The text of an answer, for targets that have no mark for a failure. */
export function plainText(answer: Answer): string {
  return answer.ok ? answer.text : `Error (${answer.error.code}): ${answer.text}`;
}

/**
 * How one provider writes calls and takes their results.
 *
 * @typeParam Part The answer to one call.
 * @typeParam Message What goes into the conversation.
 */
export interface CallFormat<Part = unknown, Message = unknown> {
  /**
   * Reads the calls of a response, or of a part of one (a message, a list of calls, one call).
   *
   * @throws {TypeError} If the response has another shape.
   */
  read(response: unknown): readonly WireCall[];
  /** Writes the answer to one call. */
  write(call: AnsweredCall, answer: Answer): Part;
  /**
   * Puts the answers to all calls of a response together, in their order. There is at least one.
   * Absent: each answer is a message.
   */
  gather?(parts: readonly Part[]): readonly Message[];
  /** Writes the blocks of results; absent: the target takes words only. */
  readonly media?: MediaFormat;
  /** How long the text of an answer may be, in characters; absent: no limit is documented. */
  readonly maxCharacters?: number;
  /** What users of the target should know, in whole sentences. */
  readonly notes?: readonly string[];
  /** Reads the events of a streamed response; absent: its calls are not streamed. */
  readonly stream?: () => StreamFormat;
}

/** One thing that an event of a stream says about a call. */
export type StreamStep =
  /** A call begins, or its id or name becomes known. */
  | {
    readonly type: "open";
    readonly key: string;
    readonly id?: string | undefined;
    readonly name?: string | undefined;
    readonly start?: unknown;
  }
  /** More of the arguments. */
  | { readonly type: "text"; readonly key: string; readonly text: string }
  /** All of the arguments. */
  | { readonly type: "input"; readonly key: string; readonly text: string }
  /** The whole call: an entry of a list of calls, since it is read as `read([raw])`. */
  | { readonly type: "whole"; readonly key: string; readonly raw: unknown }
  /** The call is complete. */
  | { readonly type: "close"; readonly key: string }
  /** The model has stopped. */
  | { readonly type: "finish"; readonly cutOff: boolean };

/** What was streamed of a call. */
export interface StreamedParts {
  readonly id: string | undefined;
  readonly name: string;
  readonly text: string;
  /** What the event that began the call had. */
  readonly start: unknown;
}

/** How one provider streams calls. Each stream has its own, which may keep state. */
export interface StreamFormat {
  /** What an event says about calls. */
  steps(event: { readonly [field: string]: unknown }): readonly StreamStep[];
  /** The call in the form of a response or of a part of one: it is read as `read(value)`. */
  rebuild(parts: StreamedParts): unknown;
  /** The model has stopped when the stream ends: no event says so. */
  readonly endsSilently?: true;
}

/** Whether a member is neither absent nor `null`. */
export function given(record: JsonRecord, field: string): boolean {
  return record[field] !== undefined && record[field] !== null;
}

/** A text that is not empty, or `undefined`. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * The name of a call. A call without a name is refused alone, so that the other calls are answered.
 */
export function calledName(value: unknown): { readonly name: string; readonly refusal?: string } {
  return typeof value === "string" ? { name: value } : { name: "", refusal: "it names no tool" };
}

/** An entry in a list of calls that is not a call. It is refused alone. */
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

/** Reads values of one kind of response, and throws for other shapes. */
export class Shape {
  readonly #title: string;

  /** @param title Words for the response, with an article. */
  constructor(title: string) {
    this.#title = title;
  }

  /** The error for something that has another shape. */
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

  /** A list that may be left out. */
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

/** Whether a stop reason means that the response is incomplete. */
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
    // JSON inside a JSON text is left as it is, and validation reports it.
    return typeof value === "string" ? text : value ?? {};
  } catch {
    return text;
  }
}

/** Whether the arguments of a model that was stopped are whole: a text with a closed object is. */
export function isWhole(input: unknown): boolean {
  return typeof input === "string" && input.trim() !== "" && isObject(parsed(input));
}
