/**
 * The workspace that the tools share. The registry passes it to each tool as the service
 * `workspace`.
 */

import { execFileSync } from "node:child_process";
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import type { Services } from "../../mod.ts";
import type { NetworkAccess } from "./checked_request.ts";
import { isWithin } from "./paths.ts";

/** Options for {@linkcode Workspace}. */
export interface WorkspaceOptions extends NetworkAccess {
  /** The folder that the tools work in. */
  readonly root: string;
  /**
   * True if `terminal-execute` is available.
   *
   * @default {true}
   */
  readonly terminal?: boolean;
}

/** A folder with its terminal, repository and network. */
export class Workspace {
  /** The real path of the folder. */
  readonly root: string;
  readonly hasTerminal: boolean;
  /** The addresses that `network-fetch` may use. */
  readonly network: NetworkAccess;

  /** @throws {TypeError} If the root is not a folder. */
  constructor({ root, terminal = true, ...network }: WorkspaceOptions) {
    this.root = realFolder(root);
    this.hasTerminal = terminal;
    this.network = network;
  }

  /** True if the root is in a git repository and git is installed. */
  get isRepository(): boolean {
    return repositoryTop(this.root) !== undefined && hasGit();
  }
}

/**
 * Returns the workspace among a registry's services.
 *
 * @throws {TypeError} If the registry was made without one.
 */
export function workspaceOf({ workspace }: Services): Workspace {
  if (workspace instanceof Workspace) return workspace;
  throw new TypeError('Cannot use a workspace tool: the registry has no service "workspace"');
}

/** Returns the nearest folder, from the root upwards, that contains `.git`. */
export function repositoryTop(root: string): string | undefined {
  for (let folder = root;; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

function realFolder(path: string): string {
  const real = statSync(path, { throwIfNoEntry: false })?.isDirectory() && realpathSync(path);
  if (!real) {
    throw new TypeError(`Cannot use "${path}" as the workspace: it must be a folder that exists`);
  }
  // Otherwise the tools would show the environment of this process, which contains its token.
  if (process.platform === "linux" && (real === "/" || isWithin("/proc", real))) {
    throw new TypeError(
      `Cannot use "${path}" as the workspace: it contains the system's own files`,
    );
  }
  return real;
}

const RECENT_GIT = /^git version (?:2\.(?:3[2-9]|[4-9]\d|\d{3})|[3-9]\.)/;
let gitFound: boolean | undefined;

/** True if git can run and is 2.32 or later: earlier versions ignore `GIT_CONFIG_GLOBAL`. */
function hasGit(): boolean {
  try {
    gitFound ??= RECENT_GIT.test(execFileSync("git", ["--version"], { encoding: "utf8" }));
  } catch {
    // Deno throws without the permission to run git.
    gitFound = false;
  }
  return gitFound;
}
