/**
 * The workspace toolset: files, search, commands, git and the network, over one folder.
 *
 * As a module of `plue serve` (`npm start`), it serves the folder in `PLUE_WORKSPACE`, or else the
 * current one.
 */

import process from "node:process";
import { type Tool, type ToolDispatcherOptions, ToolRegistry } from "../../mod.ts";
import { echo } from "./tools/echo.ts";
import { fileDelete } from "./tools/file_delete.ts";
import { fileRead } from "./tools/file_read.ts";
import { fileWrite } from "./tools/file_write.ts";
import { gitCommit } from "./tools/git_commit.ts";
import { gitStatus } from "./tools/git_status.ts";
import { networkFetch } from "./tools/network_fetch.ts";
import { searchGrep } from "./tools/search_grep.ts";
import { terminalExecute } from "./tools/terminal_execute.ts";
import { Workspace, type WorkspaceOptions } from "./workspace.ts";

export { Workspace, type WorkspaceOptions } from "./workspace.ts";

/** The tools, in the order of their ids. They need the service `workspace`. */
export const workspaceTools: readonly Tool[] = Object.freeze([
  echo,
  fileDelete,
  fileRead,
  fileWrite,
  gitCommit,
  gitStatus,
  networkFetch,
  searchGrep,
  terminalExecute,
]);

/**
 * Makes a registry of the workspace's tools.
 *
 * @throws {TypeError} If the root is not a folder.
 */
export function createWorkspaceRegistry(options: WorkspaceOptions): ToolRegistry {
  const workspace = new Workspace(options);
  return new ToolRegistry({ tools: workspaceTools, services: { workspace } });
}

/** The registry of the folder in `PLUE_WORKSPACE`, or of the current folder. */
export const registry: ToolRegistry = createWorkspaceRegistry({
  root: process.env["PLUE_WORKSPACE"]?.trim() || ".",
});
/** Each call may hold a file in memory or run a command; further calls wait. */
export const dispatch: ToolDispatcherOptions = { limits: { maxConcurrentPerTool: 8 } };
export default registry;
