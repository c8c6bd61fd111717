/**
 * Runs git, always with lists of arguments and never through a shell, and without the repository's
 * own configuration.
 *
 * That configuration names programs in many places (filters, monitors, hooks, transports), and the
 * files of a workspace may come from others. So each call has a configuration of its own, which
 * holds nothing but settings that name no program. Git reads it in a folder that
 * `GIT_COMMON_DIR` names; in that folder, links lead to the repository's objects and refs.
 *
 * @module
 */

import { mkdtemp, opendir, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ToolContext } from "../../mod.ts";
import { openRegular, readBytes } from "./held.ts";
import { isWithin } from "./paths.ts";
import { errorCode, Refusal } from "./refusal.ts";
import { collectProcess, minimalEnvironment } from "./run_process.ts";
import { repositoryTop, workspaceOf } from "./workspace.ts";

const MAX_OUTPUT_BYTES = 1_048_576;
const MAX_ALTERNATES_BYTES = 65_536;

/**
 * The settings that git may know, as a pattern of `git config`: how the repository is stored, how
 * files are read and compared, who commits, and what a branch follows. None of them names a
 * program, a file or a host. The exceptions are the owner's `core.excludesFile`, which is taken
 * from outside of the repository only, and filters, of which only the names are taken.
 */
const SETTINGS = `^(${
  [
    "core\\.(repositoryformatversion|sharedrepository|logallrefupdates)",
    "core\\.(autocrlf|checkstat|eol|excludesfile|filemode|ignorecase|precomposeunicode|safecrlf)",
    "core\\.(sparsecheckout|sparsecheckoutcone|symlinks|trustctime)",
    "extensions\\.(compatobjectformat|objectformat|refstorage)",
    "(author|committer|user)\\.(email|name|useconfigonly)",
    "branch\\..*\\.(merge|remote)",
    "remote\\..*\\.fetch",
    "(diff|status)\\.(renames|renamelimit)",
    "filter\\..*\\.(clean|process)",
  ].join("|")
})$`;

/** What git takes from its common folder, besides the configuration and the hooks. */
const COMMON = ["info", "logs", "objects", "packed-refs", "refs", "reftable", "shallow"];

/** What git printed, and how it ended. */
export interface GitOutput {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether it printed more than is kept. */
  readonly isCut: boolean;
}

/** The repository that the workspace lies in, for one call. */
export interface Repository {
  /** The workspace's root, where git runs. */
  readonly root: string;
  /** The workspace's place in the repository: empty, or ending in `/`. */
  readonly prefix: string;
  /** The index of the worktree. */
  readonly index: string;
  /** A folder for the files of this call. It is removed with the call's end. */
  readonly folder: string;
  /** The names of the filters that a configuration defines. None of them runs. */
  readonly filters: ReadonlySet<string>;
  /** The variables that lead git to the repository. */
  readonly env: Readonly<Record<string, string>>;
}

