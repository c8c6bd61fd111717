/**
 * The workspace toolset: files, search, commands, git and the network, over one folder.
 *
 * ```ts ignore
 * const { registry, transactions } = createWorkspaceRegistry({ root: "." });
 * const dispatcher = new ToolDispatcher(registry.select({ maxRisk: "low" }), { transactions });
 * ```
 *
 * @module
 */

import process from "node:process";
import { type Tool, ToolRegistry } from "../../mod.ts";
import type { Resolver } from "./checked_request.ts";
import { echo } from "./tools/echo.ts";
import { fileDelete } from "./tools/file_delete.ts";
import { fileList } from "./tools/file_list.ts";
import { fileRead } from "./tools/file_read.ts";
import { fileWrite } from "./tools/file_write.ts";
import { gitCommit } from "./tools/git_commit.ts";
import { gitLog } from "./tools/git_log.ts";
import { gitStatus } from "./tools/git_status.ts";
import { networkFetch } from "./tools/network_fetch.ts";
import { searchGrep } from "./tools/search_grep.ts";
import { terminalExecute } from "./tools/terminal_execute.ts";
import { FileTransactionManager } from "./transactions.ts";
import { Workspace } from "./workspace.ts";

export { type FileTransaction, FileTransactionManager } from "./transactions.ts";
export { Workspace, type WorkspaceOptions } from "./workspace.ts";
export type { ResolvedAddress, Resolver } from "./checked_request.ts";

/** The tools, in the order of their ids. They need the service `workspace`. */
export const workspaceTools: readonly Tool[] = Object.freeze([
  echo,
  fileDelete,
  fileList,
  fileRead,
  fileWrite,
  gitCommit,
  gitLog,
  gitStatus,
  networkFetch,
  searchGrep,
  terminalExecute,
]);

/** Options for {@linkcode createWorkspaceRegistry}. */
export interface WorkspaceRegistryOptions {
  /** The folder that the tools work in, or a function that gives it when it is first needed. */
  readonly root: string | (() => string);
  /**
   * Whether `terminal-execute` is available.
   *
   * @default {true}
   */
  readonly terminal?: boolean;
  /**
   * Folders outside of the workspace in which its repository may keep its data, such as the `.git`
   * of the repository that it is a worktree or a submodule of.
   *
   * @default {[]}
   */
  readonly gitFolders?: readonly string[];
  /**
   * Whether `network-fetch` may reach addresses that are not of the public internet (this machine,
   * its network, special networks): all of them, or those in the list, such as `["10.0.0.7"]`.
   *
   * @default {false}
   */
  readonly allowPrivateNetwork?: boolean | readonly string[];
  /**
   * Where the journals of transactions lie: a folder of the user's alone, outside of workspaces.
   *
   * @default `PLUE_STATE`, or the user's folder for the state of programs
   */
  readonly journals?: string;
  /** Resolves the names that `network-fetch` is given. Absent: the operating system does. */
  readonly resolve?: Resolver;
}

/** The workspace's registry, and the transactions that a dispatcher over it must be given. */
export interface WorkspaceRegistry {
  readonly registry: ToolRegistry;
  readonly transactions: FileTransactionManager;
}

/**
 * Makes a registry of the workspace's tools.
 *
 * @throws {TypeError} If the root or one of `gitFolders` is not a folder.
 */
export function createWorkspaceRegistry(options: WorkspaceRegistryOptions): WorkspaceRegistry {
  const { root, allowPrivateNetwork = false, resolve, journals, ...more } = options;
  const workspace = new Workspace({ root, ...more });
  // Report a wrong folder here, and not at the first call.
  if (typeof root === "string") void workspace.root;
  void workspace.gitFolders;
  const registry = new ToolRegistry({
    tools: workspaceTools,
    services: { workspace, ...(resolve === undefined ? {} : { resolve }) },
    config: { "network-fetch": { allowPrivate: allowPrivateNetwork } },
  });
  return { registry, transactions: new FileTransactionManager(workspace, journals) };
}

const standard = createWorkspaceRegistry({ root: () => process.env["PLUE_WORKSPACE"] || "." });

/**
 * The registry of the folder that `PLUE_WORKSPACE` names, or else of the current one, for hosts
 * that load this module by name. The folder is read when a tool first needs it.
 */
export const registry: ToolRegistry = standard.registry;
/** The transactions of {@linkcode registry}. */
export const transactions: FileTransactionManager = standard.transactions;
export default registry;
