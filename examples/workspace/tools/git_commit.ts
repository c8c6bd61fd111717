/**
 * `git-commit`: commits the present state of some paths.
 *
 * Hooks do not run: they are programs, and this tool may be allowed where commands are not. Other
 * staged changes stay staged and are not in the commit.
 */

import { copyFile, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { git, type GitOptions, gitOrRefuse, openRepository, type Repository } from "../git.ts";
import { resolveInside } from "../paths.ts";
import { answer, errorCode, fileRefusal, Refusal } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";
import { changedFiles } from "./git_status.ts";

const TOO_MANY = "Cannot commit: too many files have changed; name fewer";

const Parameters = Type.Object({
  message: Type.String({
    description: "The commit message: a subject line, then an empty line and a body if needed.",
    minLength: 1,
    maxLength: 20_000,
    pattern: "\\S",
  }),
  paths: Type.Array(Type.String({ minLength: 1 }), {
    description: "The files or folders to commit, also new and deleted ones.",
    minItems: 1,
    maxItems: 500,
  }),
}, { additionalProperties: false });

const Returns = Type.Object({
  commit: Type.String({ description: "The hash of the new commit." }),
  files: Type.Array(Type.String(), { description: "The files in it, from the workspace's root." }),
});

/** The tool `git-commit`. */
export const gitCommit: Tool = defineTool({
  name: "git-commit",
  title: "Git commit",
  description:
    "Commits the changes of the given files and folders to git, with a message. Nothing else is " +
    "committed, even if it is staged. Hooks are not run.",
  parameters: Parameters,
  returns: Returns,
  category: "git",
  risk: "medium",
  tags: ["write", "git"],
  examples: [{ input: { message: "Fix the greeting", paths: ["src/greeting.ts"] } }],
  isAvailable: ({ services }) => workspaceOf(services).isRepository,
  execute: (params, context) => answer(() => commit(params, context)),
});

async function commit(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { root } = workspaceOf(context.services);
  const { signal } = context;
  const paths = await Promise.all(params.paths.map(async (path) => {
    // A link is committed as a link, whatever its target is.
    return (await resolveInside(root, path, { followLast: false })).relative;
  }));
  const repository = await openRepository(context);
  const head = await verified(repository, "HEAD", signal);
  if (await verified(repository, "MERGE_HEAD", signal) !== undefined) {
    throw new Refusal("unavailable", "Cannot commit: a merge is in progress; finish it first");
  }

  // The commit is made from the last commit and the paths in an index of its own, so nothing
  // visible changes until HEAD moves.
  const index = join(repository.folder, "index");
  const env = { GIT_INDEX_FILE: index };
  const step = (args: readonly string[], more: Partial<GitOptions> = {}) =>
    gitOrRefuse(repository, "commit", args, { signal, locks: true, env, ...more });
  if (head !== undefined) {
    await copyIndex(repository.index, index);
    await step(["read-tree", "--reset", head]);
  }
  const before = (await step(["write-tree", "--missing-ok"])).stdout.trim();
  const changed = await changes(repository, paths, { signal, env });
  await step(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], {
    input: changed.join("\0"),
  });
  const tree = (await step(["write-tree", "--missing-ok"])).stdout.trim();
  if (tree === before) {
    throw new Refusal("invalid_arguments", "Cannot commit: nothing has changed in these paths", {
      pointer: "/paths",
    });
  }
  const files = await step(["diff-tree", "-r", "-z", "--name-only", "--relative", before, tree]);
  const message = `${params.message.trim()}\n`;
  const parents = head === undefined ? [] : ["-p", head];
  const hash = (await step(["commit-tree", tree, ...parents, "-F", "-"], { input: message })).stdout
    .trim();
  const subject = message.slice(0, message.indexOf("\n")).slice(0, 200);
  // Fails if HEAD has moved meanwhile.
  await step(["update-ref", "-m", `commit: ${subject}`, "HEAD", hash, head ?? ""]);

  // The commit is made, so an abort of the call must not stop the update of the index.
  const { signal: never } = new AbortController();
  await git(repository, ["reset", "--quiet", "--", ...paths], { signal: never, locks: true });
  return {
    commit: hash,
    files: files.stdout.split("\0").filter((file) => file !== ""),
  };
}

/**
 * Copies the index of the worktree, so that git need not read unchanged files again. The copy is
 * dated back: git reads a file that is younger than the index.
 */
async function copyIndex(from: string, to: string): Promise<void> {
  try {
    const { mtimeMs } = await stat(from);
    await copyFile(from, to);
    const older = (Math.floor(mtimeMs) - 1) / 1_000;
    await utimes(to, older, older);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw fileRefusal(error, "read", "the index");
  }
}

/**
 * Returns the changed files below the paths. `git add` is not used: it runs another git in each
 * submodule, which obeys the submodule's own configuration.
 *
 * @throws {Refusal} If a path cannot be committed, or a filter must change a file: without the
 * filter the commit would contain what the filter removes.
 */
async function changes(
  repository: Repository,
  paths: readonly string[],
  options: GitOptions,
): Promise<readonly string[]> {
  const output = await gitOrRefuse(repository, "commit", [
    ...["status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all"],
    ...["--ignore-submodules=dirty", "--", ...paths],
  ], options);
  if (output.isCut) throw new Refusal("invalid_arguments", TOO_MANY);
  // The path of a submodule may end in a slash.
  const files = changedFiles(output.stdout, repository.prefix)
    .map(({ path, unstaged }) => ({ path: path.replace(/\/$/, ""), unstaged }));
  const isChanged = (path: string) =>
    path === "." || files.some((file) => file.path === path || file.path.startsWith(`${path}/`));
  const idle = paths.filter((path) => !isChanged(path));
  if (idle.length > 0) {
    const what = "commit a path that is ignored, missing, or in a repository of its own";
    const args = ["ls-files", "-z", "--error-unmatch", "--", ...idle];
    await gitOrRefuse(repository, what, args, options);
  }
  if (repository.filters.size > 0) {
    const kept = files.filter(({ unstaged }) => unstaged !== "deleted");
    const input = kept.map(({ path }) => path).join("\0");
    const args = ["check-attr", "-z", "--stdin", "filter"];
    const attributes = await gitOrRefuse(repository, "commit", args, { ...options, input });
    if (attributes.isCut) throw new Refusal("invalid_arguments", TOO_MANY);
    // Three fields for each path: the path, the word "filter" and the filter's name.
    const fields = attributes.stdout.split("\0");
    const at = fields.findIndex((name, index) => index % 3 === 2 && repository.filters.has(name));
    if (at !== -1) {
      throw new Refusal(
        "invalid_arguments",
        `Cannot commit "${fields[at - 2]}": the filter "${fields[at]}" must change it first, and ` +
          "filters are not run; leave it out",
        { pointer: "/paths" },
      );
    }
  }
  return files.map(({ path }) => path);
}

async function verified(
  repository: Repository,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const output = await git(repository, ["rev-parse", "--quiet", "--verify", name], { signal });
  return output.exitCode === 0 ? output.stdout.trim() : undefined;
}
