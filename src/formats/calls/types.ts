/**
 * The words of a turn: the calls in a response, and the answers that go back.
 *
 * @module
 */

import type { JsonValue, ToolCallError } from "../../tool/mod.ts";

/** Why a call is not run. */
export interface CallProblem {
  /** The code that the call is answered with. */
  readonly code: "unknown_tool" | "invalid_arguments";
  /** The whole sentence, for the model. */
  readonly message: string;
}

/** What every decoded call has. */
export interface CallParts {
  /** The provider's id of the call; where it gives none, `call_1`, `call_2`… by place. */
  readonly callId: string;
  /** The name that the model wrote. */
  readonly wireName: string;
  /** The namespace that the model wrote, where the target has namespaces. */
  readonly namespace?: string;
  /**
   * The arguments as the tool has them: what the export changed is undone. What is not JSON stays
   * the text that it is, so that a dispatcher says what is wrong with it.
   */
  readonly arguments: unknown;
  /** The call as it came. */
  readonly raw: unknown;
}

/** A call of a tool that was exported. A dispatcher takes it as it is. */
export interface RoutedCall extends CallParts {
  /** The id of the tool. */
  readonly name: string;
  readonly problem?: undefined;
}

/** A call that must not be run: nothing was exported under its name, or it is not whole. */
export interface RefusedCall extends CallParts {
  /** No tool: a dispatcher that is given the call anyway answers `unknown_tool`. */
  readonly name: undefined;
  readonly problem: CallProblem;
}

/** A call out of a response. */
export type DecodedCall = RoutedCall | RefusedCall;

/** A call, as far as its answer needs it. Every {@linkcode DecodedCall} is one. */
export interface AnsweredCall {
  readonly callId: string;
  /** The id of the tool, if one was called. */
  readonly name?: string | undefined;
  readonly wireName: string;
  /** The call as it came: answers repeat parts of it. */
  readonly raw?: unknown;
}

/** A call as a format reads it, before names are looked up. */
export interface WireCall {
  /** The provider's id; absent or empty: it gave none. */
  readonly id?: string | undefined;
  readonly name: string;
  readonly namespace?: string | undefined;
  /** The tool's id, where a request has that in place of an exported name. */
  readonly toolId?: string;
  /** The arguments: JSON as text, or the value. */
  readonly input: unknown;
  readonly raw: unknown;
  /** The model was stopped, perhaps before the arguments were whole. */
  readonly cutOff?: boolean;
  /** Why this is no call of a function, as the end of a sentence. */
  readonly refusal?: string;
}

/** The outcome of a call, in the forms that formats write. */
export type Answer =
  | {
    readonly ok: true;
    /** What the tool answered, as the exported result schema has it. */
    readonly value: JsonValue;
    /** The same as text: a string is itself, everything else is JSON. */
    readonly text: string;
    /** The provider has the schema of the value. */
    readonly typed: boolean;
  }
  | {
    readonly ok: false;
    readonly error: ToolCallError;
    /** What went wrong, for the model. */
    readonly text: string;
  };

/**
 * How one provider writes calls, and wants them answered.
 *
 * @typeParam Part The answer to one call.
 * @typeParam Message What goes into the conversation.
 */
export interface CallFormat<Part = unknown, Message = unknown> {
  /** What it reads, with its article, for messages. */
  readonly title: string;
  /**
   * Reads the calls of a response, or of the natural parts of one.
   *
   * @throws {TypeError} If it has another shape.
   */
  read(response: unknown): readonly WireCall[];
  /** Writes the answer to one call. */
  write(call: AnsweredCall, answer: Answer): Part;
  /** Puts the answers to all calls of a response together, in their order. At least one. */
  gather(parts: readonly Part[]): readonly Message[];
  /** How long the text of an answer may be, in characters; absent: no limit is documented. */
  readonly maxCharacters?: number;
  /** What one should know, in whole sentences. */
  readonly notes: readonly string[];
  /** Reads the events of a streamed response; absent: its calls are not streamed. */
  readonly stream?: () => StreamFormat;
}

/** What an event of a stream says about the calls in it. */
export type StreamStep =
  /** A call begins, or more is known about it. */
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
  /** All of the call, as `read` reads it in a list. */
  | { readonly type: "whole"; readonly key: string; readonly raw: unknown }
  /** The call is whole. */
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

/** How one provider streams calls. Made anew for each stream, so that it may count. */
export interface StreamFormat {
  /** What an event says. Events that say nothing about calls give no steps. */
  steps(event: { readonly [field: string]: unknown }): readonly StreamStep[];
  /** The call as an unstreamed response would have it, for `read`. */
  rebuild(parts: StreamedParts): unknown;
  /** No event says that the model has stopped: the end of the stream does. */
  readonly endsSilently?: true;
}
