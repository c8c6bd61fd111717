/**
 * `file-read`: reads a part of a file, as text by lines or bytes, or as base64.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { openInside, readBytes } from "../held.ts";
import { resolveInside, type WorkspacePath } from "../paths.ts";
import { answer, Refusal } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";

/** How many bytes of a file one call answers at most. */
export const MAX_READ_BYTES = 262_144;

const CHUNK_BYTES = 65_536;
const NEWLINE = 0x0a;

const Parameters = Type.Object({
  path: Type.String({ description: "The file, relative to the workspace.", minLength: 1 }),
  unit: Type.Optional(Type.Enum(["lines", "bytes"], {
    description: "What offset and limit count. Base64 always counts bytes.",
    default: "lines",
  })),
  offset: Type.Optional(
    Type.Integer({ description: "How many lines or bytes to skip.", minimum: 0, default: 0 }),
  ),
  limit: Type.Optional(
    Type.Integer({
      description: "How many lines or bytes to read at most. Absent: as many as fit an answer.",
      minimum: 1,
    }),
  ),
  encoding: Type.Optional(
    Type.Enum(["utf8", "base64"], {
      description: "How the content is answered. Binary files need base64.",
      default: "utf8",
    }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  path: Type.String(),
  content: Type.String(),
  encoding: Type.Enum(["utf8", "base64"]),
  size: Type.Integer({ description: "The whole file, in bytes." }),
  unit: Type.Enum(["lines", "bytes"]),
  offset: Type.Integer({ description: "Where the content begins." }),
  count: Type.Integer({ description: "How many lines or bytes the content has." }),
  next: Type.Union([Type.Integer(), Type.Null()], {
    description: "The offset to go on with, or null at the end of the file.",
  }),
});

type Part = Pick<Static<typeof Returns>, "content" | "offset" | "count" | "next">;

/** The tool `file-read`. */
export const fileRead: Tool = defineTool({
  name: "file-read",
  title: "Read a file",
  description:
    "Reads a file of the workspace, or a part of it: whole lines, or bytes, or base64 for binary " +
    `files. One call answers at most ${MAX_READ_BYTES} bytes; "next" is the offset to go on with.`,
  parameters: Parameters,
  returns: Returns,
  category: "filesystem",
  risk: "low",
  tags: ["read-only", "file"],
  idempotent: true,
  examples: [{ description: "The first ten lines", input: { path: "README.md", limit: 10 } }],
  execute: (params, context) => answer(() => readPart(params, context)),
});

async function readPart(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { encoding = "utf8", offset = 0, limit = MAX_READ_BYTES } = params;
  const unit = encoding === "base64" ? "bytes" : params.unit ?? "lines";
  const path = await resolveInside(workspaceOf(context.services).root, params.path);
  const handle = await openInside(path);
  try {
    const size = (await handle.stat()).size;
    let part: Part;
    if (unit === "lines") part = await readLines(handle, path, offset, limit, context.signal);
    else {
      const bytes = await readBytes(handle, offset, Math.min(limit, MAX_READ_BYTES));
      part = encoding === "base64"
        ? base64Part(bytes, offset, size)
        : textPart(bytes, offset, size, path);
    }
    return { path: path.relative, encoding, size, unit, ...part };
  } finally {
    await handle.close();
  }
}

function base64Part(bytes: Buffer, offset: number, size: number): Part {
  const end = offset + bytes.length;
  return {
    content: bytes.toString("base64"),
    offset,
    count: bytes.length,
    next: bytes.length > 0 && end < size ? end : null,
  };
}

/** The text of some bytes, without partial characters at both ends. */
function textPart(bytes: Buffer, offset: number, size: number, path: WorkspacePath): Part {
  let start = 0;
  while (start < Math.min(3, bytes.length) && offset > 0 && isContinuation(bytes[start])) start++;
  let end = bytes.length;
  if (offset + end < size) end = wholeCharacters(bytes, end);
  const text = decode(bytes.subarray(start, end), path);
  const next = offset + end;
  return {
    content: text,
    offset: offset + start,
    count: end - start,
    next: end > 0 && next < size ? next : null,
  };
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Where the last whole character before `end` ends. */
function wholeCharacters(bytes: Uint8Array, end: number): number {
  for (let back = 1; back <= Math.min(3, end); back++) {
    const byte = bytes[end - back] ?? 0;
    if (isContinuation(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? end - back : end;
  }
  return end;
}

async function readLines(
  handle: FileHandle,
  path: WorkspacePath,
  offset: number,
  limit: number,
  signal: AbortSignal,
): Promise<Part> {
  const taken: Buffer[] = [];
  let takenBytes = 0;
  let lines = 0;
  /** Bytes of `taken` up to the end of its last whole line. */
  let wholeBytes = 0;
  let skipped = 0;
  let isFull = false;
  let position = 0;
  for (;;) {
    signal.throwIfAborted();
    const chunk = await readBytes(handle, position, CHUNK_BYTES);
    if (chunk.length === 0) break;
    position += chunk.length;
    let from = 0;
    while (skipped < offset) {
      const newline = chunk.indexOf(NEWLINE, from);
      from = newline === -1 ? chunk.length : newline + 1;
      if (newline === -1) break;
      skipped++;
    }
    if (skipped < offset) continue;
    let to = from;
    while (lines < limit) {
      const newline = chunk.indexOf(NEWLINE, to);
      const end = newline === -1 ? chunk.length : newline + 1;
      if (takenBytes + (end - from) > MAX_READ_BYTES) {
        isFull = true;
        break;
      }
      to = end;
      if (newline === -1) break;
      lines++;
      wholeBytes = takenBytes + (end - from);
    }
    taken.push(chunk.subarray(from, to));
    takenBytes += to - from;
    // There is more if anything follows the last line that was asked for.
    if (isFull || lines === limit) {
      isFull ||= to < chunk.length || (await readBytes(handle, position, 1)).length > 0;
      break;
    }
  }
  const bytes = Buffer.concat(taken);
  if (isFull && lines === 0) {
    throw new Refusal(
      "invalid_arguments",
      `Cannot read "${path.shown}" by lines: line ${offset + 1} is longer than ` +
        `${MAX_READ_BYTES} bytes; read it with unit "bytes"`,
      { pointer: "/unit" },
    );
  }
  // At the end of the file, the text after the last newline is a line too.
  const isWhole = isFull || takenBytes === wholeBytes;
  return {
    content: decode(isFull ? bytes.subarray(0, wholeBytes) : bytes, path),
    offset,
    count: isWhole ? lines : lines + 1,
    next: isFull ? offset + lines : null,
  };
}

function decode(bytes: Uint8Array, path: WorkspacePath): string {
  try {
    if (!bytes.includes(0)) {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    }
  } catch {
    // Not UTF-8: the same as a NUL.
  }
  throw new Refusal(
    "invalid_arguments",
    `Cannot read "${path.shown}" as text: it is binary; ask for encoding "base64"`,
    { pointer: "/encoding" },
  );
}
