/** The part of a target for calls and their results, and the media types of files in results. */

import type { ContentBlock, JsonValue, ToolCallError } from "../tool/mod.ts";

/** The parts of a call that its answer needs. Every `DecodedCall` has them. */
export interface AnsweredCall {
  readonly callId: string;
  /** The id of the tool, unless it is unknown. */
  readonly name?: string | undefined;
  readonly wireName: string;
  /** The call as the provider sent it. Some answers repeat parts of the call. */
  readonly raw?: unknown;
}

/** A call in a response, before its tool is looked up. */
export interface WireCall {
  /** Absent or empty if the provider has no ids. */
  readonly id?: string | undefined;
  readonly name: string;
  readonly namespace?: string | undefined;
  /** The tool's id, if the request has it instead of an exported name. */
  readonly toolId?: string;
  /** The arguments, as a value or as JSON text. */
  readonly input: unknown;
  readonly raw: unknown;
  /** True if the model was stopped, so the arguments may be incomplete. */
  readonly cutOff?: boolean;
  /** The reason why the call cannot be run, as the end of a sentence. */
  readonly refusal?: string;
  /** True for the target's own search for tools, which has no name. */
  readonly searches?: true;
}

/** The outcome of a call, as a value and as text. */
export type Answer =
  | {
    readonly ok: true;
    /** The result of the tool, in the form of the exported result schema. */
    readonly value: JsonValue;
    /** The value as text: a string unchanged, any other value as JSON. */
    readonly text: string;
    /** True if the request has the schema of the value. */
    readonly typed: boolean;
    readonly blocks?: AnswerBlocks;
    /** The results of a search for tools, in the target's shape. */
    readonly found?: unknown;
  }
  | {
    readonly ok: false;
    readonly error: ToolCallError;
    /** The message for the model. */
    readonly text: string;
  };

/**
 * A result of blocks. The `text` of the answer has the texts of the blocks, and a short text for
 * each file that the target does not accept. The `value` is the `structuredContent`, or the `text`.
 */
export interface AnswerBlocks {
  /** The blocks of the tool. */
  readonly content: readonly ContentBlock[];
  /** The target's own blocks; absent if all blocks are texts. */
  readonly parts?: readonly unknown[];
  readonly hasText: boolean;
  /** True if the result has `structuredContent`. */
  readonly hasValue: boolean;
  /** Data for the application, which no model may read. */
  readonly metadata?: { readonly [key: string]: unknown };
}

/** A file in a result, such as an image. */
export interface MediaFile {
  /** The media type in lower case, without parameters. */
  readonly mimeType: string;
  /** The bytes in base64. */
  readonly data: string;
  readonly name?: string;
}

/** Writes the blocks of a result for a target. */
export interface MediaFormat<Block = unknown> {
  /** Returns true if the answer to a call may contain files. By default, every answer may. */
  takes?(call: AnsweredCall): boolean;
  text(text: string): Block;
  /** Writes a file; `id` is unique. Returns `undefined` if the target does not accept its type. */
  file(file: MediaFile, id: string): Block | undefined;
}

/** The functions of a target that read calls and write results. */
export interface CallFormat<Part = unknown, Message = unknown> {
  /**
   * Reads the calls of a response, or of a part of one (a message, a list of calls, one call).
   *
   * @throws {TypeError} If the response has another shape.
   */
  read(response: unknown): readonly WireCall[];
  write(call: AnsweredCall, answer: Answer): Part;
  /** Combines the answers to all calls of a response. By default, each answer is a message. */
  gather?(parts: readonly Part[]): readonly Message[];
  /** Writes the blocks of results; absent if the target takes texts only. */
  readonly media?: MediaFormat;
  /** The maximum length of the text of an answer, in characters; absent if none is documented. */
  readonly maxCharacters?: number;
  /** Reads the events of a streamed response; absent if calls are not streamed. */
  readonly stream?: () => StreamFormat;
}

/** One step of a streamed call. */
export type StreamStep =
  /** The call begins, or its id or name becomes known. */
  | {
    readonly type: "open";
    readonly key: string;
    readonly id?: string | undefined;
    readonly name?: string | undefined;
    readonly start?: unknown;
  }
  /** The next part of the arguments. */
  | { readonly type: "text"; readonly key: string; readonly text: string }
  /** The complete arguments. */
  | { readonly type: "input"; readonly key: string; readonly text: string }
  /** The whole call, as an entry of a list that `read` accepts. */
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
  /** The event, or its item, that began the call. */
  readonly start: unknown;
}

/** The reader of one stream, which may have state. */
export interface StreamFormat {
  steps(event: { readonly [field: string]: unknown }): readonly StreamStep[];
  /** Writes the call in the form of a response, or of a part of one, for `read`. */
  rebuild(parts: StreamedParts): unknown;
  /** True if a stream may end without an event that states that the model has stopped. */
  readonly endsSilently?: true;
}

const OFFICE = "application/vnd.openxmlformats-officedocument";

/** The usual file extensions of media types. */
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

/** Returns the file extension of a media type, if `extensions` contains it. */
export function extensionIn<Extension extends string>(
  extensions: readonly Extension[],
  mimeType: string,
): Extension | undefined {
  const extension = EXTENSIONS.get(mimeType);
  return extensions.find((one) => one === extension);
}
