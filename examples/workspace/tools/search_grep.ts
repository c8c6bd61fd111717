/**
 * `search-grep`: finds text in files, and streams the matches as it goes.
 *
 * The pattern is plain text unless `regex` is set. Regular expressions take linear time, whatever
 * the pattern (`../patterns.ts`).
 *
 * @module
 */

import type { FileHandle } from "node:fs/promises";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext, type ToolFailure } from "../../../mod.ts";
import { openInside, readBytes } from "../held.ts";
import { resolveInside, type WorkspacePath } from "../paths.ts";
import { errorCode, failureOf, fileRefusal } from "../refusal.ts";
import { clip } from "../clip.ts";
import {
  compiled,
  type Finder,
  globMatcher,
  type Match,
  MAX_LINE_LENGTH,
  type PathMatcher,
  regexFinder,
  textFinder,
} from "../patterns.ts";
import { pause } from "../pause.ts";
import { type Walk, walk } from "../walk.ts";
import { workspaceOf } from "../workspace.ts";

const MAX_FILES = 50_000;
const MAX_FILE_BYTES = 4_194_304;
const MAX_SHOWN_LENGTH = 300;
/** How many steps of matching one call may take: 1 GB of text, or 50 MB with a usual expression. */
const MAX_STEPS = 1_000_000_000;
/** How many steps a line costs beside those for its characters. */
const STEPS_PER_LINE = 10;
const FILES_PER_PROGRESS = 25;
/** How many characters the matches of one answer may have in all. */
const MAX_ANSWER_LENGTH = 250_000;

