/** Writes the results of calls in a provider's form. */

import {
  clip,
  type ContentBlock,
  defined,
  isObject,
  type JsonValue,
  type ToolCallError,
  type ToolContent,
  ToolResult,
} from "../tool/mod.ts";
import { loadFound } from "./export.ts";
import { type ExportNames, quoted, type ToolEncoding } from "./export_names.ts";
import type { Answer, AnsweredCall, MediaFormat } from "./call_format.ts";
import { listIn, textIn } from "./wire.ts";
import { checkTarget, type Target } from "./target.ts";
import type { AnswerOf, MessageOf } from "./targets.ts";

/** Writes the result of one call with the record of a target. */
export function encodeResultFor<Of extends Target>(
  target: Of,
  call: AnsweredCall,
  result: ToolResult,
  names?: ExportNames,
  onLoss: (loss: ResultLoss) => void = () => {},
): AnswerOf<Of> {
  const { calls: format, title } = checkTarget(target);
  const encoding = call.name === undefined ? undefined : names?.encodingOf(call.name);
  const { maxCharacters, media } = format;
  const limits = { maxCharacters, media: media?.takes?.(call) === false ? undefined : media };
  let answer = answerOf(call.callId, result, encoding, limits, (index, mimeType) => {
    const path = `/content/${index}`;
    onLoss({
      callId: call.callId,
      path,
      mimeType,
      message: `Cannot send "${path}" of the result (${clip(mimeType)}): ` +
        `${title} does not take it, and a text replaces it`,
    });
  });
  // The failure of a call with an unknown name already contains the names that the model uses.
  if (names !== undefined && encoding !== undefined && !answer.ok) {
    answer = { ...answer, text: inWireNames(answer.text, names) };
  }
  if (names !== undefined && encoding?.searches === true && answer.ok) {
    answer = { ...answer, found: loadFound(target, names, idsIn(answer.value)) };
  }
  // The cast is safe: `AnswerOf` is derived from the `write` function of the same target.
  return format.write(call, answer) as AnswerOf<Of>;
}

/** Writes the results of a response with the record of a target. */
export function encodeResultsFor<Of extends Target>(
  target: Of,
  calls: readonly AnsweredCall[],
  results: readonly ToolResult[],
  names?: ExportNames,
  onLoss?: (loss: ResultLoss) => void,
): readonly MessageOf<Of>[] {
  const { calls: format } = checkTarget(target);
  if (calls.length !== results.length) {
    throw new TypeError(
      `Cannot encode the results: there are ${results.length} for ${calls.length} calls, ` +
        "and each call needs its own",
    );
  }
  const parts = calls.map((call, index) =>
    encodeResultFor(target, call, results[index] as ToolResult, names, onLoss)
  );
  if (parts.length === 0) return [];
  return (format.gather?.(parts) ?? parts) as readonly MessageOf<Of>[];
}

function inWireNames(text: string, names: ExportNames): string {
  return text.replace(/"([\w.:-]{1,257})"/g, (found, id: string) => {
    const encoding = names.encodingOf(id);
    return encoding === undefined ? found : quoted(encoding);
  });
}

function idsIn(value: JsonValue): readonly string[] {
  return (listIn(value, "tools") ?? []).flatMap((entry) => {
    const name = typeof entry === "string" ? entry : textIn(entry, "name");
    return name?.match(/^[\w.:-]+/) ?? [];
  });
}

/** The maximum length of the text of a failure in characters, which every provider accepts. */
const MAX_FAILURE = 16_384;

const MAX_ISSUES = 8;

function answerOf(
  callId: string,
  result: ToolResult,
  encoding: ToolEncoding | undefined,
  { maxCharacters = Infinity, media }: {
    readonly maxCharacters?: number | undefined;
    readonly media?: MediaFormat | undefined;
  },
  lose: (index: number, mimeType: string) => void,
): Answer {
  if (typeof result?.ok !== "boolean") {
    throw new TypeError(
      "Cannot encode the result: it must be a ToolResult, as ToolResult.ok makes",
    );
  }
  if (!result.ok) return failed(result.error);
  const { blocks, content: whole } = result;
  // In a turn that was stored as JSON, the content may be any value.
  const isContent = blocks === true && isObject(whole) && Array.isArray(whole["content"]);
  const content = isContent ? whole as unknown as ToolContent : undefined;
  const hasValue = content === undefined || content.structuredContent !== undefined;
  // The result of a tool that returns nothing is `null`, because `undefined` is not JSON.
  const plain = (content === undefined ? whole : content.structuredContent) ?? null;
  let json: string | undefined;
  let written: WrittenContent | undefined;
  try {
    json = JSON.stringify(plain);
    written = content &&
      writeContent(content.content, media, callId, hasValue ? json : undefined);
  } catch {
    json = undefined;
  }
  if (json === undefined) {
    const message = "Cannot send the result: it is not JSON";
    return failed(ToolResult.error("invalid_result", message).error);
  }
  if (written?.broken !== undefined) {
    const message = `Cannot send the result: "/content/${written.broken}" is not base64, ` +
      "which is padded and has no line breaks";
    return failed(ToolResult.error("invalid_result", message).error);
  }
  const text = written?.text ?? (typeof plain === "string" ? plain : json);
  const value = hasValue ? plain : text;
  if (text.length > maxCharacters) {
    const message =
      `Cannot send the result: it has ${text.length} characters, and at most ${maxCharacters} are taken`;
    return failed(ToolResult.error("output_too_large", message).error);
  }
  for (const { index, mimeType } of written?.lost ?? []) lose(index, mimeType);
  return {
    ok: true,
    value: (encoding?.wrapsResult === true ? { result: value } : value) as JsonValue,
    text,
    typed: hasValue && encoding?.sendsReturns === true,
    ...(content && written && {
      blocks: {
        ...{ content: content.content, hasText: written.hasText, hasValue },
        ...defined({ parts: written.parts, metadata: content.metadata }),
      },
    }),
  };
}

