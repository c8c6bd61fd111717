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
import { openInside } from "../held.ts";
import { resolveInside, type WorkspacePath } from "../paths.ts";
import { errorCode, failureOf, fileRefusal, Refusal } from "../refusal.ts";
import { clip } from "../clip.ts";
import { type Finder, globMatcher, type Match, regexFinder, textFinder } from "../patterns.ts";
import { walk } from "../walk.ts";
import { workspaceOf } from "../workspace.ts";

const MAX_FILES = 50_000;
const MAX_FILE_BYTES = 4_194_304;
/** The part of a line that is searched. */
const MAX_LINE_LENGTH = 10_000;
const MAX_SHOWN_LENGTH = 300;
/** How many steps of matching run before other calls may run. */
const STEPS_PER_TURN = 2_000_000;
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
    description: `Lines longer than ${MAX_LINE_LENGTH} characters, searched only so far.`,
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
    const finder = finderOf(params);
    const path = await resolveInside(
      workspaceOf(context.services).root,
      params.path ?? ".",
    );
    return yield* searchFiles(params, finder, path, context);
  } catch (error) {
    return failureOf(error);
  }
}

function finderOf({ pattern, regex = false, ignoreCase = false }: Params): Finder {
  if (!regex) return textFinder(pattern, ignoreCase);
  try {
    return regexFinder(pattern, ignoreCase);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Refusal("invalid_arguments", error.message, { pointer: "/pattern", cause: error });
  }
}

async function* searchFiles(
  params: Params,
  finder: Finder,
  path: WorkspacePath,
  context: ToolContext,
): AsyncGenerator<Line, Result, void> {
  const { maxMatches = 200, glob } = params;
  const fits = glob === undefined ? () => true : globMatcher(glob);
  const matches: Line[] = [];
  let filesSearched = 0;
  let filesSkipped = 0;
  let linesCut = 0;
  let length = 0;
  const result = (truncated: boolean): Result => {
    context.progress(filesSearched);
    return { matches, filesSearched, filesSkipped, linesCut, truncated };
  };
  const files = filesOf(path, context.signal);
  for (;;) {
    const step = await files.next();
    if (step.done === true) return result(step.value);
    const file = step.value;
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
    for await (const found of searchText(text, finder, context)) {
      if (found === "cut") {
        linesCut++;
        continue;
      }
      const line = { path: file.path.relative, ...found };
      matches.push(line);
      yield line;
      length += line.path.length + line.text.length;
      if (matches.length === maxMatches || length > MAX_ANSWER_LENGTH) return result(true);
    }
  }
}

/** The files at or below a path. Returns whether there were too many. */
async function* filesOf(
  path: WorkspacePath,
  signal: AbortSignal,
): AsyncGenerator<{ readonly path: WorkspacePath; readonly below: string }, boolean, void> {
  try {
    const found = walk({ ...path, maxDepth: 64, maxVisited: MAX_FILES, signal });
    for await (const { type, path: relative, absolute, below } of found) {
      if (type === "file") {
        yield { path: { relative, absolute, shown: relative, exists: true }, below };
      }
    }
    return found.isCut;
  } catch (error) {
    if (signal.aborted) throw error;
    if (errorCode(error) !== "ENOTDIR") throw fileRefusal(error, "search", path.shown);
    yield { path, below: path.relative.slice(path.relative.lastIndexOf("/") + 1) };
    return false;
  }
}

/** The text of a file; nothing if it is too large, binary or not readable. */
async function readText(path: WorkspacePath): Promise<string | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await openInside(path);
    if ((await handle.stat()).size > MAX_FILE_BYTES) return undefined;
    const bytes = await handle.readFile();
    return bytes.length > MAX_FILE_BYTES || bytes.includes(0)
      ? undefined
      : new TextDecoder().decode(bytes);
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}

async function* searchText(
  text: string,
  { find, size }: Finder,
  context: ToolContext,
): AsyncGenerator<Omit<Line, "path"> | "cut", void, void> {
  let steps = 0;
  for (let start = 0, line = 1; start < text.length; line++) {
    const newline = text.indexOf("\n", start);
    const next = newline === -1 ? text.length : newline;
    const end = next > start && text[next - 1] === "\r" ? next - 1 : next;
    if (end - start > MAX_LINE_LENGTH) yield "cut";
    const content = clip(
      text.slice(start, Math.min(end, start + MAX_LINE_LENGTH + 1)),
      MAX_LINE_LENGTH,
    );
    const match = find(content);
    if (match !== undefined) yield { line, column: match.start + 1, text: around(content, match) };
    start = next + 1;
    steps += (content.length + 10) * size;
    if (steps > STEPS_PER_TURN) {
      steps = 0;
      await new Promise((resolve) => setImmediate(resolve));
      context.throwIfAborted();
    }
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
