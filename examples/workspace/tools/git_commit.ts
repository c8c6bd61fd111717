/**
 * `git-commit`: commits some paths, as they are in the workspace.
 *
 * Hooks do not run: they are programs, and this tool may be allowed where commands are not. Other
 * staged changes stay staged, and are not in the commit.
 *
 * @module
 */

import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { git, gitOrRefuse } from "../git.ts";
import { resolveInside } from "../paths.ts";
import { answer, Refusal } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";

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
  branch: Type.Union([Type.String(), Type.Null()], { description: "Null: no branch (detached)." }),
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
    // A link is committed as a link, wherever it leads.
    return (await resolveInside(root, path, { followLast: false })).relative;
  }));

  const head = await verified(root, "HEAD", signal);
  if (await verified(root, "MERGE_HEAD", signal) !== undefined) {
    throw new Refusal("unavailable", "Cannot commit: a merge is under way; it must be ended first");
  }
  const index = (await gitOrRefuse(root, "commit", [
    "rev-parse",
    "--git-path",
    `plue-index-${crypto.randomUUID()}`,
  ], { signal })).stdout.trim();
  context.defer(() => rm(resolve(root, index), { force: true }));

  // The commit is made from the last commit and the paths, in an index of its own: nothing visible
  // changes until HEAD moves.
  const step = async (args: readonly string[], input?: string): Promise<string> => {
    const options = { signal, locks: true, env: { GIT_INDEX_FILE: resolve(root, index) } };
    const output = await gitOrRefuse(root, "commit", args, {
      ...options,
      ...(input === undefined ? {} : { input }),
    });
    return output.stdout.trim();
  };
  await step(["read-tree", ...(head === undefined ? ["--empty"] : [head])]);
  await step(["add", "--all", "--", ...paths]);
  const tree = await step(["write-tree"]);
  if (tree === await verified(root, head === undefined ? EMPTY_TREE : "HEAD^{tree}", signal)) {
    throw new Refusal("invalid_arguments", "Cannot commit: nothing has changed in these paths", {
      pointer: "/paths",
    });
  }
  const message = `${params.message.trim()}\n`;
  const parents = head === undefined ? [] : ["-p", head];
  const hash = await step(["commit-tree", tree, ...parents, "-F", "-"], message);
  const subject = message.slice(0, message.indexOf("\n")).slice(0, 200);
  // Moves HEAD only if it still is the commit that was read.
  await step(["update-ref", "-m", `commit: ${subject}`, "HEAD", hash, head ?? NOTHING]);

  // The commit is made, so an abort of the call must not stop the rest.
  const rest = { signal: new AbortController().signal };
  await git(root, ["reset", "--quiet", "--", ...paths], { ...rest, locks: true });
  const [branch, files] = await Promise.all([
    git(root, ["symbolic-ref", "--quiet", "--short", "HEAD"], rest),
    git(root, [
      ...["diff-tree", "-r", "-z", "--root", "--name-only", "--no-commit-id", "--no-ext-diff"],
      "--relative",
      hash,
    ], rest),
  ]);
  return {
    commit: hash,
    branch: branch.exitCode === 0 ? branch.stdout.trim() : null,
    files: files.stdout.split("\0").filter((file) => file !== ""),
  };
}

/** Git's empty tree, and its hash for "no commit". */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const NOTHING = "0".repeat(40);

async function verified(
  root: string,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const output = await git(root, ["rev-parse", "--quiet", "--verify", name], { signal });
  return output.exitCode === 0 ? output.stdout.trim() : undefined;
}