function failed(error: ToolCallError): Answer {
  return { ok: false, error, text: failureText(error).slice(0, MAX_FAILURE) };
}

/** Returns the message of a failure, and the issues that the message does not mention. */
function failureText(error: ToolCallError): string {
  const { message, issues = [] } = error;
  const more = issues.slice(0, MAX_ISSUES).filter((issue) => !message.includes(issue.message));
  return [message, ...more.map((issue) => `- ${issue.path || "the whole"}: ${issue.message}`)]
    .join("\n");
}

/** A block of a result that the target does not accept. A text is sent instead. */
export interface ResultLoss {
  readonly callId: string;
  /** A JSON Pointer into the content of the result. */
  readonly path: string;
  /** The media type of the block. Without a media type, the type of the block. */
  readonly mimeType: string;
  /** The message, as a whole sentence. */
  readonly message: string;
}

type Read = { readonly text: string } | {
  readonly mimeType: string;
  readonly data: string;
  readonly name?: string;
};

interface WrittenContent {
  readonly text: string;
  readonly hasText: boolean;
  /** The blocks in the target's form. Absent if all blocks are texts. */
  readonly parts?: readonly unknown[];
  /** The index of the first block whose data is not base64. */
  readonly broken?: number;
  /** The blocks that the target does not accept. */
  readonly lost: readonly { readonly index: number; readonly mimeType: string }[];
}

function writeContent(
  content: readonly ContentBlock[],
  media: MediaFormat | undefined,
  callId: string,
  instead: string | undefined,
): WrittenContent {
  const lost: { index: number; mimeType: string }[] = [];
  const texts: string[] = [];
  const parts: unknown[] = [];
  let hasText = false;
  let hasFiles = false;
  let broken: number | undefined;
  const write = (text: string): void => {
    texts.push(text);
    parts.push(media?.text(text));
  };
  for (const [index, block] of content.entries()) {
    const read = readBlock(block);
    if ("text" in read) {
      // Providers reject a request with an empty text.
      if (read.text !== "") write(read.text);
      hasText ||= read.text !== "";
    } else if (!isBase64(read.data)) broken ??= index;
    else {
      const part = read.data === "" ? undefined : media?.file(read, `${callId}-${index}`);
      hasFiles ||= part !== undefined;
      if (part !== undefined) parts.push(part);
      else {
        lost.push({ index, mimeType: read.mimeType });
        write(standIn(read));
      }
    }
  }
  if (parts.length === 0 && instead !== undefined) write(instead);
  return {
    ...{ text: texts.join("\n"), hasText, lost },
    ...defined({ parts: hasFiles ? parts : undefined, broken }),
  };
}

/** Returns true for base64 that providers accept: padded, and without line breaks. */
function isBase64(data: string): boolean {
  // A pattern that repeats a group of four characters would overflow V8's stack on megabytes.
  return data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data);
}

/** Reads a block. Of an unknown block, only the type is used. */
function readBlock(block: unknown): Read {
  const { type, text, data, mimeType, resource, uri } = isObject(block) ? block : {};
  if (type === "text" && typeof text === "string") return { text };
  if ((type === "image" || type === "audio") && typeof data === "string") {
    return { mimeType: typeOf(mimeType), data };
  }
  if (type === "resource" && isObject(resource) && typeof resource["uri"] === "string") {
    const { uri, text, blob } = resource;
    if (typeof text === "string") return { text: `${uri}\n${text}` };
    if (typeof blob === "string") {
      const name = uri.split(/[?#]/)[0]?.split(/[/:]/).at(-1) || undefined;
      return { mimeType: typeOf(resource["mimeType"]), data: blob, ...defined({ name }) };
    }
  }
  if (type === "resource_link" && typeof uri === "string") return { text: linkText(block, uri) };
  return { mimeType: typeof type === "string" ? type : "unknown", data: "" };
}

/** Returns a media type in lower case, without parameters. */
function typeOf(mimeType: unknown): string {
  const type = typeof mimeType === "string" ? mimeType.split(";")[0]?.trim().toLowerCase() : "";
  // `image/jpg` is a common alias, which providers do not accept.
  return type === "image/jpg" ? "image/jpeg" : type || "application/octet-stream";
}

function linkText(block: unknown, uri: string): string {
  const { name, title, description, mimeType, size } = block as Record<string, unknown>;
  const label = title ?? name;
  const about = [mimeType, typeof size === "number" ? `${size} bytes` : undefined, description]
    .filter((part) => part !== undefined);
  return `${label === undefined ? "" : `${label}: `}${uri}${
    about.length === 0 ? "" : ` (${about.join(", ")})`
  }`;
}

function standIn({ mimeType, data, name }: Exclude<Read, { readonly text: string }>): string {
  const bytes = Math.floor(data.replace(/={1,2}$/, "").length * 3 / 4);
  const size = bytes === 0 ? "" : ` (${bytes} bytes)`;
  const named = name === undefined ? "" : ` "${clip(name)}"`;
  return `[A file${named} of the type ${clip(mimeType)}${size} cannot be shown here.]`;
}
