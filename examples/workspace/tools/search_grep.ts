/**
 * `search-grep`: finds text in files and streams the matches.
 *
 * The pattern is plain text unless `regex` is set. Every regular expression takes linear time
 * (`../patterns.ts`).
 */

import { type FileHandle, lstat } from "node:fs/promises";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext, type ToolFailure } from "../../../mod.ts";
import { openInside, readBytes } from "../held.ts";
import { resolveInside, type WorkspacePath } from "../paths.ts";
import { failureOf, Refusal } from "../refusal.ts";
import { type Finder, type Match, MAX_LINE_LENGTH, regexFinder, textFinder } from "../patterns.ts";
import { pause, walk } from "../walk.ts";
import { workspaceOf } from "../workspace.ts";

const MAX_FILE_BYTES = 4_194_304;
const MAX_SHOWN_LENGTH = 300;
/** The matching steps of one call: 1 GB of text, or 50 MB with a usual regular expression. */
const MAX_STEPS = 1_000_000_000;
/** The steps for each line, in addition to its characters. */
const STEPS_PER_LINE = 10;
const FILES_PER_PROGRESS = 25;
/** The maximum number of characters in the matches of one answer. */
const MAX_ANSWER_LENGTH = 250_000;

const Parameters = Type.Object({
  pattern: Type.String({
    description: "Plain text, or a regular expression if regex is set.",
    minLength: 1,
    maxLength: 1_000,
  }),
  regex: Type.Optional(Type.Boolean({
    description: "The pattern is a regular expression in RE2's syntax: classes, groups, |, * + ? " +
      "{n,m}, \\d \\w \\s \\b ^ $, but no back references or look-around.",
    default: false,
  })),
  ignoreCase: Type.Optional(Type.Boolean({ description: "Ignore case.", default: false })),
  path: Type.Optional(
    Type.String({ description: "The file or folder to search.", default: ".", minLength: 1 }),
  ),
  ending: Type.Optional(
    Type.String({ description: 'Search only files whose path ends so, such as ".test.ts".' }),
  ),
  maxMatches: Type.Optional(
    Type.Integer({
      description: "The maximum number of matching lines.",
      minimum: 1,
      maximum: 1_000,
      default: 200,
    }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  matches: Type.Array(Type.Object({
    path: Type.String(),
    line: Type.Integer({ description: "From 1." }),
    column: Type.Integer({ description: "The beginning of the match in the line, from 1." }),
    text: Type.String({ description: "The line; of a long line the part around the match." }),
  })),
  filesSearched: Type.Integer(),
  filesSkipped: Type.Integer({ description: "Binary, too large, or not readable." }),
  linesCut: Type.Integer({
    description: `Lines of which only the first ${MAX_LINE_LENGTH} characters were searched, or ` +
      "fewer with a large regular expression.",
  }),
  truncated: Type.Boolean({ description: "True if there may be more matches." }),
});

type Line = Static<typeof Returns>["matches"][number];

/** The tool `search-grep`. */
export const searchGrep: Tool = defineTool({
  name: "search-grep",
  title: "Search in files",
  description: "Finds the lines of the workspace's text files that contain a text or match a " +
    "regular expression. Matches are streamed. .git is not searched, and " +
    "symbolic links are not followed.",
  parameters: Parameters,
  returns: Returns,
  category: "search",
  risk: "low",
  tags: ["read-only", "search", "file"],
  idempotent: true,
  examples: [
    { description: "The uses of a function", input: { pattern: "defineTool(", ending: ".ts" } },
    { description: "A regular expression", input: { pattern: "TODO|FIXME", regex: true } },
  ],
  execute: search,
});

async function* search(
  params: Static<typeof Parameters>,
  context: ToolContext,
): AsyncGenerator<Line, Static<typeof Returns> | ToolFailure, void> {
  try {
    return yield* searchFiles(params, context);
  } catch (error) {
    return failureOf(error);
  }
}

async function* searchFiles(
  params: Static<typeof Parameters>,
  context: ToolContext,
): AsyncGenerator<Line, Static<typeof Returns>, void> {
  const { ending = "", maxMatches = 200 } = params;
  const finder = compile(params);
  const path = await resolveInside(workspaceOf(context.services).root, params.path ?? ".");
  const { signal } = context;
  const found = walk(path, signal);
  const isFile = (await lstat(path.absolute).catch(() => undefined))?.isFile() === true;
  const result = { matches: [] as Line[], filesSearched: 0, filesSkipped: 0, linesCut: 0 };
  let length = 0;
  let steps = 0;
  for await (const file of isFile ? [path] : found) {
    if (!file.relative.endsWith(ending)) continue;
    const text = await readText(file);
    if (text === undefined) {
      result.filesSkipped++;
      continue;
    }
    if (++result.filesSearched % FILES_PER_PROGRESS === 0) {
      context.progress(result.filesSearched, undefined, file.relative);
    }
    for (const { line, content, isCut } of linesOf(text, finder.maxLength)) {
      await pause(signal);
      steps += (content.length + STEPS_PER_LINE) * finder.size;
      if (steps > MAX_STEPS) return { ...result, truncated: true };
      if (isCut) result.linesCut++;
      const match = finder.find(content);
      if (match === undefined) continue;
      const shown = around(content, match);
      const answer = { path: file.relative, line, column: match.start + 1, text: shown };
      yield answer;
      length += answer.path.length + shown.length;
      if (result.matches.push(answer) === maxMatches || length > MAX_ANSWER_LENGTH) {
        return { ...result, truncated: true };
      }
    }
  }
  return { ...result, truncated: found.isCut };
}

function compile({ pattern, regex, ignoreCase = false }: Static<typeof Parameters>): Finder {
  try {
    return regex === true ? regexFinder(pattern, ignoreCase) : textFinder(pattern, ignoreCase);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new Refusal("invalid_arguments", cause.message, { pointer: "/pattern", cause });
  }
}

/** Returns the text of a file; nothing if it is too large, binary or not readable. */
async function readText(path: WorkspacePath): Promise<string | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await openInside(path);
    const { size } = await handle.stat();
    if (size > MAX_FILE_BYTES) return undefined;
    // Another program may append faster than this reads.
    const bytes = await readBytes(handle, 0, size);
    return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}

/** Yields the lines of a text, numbered from 1; of long lines only the beginning. */
function* linesOf(
  text: string,
  maxLength: number,
): Generator<{ readonly line: number; readonly content: string; readonly isCut: boolean }> {
  for (let start = 0, line = 1; start < text.length; line++) {
    const newline = text.indexOf("\n", start);
    const next = newline === -1 ? text.length : newline;
    const end = next > start && text[next - 1] === "\r" ? next - 1 : next;
    const isCut = end - start > maxLength;
    const content = text.slice(start, Math.min(end, start + maxLength));
    yield { line, content, isCut };
    start = next + 1;
  }
}

/** Returns the line, or the part around the match if it is long, without control characters. */
function around(whole: string, match: Match): string {
  // deno-lint-ignore no-control-regex
  const line = whole.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "\ufffd");
  if (line.length <= MAX_SHOWN_LENGTH) return line.toWellFormed();
  const begin = Math.max(0, Math.min(match.start - 60, line.length - MAX_SHOWN_LENGTH));
  const end = begin + MAX_SHOWN_LENGTH;
  // A cut may split a surrogate pair.
  const shown = line.slice(begin, end).toWellFormed();
  return `${begin > 0 ? "…" : ""}${shown}${end < line.length ? "…" : ""}`;
}
