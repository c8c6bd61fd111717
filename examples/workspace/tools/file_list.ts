/**
 * `file-list`: lists a folder, also with everything below it.
 *
 * @module
 */

import { lstat } from "node:fs/promises";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { resolveInside } from "../paths.ts";
import { answer, errorCode, fileRefusal, Refusal } from "../refusal.ts";
import { compiled, globMatcher } from "../patterns.ts";
import { walk } from "../walk.ts";
import { workspaceOf } from "../workspace.ts";

const MAX_VISITED = 100_000;
/** How many characters the paths of one answer have in all. */
const MAX_PATHS_LENGTH = 400_000;

const Parameters = Type.Object({
  path: Type.Optional(
    Type.String({ description: "The folder, relative to the workspace.", default: "." }),
  ),
  recursive: Type.Optional(
    Type.Boolean({ description: "Also list what is in the folders below.", default: false }),
  ),
  maxDepth: Type.Optional(
    Type.Integer({
      description: "How many levels to go down when recursive.",
      minimum: 1,
      maximum: 64,
      default: 16,
    }),
  ),
  pattern: Type.Optional(
    Type.String({
      description: 'Which paths to list: "*.ts" by name at any depth, or "src/**/*.ts" by path ' +
        "from the folder. * and ? match within a name, ** any number of folders, [ab] one " +
        "character of several, {a,b} one of several texts.",
      minLength: 1,
      maxLength: 500,
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      description: "How many entries to answer.",
      minimum: 1,
      maximum: 5_000,
      default: 1_000,
    }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  path: Type.String(),
  entries: Type.Array(Type.Object({
    path: Type.String({ description: "From the workspace's root." }),
    type: Type.Enum(["file", "folder", "link", "other"]),
    size: Type.Optional(Type.Integer({ description: "Of a file, in bytes." })),
    modified: Type.Optional(Type.String({ description: "When it was last changed (ISO 8601)." })),
  })),
  truncated: Type.Boolean({ description: "There is more than was listed." }),
});

/** The tool `file-list`. */
export const fileList: Tool = defineTool({
  name: "file-list",
  title: "List files",
  description: "Lists the files and folders of a folder, sorted by name, a folder before what is " +
    "in it. Symbolic links are named, not followed; .git is not entered.",
  parameters: Parameters,
  returns: Returns,
  category: "filesystem",
  risk: "low",
  tags: ["read-only", "file"],
  idempotent: true,
  examples: [{
    description: "All TypeScript files below src",
    input: { path: "src", recursive: true, pattern: "*.ts" },
  }],
  execute: (params, context) => answer(() => list(params, context)),
});

async function list(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { path = ".", recursive = false, maxDepth = 16, pattern, limit = 1_000 } = params;
  const folder = await resolveInside(workspaceOf(context.services).root, path);
  const matches = pattern === undefined
    ? () => true
    : compiled("/pattern", () => globMatcher(pattern));
  const entries: Static<typeof Returns>["entries"] = [];
  let length = 0;
  const found = walk({
    ...folder,
    maxDepth: recursive ? maxDepth : 1,
    maxVisited: MAX_VISITED,
    signal: context.signal,
  });
  try {
    for await (const entry of found) {
      if (!matches(entry.below)) continue;
      length += entry.path.length;
      if (entries.length === limit || length > MAX_PATHS_LENGTH) {
        return { path: folder.relative, entries, truncated: true };
      }
      entries.push({ path: entry.path, type: entry.type, ...await details(entry.held) });
    }
    return { path: folder.relative, entries, truncated: found.isCut };
  } catch (error) {
    if (context.signal.aborted) throw error;
    if (errorCode(error) !== "ENOTDIR") throw fileRefusal(error, "list", folder.shown);
    throw new Refusal("invalid_arguments", `Cannot list "${folder.shown}": it is not a folder`, {
      pointer: "/path",
    });
  }
}

async function details(
  path: string,
): Promise<{ readonly size?: number; readonly modified?: string }> {
  // An entry that was removed in between is still listed, without details.
  const stats = await lstat(path).catch(() => undefined);
  if (stats === undefined) return {};
  const modified = stats.mtime.toISOString();
  return stats.isFile() ? { size: stats.size, modified } : { modified };
}
