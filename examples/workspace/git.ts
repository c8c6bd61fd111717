/**
 * Runs git without a shell and without the repository's own configuration.
 *
 * That configuration names programs in many places (filters, monitors, hooks, transports), and the
 * files of a workspace may come from others. So each call has a configuration of its own, which
 * contains only settings that name no program. Git reads it from the folder in `GIT_COMMON_DIR`,
 * which contains links to the repository's objects and refs.
 */

import { lstat, mkdtemp, opendir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import type { ToolContext } from "../../mod.ts";
import { errorCode, Refusal } from "./refusal.ts";
import { collectProcess, minimalEnvironment, type ProcessOutput } from "./run_process.ts";
import { repositoryTop, workspaceOf } from "./workspace.ts";

const MAX_OUTPUT_BYTES = 1_048_576;

/**
 * The settings that git receives, as a pattern of `git config`: how the repository is stored, how
 * files are read and compared, and the committer. They name no program, file or host, with two
 * exceptions: `core.excludesFile` is read only from outside the repository, and only the names of
 * filters are read.
 */
const SETTINGS = `^(${
  [
    "core\\.(repositoryformatversion|sharedrepository|logallrefupdates)",
    "core\\.(autocrlf|checkstat|eol|excludesfile|filemode|ignorecase|precomposeunicode|safecrlf)",
    "core\\.(sparsecheckout|sparsecheckoutcone|symlinks|trustctime)",
    "extensions\\.(compatobjectformat|objectformat|refstorage)",
    "(author|committer|user)\\.(email|name|useconfigonly)",
    "filter\\..*\\.(clean|process)",
  ].join("|")
})$`;

/** The entries of the common folder that git needs, without the configuration and the hooks. */
const COMMON = ["info", "logs", "objects", "packed-refs", "refs", "reftable", "shallow"];

/** The repository of the workspace, for one call. */
export interface Repository {
  /** The workspace's root, where git runs. */
  readonly root: string;
  /** The path of the workspace in the repository: empty, or ending in `/`. */
  readonly prefix: string;
  /** The index of the worktree. */
  readonly index: string;
  /** A folder for the files of this call. It is removed at the end of the call. */
  readonly folder: string;
  /** The names of the filters that a configuration defines. None of them runs. */
  readonly filters: ReadonlySet<string>;
  /** The variables with the paths of the repository. */
  readonly env: Readonly<Record<string, string>>;
}

/** Options for {@linkcode git}. */
export interface GitOptions {
  readonly signal: AbortSignal;
  /** The text on the standard input. */
  readonly input?: string;
  /** True to let git take its locks. A command that only reads must not wait for a lock. */
  readonly locks?: boolean;
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Prepares the workspace's repository for one call.
 *
 * @throws {Refusal} If there is none, or if a part of it is outside its `.git` folder.
 */
export async function openRepository(context: ToolContext): Promise<Repository> {
  const { root } = workspaceOf(context.services);
  const top = repositoryTop(root);
  if (top === undefined) {
    throw new Refusal("unavailable", "Cannot use git: the workspace is not in a repository");
  }
  const gitDir = join(top, ".git");
  await checkFolder(gitDir, context.signal);
  // Only this command reads the repository's configuration; it runs no program.
  const settings = await git(
    { root, env: { GIT_DIR: gitDir } },
    ["config", "-z", "--show-scope", "--get-regexp", SETTINGS],
    { signal: context.signal },
  );
  // 1: no setting matches.
  if (settings.isCut || ![0, 1].includes(settings.exitCode ?? -1)) {
    throw gitRefusal({ root }, "read the configuration", settings);
  }
  const folder = await mkdtemp(join(tmpdir(), "plue-git-"));
  context.defer(() => rm(folder, { recursive: true, force: true }));
  const { config, filters } = safeSettings(settings.stdout);
  await Promise.all([
    writeFile(join(folder, "config"), config),
    // Windows lets every user make junctions, but not links.
    ...COMMON.map((name) => symlink(join(gitDir, name), join(folder, name), "junction")),
  ]);
  return {
    root,
    prefix: root === top ? "" : `${relative(top, root).replaceAll(sep, "/")}/`,
    index: join(gitDir, "index"),
    folder,
    filters,
    env: {
      GIT_DIR: gitDir,
      GIT_COMMON_DIR: folder,
      GIT_WORK_TREE: top,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      // Forbids all transports, because no command needs another repository.
      GIT_ALLOW_PROTOCOL: "none",
    },
  };
}

/** Runs git in the workspace's root. */
export async function git(
  { root, env }: Pick<Repository, "root" | "env">,
  args: readonly string[],
  options: GitOptions,
): Promise<ProcessOutput> {
  return await collectProcess({
    command: "git",
    // Takes paths literally, without patterns and magic words.
    args: ["--literal-pathspecs", ...args],
    cwd: root,
    env: minimalEnvironment({
      LC_ALL: "C.UTF-8",
      ...env,
      ...(options.locks === true ? {} : { GIT_OPTIONAL_LOCKS: "0" }),
      ...options.env,
    }),
    input: options.input,
    signal: options.signal,
    maxBytes: MAX_OUTPUT_BYTES,
  });
}

/**
 * Runs git.
 *
 * @throws {Refusal} If git fails, with git's message.
 */
export async function gitOrRefuse(
  repository: Pick<Repository, "root" | "env">,
  action: string,
  args: readonly string[],
  options: GitOptions,
): Promise<ProcessOutput> {
  const output = await git(repository, args, options);
  if (output.exitCode !== 0) throw gitRefusal(repository, action, output);
  return output;
}

/** Returns git's message in one line, without the path of the workspace on this machine. */
function gitRefusal({ root }: { readonly root: string }, action: string, output: ProcessOutput) {
  const reason = (output.stderr.trim() || output.stdout.trim() || "it gave no reason")
    .replaceAll(root, ".").split("\n").slice(0, 3).join("; ").slice(0, 300);
  return new Refusal("invalid_arguments", `Cannot ${action}: git says ${JSON.stringify(reason)}`);
}

/**
 * Writes the settings that `git config` listed (scope, key and value of each) as a configuration
 * file, and collects the names of the filters.
 */
function safeSettings(
  listed: string,
): { readonly config: string; readonly filters: ReadonlySet<string> } {
  let config = "";
  const filters = new Set<string>();
  const fields = listed.split("\0");
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [scope, entry = ""] = [fields[index], fields[index + 1]];
    const [, section = "", subsection, name = "", value] =
      /^([^.\n]+)(?:\.(.*))?\.([^.\n]+)(?:\n([^]*))?$/.exec(entry) ?? [];
    if (section === "filter") {
      if (value !== "") filters.add(subsection ?? "");
    } else if (section === "extensions" && !/^\w+$/.test(value ?? "")) {
      // A newer git accepts an address as refStorage.
      throw outside("its refs are outside its .git");
    } else if (name !== "excludesfile" || scope === "global" || scope === "system") {
      config += subsection === undefined ? `[${section}]` : `[${section} ${quoted(subsection)}]`;
      config += `\n\t${name}${value === undefined ? "" : ` = ${quoted(value)}`}\n`;
    }
  }
  return { config, filters };
}

function quoted(value: string): string {
  return `"${value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;
}

/**
 * Rejects a repository with a part elsewhere: with a `.git` that is a file or a link (worktrees,
 * submodules), with a link in it, or with object stores of other repositories (alternates). It
 * would show the commits of another repository, and a commit would change files outside.
 */
async function checkFolder(gitDir: string, signal: AbortSignal): Promise<void> {
  const visit = async (folder: string, only?: readonly string[]): Promise<void> => {
    for await (const entry of await opendir(folder)) {
      signal.throwIfAborted();
      if (entry.isSymbolicLink() && entry.name !== "hooks") {
        throw outside("it contains a symbolic link");
      }
      if (entry.isDirectory() && (only?.includes(entry.name) ?? true)) {
        await visit(join(folder, entry.name));
      }
    }
  };
  if (!(await lstat(gitDir)).isDirectory()) throw outside("its .git is not a folder");
  await visit(gitDir, COMMON);
  for (const file of ["commondir", "objects/info/alternates"]) {
    try {
      await lstat(join(gitDir, file));
    } catch (error) {
      if (errorCode(error) === "ENOENT") continue;
      throw error;
    }
    throw outside(`its .git has the file ${file}`);
  }
}

function outside(why: string): Refusal {
  return new Refusal(
    "denied",
    `Cannot use the repository: ${why}; only a repository that is complete in its own .git folder ` +
      "can be used",
  );
}
