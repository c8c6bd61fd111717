/** `file-read`: reads lines of a text file, or bytes of any file as base64. */

import type { Buffer } from "node:buffer";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { openInside, readBytes } from "../held.ts";
import { resolveInside } from "../paths.ts";
import { answer, Refusal } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";

/** The maximum size of one answer, in bytes. */
export const MAX_READ_BYTES = 262_144;
/** The maximum size of a file that is read by lines, in bytes. */
export const MAX_TEXT_BYTES = 8_388_608;

const Parameters = Type.Object({
  path: Type.String({ description: "The file, relative to the workspace.", minLength: 1 }),
  encoding: Type.Optional(
    Type.Enum(["utf8", "base64"], {
      description: "utf8 reads lines of text; base64 reads bytes of any file.",
      default: "utf8",
    }),
  ),
  offset: Type.Optional(
    Type.Integer({ description: "The lines or bytes to skip.", minimum: 0, default: 0 }),
  ),
  limit: Type.Optional(
    Type.Integer({
      description: "The maximum number of lines or bytes. Default: as many as fit.",
      minimum: 1,
    }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  path: Type.String(),
  content: Type.String(),
  encoding: Type.Enum(["utf8", "base64"]),
  size: Type.Integer({ description: "The size of the whole file, in bytes." }),
  count: Type.Integer({ description: "The number of lines or bytes in the content." }),
  next: Type.Union([Type.Integer(), Type.Null()], {
    description: "The offset to continue with, or null at the end of the file.",
  }),
});

/** The tool `file-read`. */
export const fileRead: Tool = defineTool({
  name: "file-read",
  title: "Read a file",
  description:
    "Reads the contents of a file, or a part of them: lines of text, or bytes as base64. One call " +
    `returns at most ${MAX_READ_BYTES} bytes; "next" is the offset to continue with.`,
  parameters: Parameters,
  returns: Returns,
  category: "filesystem",
  risk: "low",
  tags: ["read-only", "file"],
  idempotent: true,
  examples: [{ description: "The first ten lines", input: { path: "README.md", limit: 10 } }],
  execute: (params, context) => answer(() => read(params, context)),
});

async function read(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { encoding = "utf8", offset = 0, limit = MAX_READ_BYTES } = params;
  const path = await resolveInside(workspaceOf(context.services).root, params.path);
  const handle = await openInside(path);
  try {
    const { size } = await handle.stat();
    const file = { path: path.relative, encoding, size };
    if (encoding === "utf8") {
      if (size > MAX_TEXT_BYTES) throw useBase64(`it is larger than ${MAX_TEXT_BYTES} bytes`);
      return { ...file, ...lines(await readBytes(handle, 0, size), offset, limit) };
    }
    const bytes = await readBytes(handle, offset, Math.min(limit, MAX_READ_BYTES));
    const count = bytes.length;
    const next = count > 0 && offset + count < size ? offset + count : null;
    return { ...file, content: bytes.toString("base64"), count, next };
  } finally {
    await handle.close();
  }
}

function lines(bytes: Buffer, offset: number, limit: number) {
  /** Returns the end of the line that begins at `from`. */
  const endOfLine = (from: number) => (bytes.indexOf("\n", from) + 1) || bytes.length;
  let begin = 0;
  for (let skipped = 0; skipped < offset && begin < bytes.length; skipped++) {
    begin = endOfLine(begin);
  }
  let end = begin;
  let count = 0;
  for (; count < limit && end < bytes.length; count++) {
    const next = endOfLine(end);
    if (next - begin > MAX_READ_BYTES) break;
    end = next;
  }
  if (count === 0 && end < bytes.length) {
    throw useBase64(`line ${offset + 1} is longer than ${MAX_READ_BYTES} bytes`);
  }
  const content = text(bytes.subarray(begin, end));
  return { content, count, next: end < bytes.length ? offset + count : null };
}

function text(bytes: Uint8Array): string {
  try {
    if (!bytes.includes(0)) {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    }
  } catch {
    // A file that is not UTF-8 is treated like a file with NUL.
  }
  throw useBase64("it is binary");
}

function useBase64(why: string): Refusal {
  const message = `Cannot read the file as text: ${why}; use encoding "base64"`;
  return new Refusal("invalid_arguments", message, { pointer: "/encoding" });
}
