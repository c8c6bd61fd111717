/**
 * The workspace toolset as `npm start` serves it: `plue serve examples/workspace/serve.ts`.
 *
 * | variable | meaning | default |
 * |---|---|---|
 * | `PLUE_WORKSPACE` | the folder that the tools work in | the current one |
 * | `PLUE_GIT_FOLDER` | where its repository may keep data outside of it (worktrees, submodules) | none |
 * | `PLUE_STATE` | where journals and the state of calls lie, never in a workspace | the user's state folder |
 *
 * @module
 */

import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import type { ToolDispatcherOptions } from "../../mod.ts";
import { journalsFolder } from "./journal.ts";
import { createWorkspaceRegistry, type WorkspaceRegistry } from "./mod.ts";
import { TRANSACTION_PREFIX } from "./paths.ts";

/** A folder that a variable names. An empty variable counts as one that is not set. */
function folderIn(name: string): string | undefined {
  const path = process.env[name]?.trim() || undefined;
  if (path === undefined || statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  throw new TypeError(
    `Cannot serve: ${name} is ${
      JSON.stringify(path.slice(0, 100))
    }, and must be a folder that exists`,
  );
}

const gitFolder = folderIn("PLUE_GIT_FOLDER");
const root = folderIn("PLUE_WORKSPACE") ?? process.cwd();
const workspace: WorkspaceRegistry = createWorkspaceRegistry({
  root,
  gitFolders: gitFolder === undefined ? [] : [gitFolder],
});

/** The tools. */
export const registry: WorkspaceRegistry["registry"] = workspace.registry;
/** `plue serve` rolls back what an earlier run left open. */
export const transactions: WorkspaceRegistry["transactions"] = workspace.transactions;
/**
 * Where calls that wait, tasks and idempotency keys are kept: a folder for each workspace, whose name
 * keeps the file tools out.
 */
export const state: string = join(
  dirname(journalsFolder()),
  `${TRANSACTION_PREFIX}calls-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`,
);
/** Each call may hold a file in memory, or run a command. Further ones wait. */
export const dispatch: ToolDispatcherOptions = { limits: { maxConcurrentPerTool: 8 } };
