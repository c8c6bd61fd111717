/**
 * How a provider writes calls and takes their results, which is the half of a target that is about
 * calls; and the media types of files in results.
 */

import type { ContentBlock, JsonValue, ToolCallError } from "../tool/mod.ts";

/** The parts of a call that its answer needs. Every `DecodedCall` has it. */
export interface AnsweredCall {
  readonly callId: string;
  /** The id of the tool, if one was called. */
  readonly name?: string | undefined;
  readonly wireName: string;
  /** The call as the provider sent it. Some answers repeat parts of it. */
  readonly raw?: unknown;
}

/** A call in a response, before its tool is looked up. */
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
    /** The result of the tool, in the form of the exported result schema. */
    readonly value: JsonValue;
    /** The same as text: a string is itself, everything else is JSON. */
    readonly text: string;
    /** The provider was sent the schema of the value. */
    readonly typed: boolean;
    /** The blocks of a result that has some, such as an image. */
    readonly blocks?: AnswerBlocks;
    /** The tools that a search for tools has found, in the target's shape. */
    readonly found?: unknown;
  }
  | {
    readonly ok: false;
    readonly error: ToolCallError;
    /** The reason of the failure, for the model. */
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
  /** True if the result has text blocks. */
  readonly hasText: boolean;
  /** True if the result has a value, too. */
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

/** How a target writes the blocks of a result. */
export interface MediaFormat<Block = unknown> {
  /** Returns true if the answer to a call may contain files. By default, every answer may. */
  takes?(call: AnsweredCall): boolean;
  /** Writes a text. */
  text(text: string): Block;
  /**
   * Writes a file; `undefined` if the target does not take its type: a text replaces it.
   *
   * @param id Another one for each file of a conversation.
   */
  file(file: MediaFile, id: string): Block | undefined;
}

/** How one provider writes calls and takes their results. */
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
   * By default, each answer is a message.
   */
  gather?(parts: readonly Part[]): readonly Message[];
  /** Writes the blocks of results; absent: the target takes words only. */
  readonly media?: MediaFormat;
  /** The maximum length of the text of an answer, in characters; absent if none is documented. */
  readonly maxCharacters?: number;
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

/** The streamed parts of a call. */
export interface StreamedParts {
  readonly id: string | undefined;
  readonly name: string;
  readonly text: string;
  /** The content of the event that began the call. */
  readonly start: unknown;
}

/** How one provider streams calls. Each stream has its own, which may keep state. */
export interface StreamFormat {
  /** Returns the steps that an event contains. */
  steps(event: { readonly [field: string]: unknown }): readonly StreamStep[];
  /** The call in the form of a response or of a part of one: it is read as `read(value)`. */
  rebuild(parts: StreamedParts): unknown;
  /** The end of the stream means that the model has stopped: there is no event for it. */
  readonly endsSilently?: true;
}

const OFFICE = "application/vnd.openxmlformats-officedocument";

/** The usual file extensions of media types, by which some targets name them. */
const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ["application/json", "json"],
  ["application/msword", "doc"],
  ["application/pdf", "pdf"],
  ["application/rtf", "rtf"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.ms-powerpoint", "ppt"],
  ["application/vnd.oasis.opendocument.text", "odt"],
  [`${OFFICE}.presentationml.presentation`, "pptx"],
  [`${OFFICE}.spreadsheetml.sheet`, "xlsx"],
  [`${OFFICE}.wordprocessingml.document`, "docx"],
  ["image/gif", "gif"],
  ["image/jpeg", "jpeg"],
  ["image/png", "png"],
  ["image/webp", "webp"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/markdown", "md"],
  ["text/plain", "txt"],
  ["text/xml", "xml"],
  ["video/3gpp", "three_gp"],
  ["video/mp4", "mp4"],
  ["video/mpeg", "mpeg"],
  ["video/quicktime", "mov"],
  ["video/webm", "webm"],
  ["video/x-flv", "flv"],
  ["video/x-matroska", "mkv"],
  ["video/x-ms-wmv", "wmv"],
]);

/** The extension of a media type, if it is one of these. */
export function extensionIn<Extension extends string>(
  extensions: readonly Extension[],
  mimeType: string,
): Extension | undefined {
  const extension = EXTENSIONS.get(mimeType);
  return extensions.find((one) => one === extension);
}