/** Options for {@linkcode git}. */
export interface GitOptions {
  readonly signal: AbortSignal;
  /** What git reads on its standard input. */
  readonly input?: string;
  /**
   * Whether git may take its locks. Commands that only read must not wait for others that write.
   *
   * @default {false}
   */
  readonly locks?: boolean;
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Where git runs. */
type Place = Pick<Repository, "root" | "env">;

/**
 * Finds the workspace's repository, and prepares it for one call.
 *
 * @throws {Refusal} If there is none, or if its data lie outside of the folders that it may use.
 */
export async function openRepository(context: ToolContext): Promise<Repository> {
  const { signal } = context;
  const { root, gitFolders } = workspaceOf(context.services);
  const top = repositoryTop(root);
  if (top === undefined) throw new Refusal("unavailable", "Cannot use git: here is no repository");
  // Only these two see the repository's configuration; they run nothing that it names.
  const [found, settings] = await Promise.all([
    gitOrRefuse({ root, env: {} }, "find the repository", [
      // A folder of the workspace that looks like a bare repository must not be taken for one.
      ...["-c", "safe.bareRepository=explicit", "rev-parse", "--path-format=absolute"],
      ...["--show-toplevel", "--git-dir", "--git-common-dir", "--show-prefix"],
    ], { signal }),
    git({ root, env: {} }, ["config", "-z", "--show-scope", "--get-regexp", SETTINGS], { signal }),
  ]);
  const [worktree = "", gitDir = "", commonDir = "", prefix = "", ...more] = found.stdout.split(
    "\n",
  );
  if (more.length !== 1 || settings.isCut) {
    throw new Refusal(
      "unavailable",
      "Cannot use the repository: git must be 2.32 or later, its path must have no line break, " +
        "and its configuration must be below 1 MiB",
    );
  }
  if (resolve(worktree) !== top) {
    throw elsewhere("its core.worktree is a folder other than that of its .git");
  }
  const common = await realpath(commonDir);
  await checkPlace([await realpath(gitDir), common], [top, ...gitFolders], signal);

  const folder = await mkdtemp(join(tmpdir(), "plue-git-"));
  context.defer(() => rm(folder, { recursive: true, force: true }));
  const { config, filters } = harmless(settings.stdout);
  await Promise.all([
    writeFile(join(folder, "config"), config),
    // Windows lets everyone make junctions, but not links.
    ...COMMON.map((name) => symlink(join(common, name), join(folder, name), "junction")),
  ]);
  return {
    root,
    prefix,
    index: join(gitDir, "index"),
    folder,
    filters,
    env: {
      GIT_DIR: gitDir,
      GIT_COMMON_DIR: folder,
      GIT_WORK_TREE: top,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      // No command here has a reason to reach another repository.
      GIT_ALLOW_PROTOCOL: "none",
    },
  };
}

/** Runs git in the workspace's root. */
export async function git(
  { root, env }: Place,
  args: readonly string[],
  options: GitOptions,
): Promise<GitOutput> {
  return await collectProcess({
    command: "git",
    // Take paths literally, without patterns and magic words.
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

/** Runs git. A failure is a refusal with git's message. */
export async function gitOrRefuse(
  place: Place,
  action: string,
  args: readonly string[],
  options: GitOptions,
): Promise<GitOutput> {
  const output = await git(place, args, options);
  if (output.exitCode !== 0) throw gitRefusal(place, action, output);
  return output;
}

/**
 * A refusal with git's message in one line. The path of the workspace on this machine is left out.
 */
export function gitRefusal({ root }: Place, action: string, output: GitOutput): Refusal {
  const said = (output.stderr.trim() || output.stdout.trim() || "it gave no reason")
    .replaceAll(root, ".").split("\n").slice(0, 3).join("; ").slice(0, 300);
  return new Refusal("invalid_arguments", `Cannot ${action}: git says ${JSON.stringify(said)}`);
}

/**
 * Writes the settings that `git config` listed (scope, key and value of each) as a configuration,
 * and takes the names of the filters out of them.
 */
function harmless(
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
      // A newer git takes an address for refStorage.
      throw elsewhere("its refs are outside of its .git");
    } else if (name !== "excludesfile" || scope === "global" || scope === "system") {
      config += subsection === undefined ? `[${section}]` : `[${section} ${quoted(subsection)}]`;
      config += `\n\t${name}${value === undefined ? "" : ` = ${quoted(value)}`}\n`;
    }
  }
  return { config, filters };
}

/** A value as a configuration file of git has it. */
function quoted(value: string): string {
  return `"${value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;
}

/**
 * Refuses a repository of which a part lies outside of the folders that it may use: by a `.git`
 * that is a file or a link, by a link inside of it, or by object stores of others (alternates). It
 * would show another repository's commits, and a commit would change files outside.
 */
async function checkPlace(
  repository: readonly string[],
  allowed: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const seen = new Set<string>();
  const visit = async (folder: string, only?: readonly string[]): Promise<void> => {
    if (!allowed.some((one) => isWithin(one, folder))) {
      throw elsewhere("its data lie outside of the workspace");
    }
    if (seen.has(folder)) return;
    seen.add(folder);
    for await (const entry of await opendir(folder)) {
      signal.throwIfAborted();
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (only?.includes(entry.name) ?? true) await visit(path);
      } else if (entry.isSymbolicLink() && entry.name !== "hooks") {
        const target = await realpath(path).catch(() => "");
        if (!allowed.some((one) => isWithin(one, target))) {
          throw elsewhere("it has a symbolic link that leads outside of the workspace or nowhere");
        }
        if ((await stat(target)).isDirectory()) await visit(target);
      }
    }
  };
  for (const folder of repository) await visit(folder, COMMON);

  // Stores of objects that this repository also reads, and those which they read in turn.
  const stores = repository.map((folder) => join(folder, "objects"));
  for (const store of stores) {
    for (const line of await alternates(store)) {
      const other = await realpath(resolve(store, line)).catch(() => "");
      await visit(other);
      if (!stores.includes(other)) stores.push(other);
    }
  }
}

/** The stores that an object store names, one in a line. */
async function alternates(store: string): Promise<readonly string[]> {
  const path = join(store, "info", "alternates");
  try {
    // Opened without waiting: a named pipe would hold one of the few threads that read files.
    const handle = await openRegular(path, "objects/info/alternates");
    let bytes: Uint8Array;
    try {
      const { size } = await handle.stat();
      if (size > MAX_ALTERNATES_BYTES) throw elsewhere("its list of alternates is too long");
      bytes = await readBytes(handle, 0, size);
    } finally {
      await handle.close();
    }
    const lines = new TextDecoder().decode(bytes).split("\n");
    return lines.filter((line) => line !== "" && !line.startsWith("#"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

function elsewhere(why: string): Refusal {
  return new Refusal(
    "denied",
    `Cannot use the repository: ${why}; only the workspace's owner can allow that (gitFolders)`,
  );
}
