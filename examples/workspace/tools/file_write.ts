/** `file-write`: writes a new file, which replaces the old one. */

import { constants } from "node:fs";
import { access, link, lstat, mkdir, open, rename, unlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { Folder } from "../held.ts";
import { isWithin, resolveInside } from "../paths.ts";
import { answer, errorCode, fileRefusal, Refusal } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";

const Parameters = Type.Object({
  path: Type.String({ description: "The file, relative to the workspace.", minLength: 1 }),
  content: Type.String({ description: "The whole text of the file.", maxLength: 1_000_000 }),
  overwrite: Type.Optional(
    Type.Boolean({ description: "Replace a file that exists.", default: false }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  path: Type.String(),
  bytes: Type.Integer({ description: "The size of the file." }),
  created: Type.Boolean({ description: "True if the file did not exist before." }),
});

/** The tool `file-write`. */
export const fileWrite: Tool = defineTool({
  name: "file-write",
  title: "Write a file",
  description: "Creates a text file of the workspace with its folders; with overwrite, replaces " +
    "an existing file in one step.",
  parameters: Parameters,
  returns: Returns,
  category: "filesystem",
  risk: "medium",
  tags: ["write", "file"],
  annotations: { destructiveHint: true },
  examples: [{
    description: "A new file in a new folder",
    input: { path: "notes/today.md", content: "# Today\n" },
  }],
  execute: (params, context) => answer(() => write(params, context)),
});

async function write(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { content, overwrite = false } = params;
  const { root } = workspaceOf(context.services);
  const path = await resolveInside(root, params.path);
  try {
    await makeFolders(root, dirname(path.absolute));
    await using folder = await Folder.open(dirname(path.absolute));
    const target = folder.at(basename(path.absolute));
    const before = await lstat(target).catch(() => undefined);
    if (before !== undefined && !before.isFile()) {
      throw new Refusal("denied", `Cannot write "${path.shown}": it is not a regular file`, {
        pointer: "/path",
      });
    }
    // A rename would also replace a file that is read-only.
    if (before !== undefined) await access(target, constants.W_OK);
    const fresh = folder.at(`.plue-${crypto.randomUUID()}.new`);
    const data = new TextEncoder().encode(content);
    try {
      const handle = await open(fresh, "wx", 0o666);
      try {
        await handle.writeFile(data);
        if (before !== undefined) await handle.chmod(before.mode & 0o777);
        await handle.sync();
      } finally {
        await handle.close();
      }
      context.throwIfAborted();
      // Unlike a rename, a link fails if the file exists by now.
      await (overwrite ? rename : link)(fresh, target);
    } finally {
      await unlink(fresh).catch(() => {});
    }
    return { path: path.relative, bytes: data.length, created: before === undefined };
  } catch (error) {
    if (errorCode(error) === "EEXIST") {
      throw new Refusal(
        "invalid_arguments",
        `Cannot create "${path.shown}": it exists already; set overwrite to replace it`,
        { pointer: "/overwrite" },
      );
    }
    throw context.signal.aborted ? error : fileRefusal(error, "write", path.shown);
  }
}

/** Makes the folders that are missing down to `path`, the outermost first. */
async function makeFolders(root: string, path: string): Promise<void> {
  if (path === root || !isWithin(root, path)) return;
  const stats = await lstat(path).catch(() => undefined);
  if (stats !== undefined) return;
  await makeFolders(root, dirname(path));
  await using parent = await Folder.open(dirname(path));
  await mkdir(parent.at(basename(path))).catch((error: unknown) => {
    if (errorCode(error) !== "EEXIST") throw error;
  });
}
