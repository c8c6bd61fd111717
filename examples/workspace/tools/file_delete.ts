/** `file-delete`: deletes a file, a link or an empty folder. */

import { lstat, rmdir, unlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { Type } from "typebox";
import { defineTool, type Tool } from "../../../mod.ts";
import { Folder } from "../held.ts";
import { resolveInside } from "../paths.ts";
import { answer, fileRefusal, Refusal } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";

/** The tool `file-delete`. */
export const fileDelete: Tool = defineTool({
  name: "file-delete",
  title: "Delete a file",
  description: "Deletes a file, a symbolic link (not its target) or an empty folder.",
  parameters: Type.Object({
    path: Type.String({
      description: "The file or folder, relative to the workspace.",
      minLength: 1,
    }),
  }, { additionalProperties: false }),
  returns: Type.Object({ path: Type.String() }),
  category: "filesystem",
  risk: "high",
  tags: ["write", "destructive", "file"],
  examples: [{ input: { path: "notes/old.md" } }],
  execute: (params, { services }) =>
    answer(async () => {
      const { root } = workspaceOf(services);
      const path = await resolveInside(root, params.path, { followLast: false });
      if (path.absolute === root) {
        throw new Refusal("denied", "Cannot delete the workspace itself", { pointer: "/path" });
      }
      try {
        await using folder = await Folder.open(dirname(path.absolute));
        const target = folder.at(basename(path.absolute));
        await ((await lstat(target)).isDirectory() ? rmdir : unlink)(target);
        return { path: path.relative };
      } catch (error) {
        throw fileRefusal(error, "delete", path.shown);
      }
    }),
});
