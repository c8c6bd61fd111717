/**
 * Writes results of blocks (images, audio, files) for a target: in its own blocks where it takes
 * them, as a short text otherwise, which is reported.
 *
 * @module
 */

import { clip, type ContentBlock, isObject } from "../tool/mod.ts";
import type { MediaFormat } from "./call_format.ts";

/** A block of a result that a target does not take: a text stands for it. */
export interface ResultLoss {
  /** The id of the call. */
  readonly callId: string;
  /** Where, as a JSON Pointer into the content of the result. */
  readonly path: string;
  /** The media type of the block, or its type if it has none. */
  readonly mimeType: string;
  /** The whole sentence. */
  readonly message: string;
}

/** A block in words, or the bytes of a file. */
type Read = { readonly text: string } | {
  readonly mimeType: string;
  readonly data: string;
  readonly name?: string;
};

/** What a target is told of a result of blocks. */
export interface WrittenContent {
  /** All of it in words. */
  readonly text: string;
  /** Whether blocks of the tool's own are words. */
  readonly hasText: boolean;
  /** In the target's own blocks; absent if all of it is words. */
  readonly parts?: readonly unknown[];
  /** The first block whose bytes are not base64. */
  readonly broken?: number;
  /** The blocks that have no place in the target. */
  readonly lost: readonly { readonly index: number; readonly mimeType: string }[];
}

/**
 * Writes blocks for a target.
 *
 * @param content The blocks.
 * @param media How the target writes blocks; absent: it takes words only.
 * @param callId The id of the call.
 * @param instead What stands for the blocks if there is nothing in them.
 */
export function writeContent(
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
      // Providers refuse a request with an empty text.
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
    ...(hasFiles ? { parts } : {}),
    ...(broken === undefined ? {} : { broken }),
  };
}

/** Whether a text is base64 as providers take it: padded, and without line breaks. */
function isBase64(data: string): boolean {
  // V8 overflows its stack on a group of four that is repeated for megabytes.
  return data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data);
}

/**
 * A tool in JavaScript, or a server of others, may have made any block. Of what is not known the type
 * is told only: it may hold bytes or metadata, which are not for models to read.
 */
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
      return { mimeType: typeOf(resource["mimeType"]), data: blob, ...nameIn(uri) };
    }
  }
  if (type === "resource_link" && typeof uri === "string") return { text: linkText(block, uri) };
  return { mimeType: typeof type === "string" ? type : "unknown", data: "" };
}

/** Media types have no case, and their parameters do not matter here. */
function typeOf(mimeType: unknown): string {
  const type = typeof mimeType === "string" ? mimeType.split(";")[0]?.trim().toLowerCase() : "";
  // A common name for it, which no provider knows.
  return type === "image/jpg" ? "image/jpeg" : type || "application/octet-stream";
}

/** The name of the file at an address. */
function nameIn(uri: string): { readonly name?: string } {
  const name = uri.split(/[?#]/)[0]?.match(/[^/:]+$/)?.[0];
  return name === undefined ? {} : { name };
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

/** What the model is told of a file that it cannot get. */
function standIn({ mimeType, data, name }: Exclude<Read, { readonly text: string }>): string {
  const bytes = Math.floor(data.replace(/=+$/, "").length * 3 / 4);
  const size = bytes === 0 ? "" : ` (${bytes} bytes)`;
  const named = name === undefined ? "" : ` "${clip(name)}"`;
  return `[A file${named} of the type ${clip(mimeType)}${size} cannot be shown here.]`;
}
