/**
 * The workspace that the tools share: its root, and whether it has a terminal and a repository. The
 * registry hands it to each tool as the service `workspace`.
 *
 * @module
 */

import { existsSync, realpathSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import type { Services } from "../../mod.ts";
import { isWithin } from "./paths.ts";

/** How long an answer about the repository is kept, in milliseconds. */
const REPOSITORY_CHECK_MS = 1_000;

/** Options for {@linkcode Workspace}. */
export interface WorkspaceOptions {
  /** The folder that callers work in, or a function that gives it when it is first needed. */
  readonly root: string | (() => string);
  /**
   * Whether callers may have a terminal. Where this process may not start others there is none.
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
  /** Tells the time, in milliseconds. */
  readonly now?: () => number;
}

/** A folder that callers work in. It is not read before it is needed. */
export class Workspace {
  readonly #given: string | (() => string);
  readonly #mayHaveTerminal: boolean;
  readonly #gitFolders: readonly string[];
  readonly #now: () => number;
  #root: string | undefined;
  #repository: { readonly is: boolean; readonly at: number } | undefined;

  constructor(options: WorkspaceOptions) {
    this.#given = options.root;
    this.#mayHaveTerminal = options.terminal ?? true;
    this.#gitFolders = options.gitFolders ?? [];
    this.#now = options.now ?? (() => performance.now());
  }

  /**
   * The root's real path.
   *
   * @throws {TypeError} If it is not a folder.
   */
  get root(): string {
    const given = this.#given;
    return this.#root ??= realFolder(typeof given === "string" ? given : given());
  }

  /**
   * The real paths of the folders outside in which the repository may keep its data.
   *
   * @throws {TypeError} If one is not a folder.
   */
  get gitFolders(): readonly string[] {
    return this.#gitFolders.map((path) => realFolder(path, "a folder of git"));
  }

  /** Whether a command can be run here. */
  get hasTerminal(): boolean {
    return this.#mayHaveTerminal && maySpawn();
  }

  /**
   * Whether the root lies in a git repository, and git is installed. Looked up at most once a
   * second.
   */
  get isRepository(): boolean {
    const now = this.#now();
    if (this.#repository === undefined || now - this.#repository.at >= REPOSITORY_CHECK_MS) {
      const is = maySpawn("git") && hasGit() && repositoryTop(this.root) !== undefined;
      this.#repository = { is, at: now };
    }
    return this.#repository.is;
  }
}

/**
 * The workspace among a registry's services.
 *
 * @throws {TypeError} If the registry was made without one.
 */
export function workspaceOf(services: Services): Workspace {
  const { workspace } = services;
  if (workspace instanceof Workspace) return workspace;
  throw new TypeError('Cannot use a workspace tool: the registry has no service "workspace"');
}

function realFolder(path: string, use = "the workspace"): string {
  let real: string | undefined;
  try {
    real = realpathSync(path);
    if (!statSync(real).isDirectory()) real = undefined;
  } catch {
    real = undefined;
  }
  if (real === undefined) {
    throw new TypeError(`Cannot use "${path}" as ${use}: it must be a folder that exists`);
  }
  // The tools would show the environment of this process, with its token, and much else.
  if (process.platform === "linux" && (real === "/" || isWithin("/proc", real))) {
    throw new TypeError(`Cannot use "${path}" as the workspace: the system's own files are in it`);
  }
  return real;
}

/** The nearest folder, from the root upwards, that has a `.git` in it. */
export function repositoryTop(root: string): string | undefined {
  for (let folder = root;; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

let gitFound: boolean | undefined;

function hasGit(): boolean {
  const names = process.platform === "win32" ? ["git.exe", "git.cmd"] : ["git"];
  return gitFound ??= (process.env["PATH"] ?? "").split(delimiter)
    .some((folder) => folder !== "" && names.some((name) => existsSync(join(folder, name))));
}

/** Whether this runtime may start processes. Only Deno has a permission for it. */
function maySpawn(command?: string): boolean {
  const { Deno } = globalThis as {
    readonly Deno?: {
      readonly permissions?: {
        querySync(query: { name: "run"; command?: string }): { readonly state: string };
      };
    };
  };
  if (Deno?.permissions === undefined) return true;
  const query = { name: "run", ...(command === undefined ? {} : { command }) } as const;
  return Deno.permissions.querySync(query).state === "granted";
}
