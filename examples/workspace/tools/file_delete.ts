/**
 * `file-delete`: deletes a file, a link or a folder, in a transaction.
 *
 * @module
 */

import { lstat, readdir } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { Folder } from "../held.ts";
import { isGitName, resolveInside, type WorkspacePath } from "../paths.ts";
import { answer, fileRefusal, Refusal } from "../refusal.ts";
import { fileTransaction } from "../transactions.ts";
import { type EntryType, typeOf, walk } from "../walk.ts";
import { workspaceOf } from "../workspace.ts";

/** How much one call deletes at most. */
const MAX_DELETED = 10_000;

const Parameters = Type.Object({
  path: Type.String({
    description: "The file or folder, relative to the workspace.",
    minLength: 1,
  }),
  recursive: Type.Optional(
    Type.Boolean({ description: "Delete a folder with everything in it.", default: false }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  path: Type.String(),
  type: Type.Enum(["file", "folder", "link", "other"]),
  deleted: Type.Integer({ description: "How many files and folders are gone." }),
});

/** The tool `file-delete`. */
export const fileDelete: Tool = defineTool({
  name: "file-delete",
  title: "Delete a file",
  description:
    "Deletes a file, a symbolic link (not what it points to) or an empty folder of the " +
    "workspace; with recursive, a folder with everything in it. A call that fails deletes nothing.",
  parameters: Parameters,
  returns: Returns,
  category: "filesystem",
  risk: "high",
  tags: ["write", "destructive", "file"],
  requiresTransaction: true,
  examples: [{ input: { path: "notes/old.md" } }],
  execute: (params, context) => answer(() => remove(params, context)),
});

async function remove(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { recursive = false } = params;
  const { root } = workspaceOf(context.services);
  const transaction = fileTransaction(context);
  const path = await resolveInside(root, params.path, { followLast: false });
  if (path.absolute === root) {
    throw new Refusal("denied", "Cannot delete the workspace itself", { pointer: "/path" });
  }
  try {
    const type = await typeInside(path);
    const below = type === "folder" ? await countBelow(path, recursive, context.signal) : 0;
    context.throwIfAborted();
    await transaction.remove(path);
    return { path: path.relative, type, deleted: below + 1 };
  } catch (error) {
    if (context.signal.aborted) throw error;
    throw fileRefusal(error, "delete", path.shown);
  }
}

async function typeInside({ absolute }: WorkspacePath): Promise<EntryType> {
  await using folder = await Folder.open(dirname(absolute));
  return typeOf(await lstat(folder.at(basename(absolute))));
}

/** Counts the entries of a folder. A folder with a git repository in it is refused. */
async function countBelow(
  path: WorkspacePath,
  recursive: boolean,
  signal: AbortSignal,
): Promise<number> {
  if (!recursive) {
    await using folder = await Folder.open(path.absolute);
    if ((await readdir(folder.path)).length === 0) return 0;
    throw new Refusal(
      "invalid_arguments",
      `Cannot delete "${path.shown}": the folder is not empty; set recursive`,
      { pointer: "/recursive" },
    );
  }
  let count = 0;
  const found = walk({ ...path, maxDepth: 256, maxVisited: MAX_DELETED, signal });
  for await (const entry of found) {
    count++;
    if (isGitName(basename(entry.path))) {
      throw new Refusal(
        "denied",
        `Cannot delete "${path.shown}": it holds the git repository "${entry.path}"`,
        { pointer: "/path" },
      );
    }
  }
  if (!found.isCut) return count;
  throw new Refusal(
    "invalid_arguments",
    `Cannot delete "${path.shown}": it holds more than ${MAX_DELETED} files; delete its parts`,
    { pointer: "/path" },
  );
}