const Parameters = Type.Object({
  pattern: Type.String({
    description: "What to find: plain text, or a regular expression if regex is set.",
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
  glob: Type.Optional(
    Type.String({
      description:
        'Which files to search: "*.ts" by name, "src/**/*.{ts,js}" by path from the folder.',
      minLength: 1,
      maxLength: 500,
    }),
  ),
  maxMatches: Type.Optional(
    Type.Integer({
      description: "How many matching lines to answer.",
      minimum: 1,
      maximum: 1_000,
      default: 200,
    }),
  ),
}, { additionalProperties: false });

const MatchingLine = Type.Object({
  path: Type.String(),
  line: Type.Integer({ description: "From 1." }),
  column: Type.Integer({ description: "Where the match begins in the line, from 1." }),
  text: Type.String({ description: "The line, cut around the match if it is long." }),
});

const Returns = Type.Object({
  matches: Type.Array(MatchingLine),
  filesSearched: Type.Integer(),
  filesSkipped: Type.Integer({ description: "Binary, too large, or not readable." }),
  linesCut: Type.Integer({
    description: `Lines of which only the beginning was searched: ${MAX_LINE_LENGTH} ` +
      "characters, and less with a large regular expression.",
  }),
  truncated: Type.Boolean({ description: "There may be more matches than were answered." }),
});

type Params = Static<typeof Parameters>;
type Line = Static<typeof MatchingLine>;
type Result = Static<typeof Returns>;

/** The tool `search-grep`. */
export const searchGrep: Tool = defineTool({
  name: "search-grep",
  title: "Search in files",
  description: "Finds the lines of the workspace's text files that contain a text or match a " +
    "regular expression. Matches are streamed as they are found. .git is not searched, and " +
    "symbolic links are not followed.",
  parameters: Parameters,
  returns: Returns,
  category: "search",
  risk: "low",
  tags: ["read-only", "search", "file"],
  idempotent: true,
  examples: [
    { description: "Where a function is used", input: { pattern: "defineTool(", glob: "*.ts" } },
    { description: "A regular expression", input: { pattern: "TODO|FIXME", regex: true } },
  ],
  execute: (params, context) => search(params, context),
});

async function* search(
  params: Params,
  context: ToolContext,
): AsyncGenerator<Line, Result | ToolFailure, void> {
  try {
    const { pattern, regex = false, ignoreCase = false, glob } = params;
    const finder = compiled(
      "/pattern",
      () => regex ? regexFinder(pattern, ignoreCase) : textFinder(pattern, ignoreCase),
    );
    const fits = glob === undefined ? () => true : compiled("/glob", () => globMatcher(glob));
    const path = await resolveInside(workspaceOf(context.services).root, params.path ?? ".");
    return yield* searchFiles(params.maxMatches ?? 200, finder, fits, path, context);
  } catch (error) {
    return failureOf(error);
  }
}

async function* searchFiles(
  maxMatches: number,
  finder: Finder,
  fits: PathMatcher,
  path: WorkspacePath,
  context: ToolContext,
): AsyncGenerator<Line, Result, void> {
  const { signal } = context;
  const matches: Line[] = [];
  let filesSearched = 0;
  let filesSkipped = 0;
  let linesCut = 0;
  let length = 0;
  let steps = 0;
  const result = (truncated: boolean): Result => {
    context.progress(filesSearched);
    return { matches, filesSearched, filesSkipped, linesCut, truncated };
  };
  const found = walk({ ...path, maxDepth: 64, maxVisited: MAX_FILES, signal });
  for await (const file of filesOf(found, path, signal)) {
    if (!fits(file.below)) continue;
    const text = await readText(file.path);
    if (text === undefined) {
      filesSkipped++;
      continue;
    }
    filesSearched++;
    if (filesSearched % FILES_PER_PROGRESS === 0) {
      context.progress(filesSearched, undefined, file.path.relative);
    }
    for (const { line, content, isCut } of linesOf(text, finder.maxLength)) {
      await pause(signal);
      steps += (content.length + STEPS_PER_LINE) * finder.size;
      if (steps > MAX_STEPS) return result(true);
      if (isCut) linesCut++;
      const match = finder.find(content);
      if (match === undefined) continue;
      const shown = around(content, match);
      const answer = { path: file.path.relative, line, column: match.start + 1, text: shown };
      matches.push(answer);
      yield answer;
      length += answer.path.length + shown.length;
      if (matches.length === maxMatches || length > MAX_ANSWER_LENGTH) return result(true);
    }
  }
  return result(found.isCut);
}

/** The files at or below a path. */
async function* filesOf(
  found: Walk,
  path: WorkspacePath,
  signal: AbortSignal,
): AsyncGenerator<{ readonly path: WorkspacePath; readonly below: string }, void, void> {
  try {
    for await (const { type, path: relative, absolute, below } of found) {
      if (type === "file") {
        yield { path: { relative, absolute, shown: relative, exists: true }, below };
      }
    }
  } catch (error) {
    if (signal.aborted) throw error;
    if (errorCode(error) !== "ENOTDIR") throw fileRefusal(error, "search", path.shown);
    yield { path, below: path.relative.slice(path.relative.lastIndexOf("/") + 1) };
  }
}

/** The text of a file; nothing if it is too large, binary or not readable. */
async function readText(path: WorkspacePath): Promise<string | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await openInside(path);
    const { size } = await handle.stat();
    if (size > MAX_FILE_BYTES) return undefined;
    // Not to the end: something else may write faster than this reads.
    const bytes = await readBytes(handle, 0, size);
    return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}

/** The lines of a text, numbered from 1, and of long ones the beginning. */
function* linesOf(
  text: string,
  maxLength: number,
): Generator<{ readonly line: number; readonly content: string; readonly isCut: boolean }> {
  for (let start = 0, line = 1; start < text.length; line++) {
    const newline = text.indexOf("\n", start);
    const next = newline === -1 ? text.length : newline;
    const end = next > start && text[next - 1] === "\r" ? next - 1 : next;
    const isCut = end - start > maxLength;
    // One character more, so that a pair of surrogates is not taken for half of one.
    const content = clip(text.slice(start, Math.min(end, start + maxLength + 1)), maxLength);
    yield { line, content, isCut };
    start = next + 1;
  }
}

/** The line, or the part around the match if it is long, without control characters. */
function around(whole: string, match: Match): string {
  // deno-lint-ignore no-control-regex
  const line = whole.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "\ufffd");
  if (line.length <= MAX_SHOWN_LENGTH) return line;
  const begin = Math.max(0, Math.min(match.start - 60, line.length - MAX_SHOWN_LENGTH));
  const unit = line.charCodeAt(begin);
  const from = unit >= 0xdc00 && unit <= 0xdfff ? begin + 1 : begin;
  const shown = clip(line.slice(from), MAX_SHOWN_LENGTH);
  return `${from > 0 ? "…" : ""}${shown}${from + shown.length < line.length ? "…" : ""}`;
}
