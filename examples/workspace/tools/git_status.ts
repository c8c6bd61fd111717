/**
 * `git-status`: the branch, and what has changed.
 *
 * @module
 */

import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { gitOrRefuse } from "../git/git.ts";
import { parseStatus } from "../git/status.ts";
import { answer } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";

const Parameters = Type.Object({
  untracked: Type.Optional(
    Type.Boolean({ description: "Also list files that git does not know.", default: true }),
  ),
  limit: Type.Optional(
    Type.Integer({
      description: "How many changed files to answer.",
      minimum: 1,
      maximum: 2_000,
      default: 500,
    }),
  ),
}, { additionalProperties: false });

const State = Type.Enum([
  "unmodified",
  "modified",
  "type-changed",
  "added",
  "deleted",
  "renamed",
  "copied",
  "unmerged",
  "untracked",
]);

const Returns = Type.Object({
  branch: Type.Union([Type.String(), Type.Null()], { description: "Null: no branch (detached)." }),
  commit: Type.Union([Type.String(), Type.Null()], { description: "Null: no commit yet." }),
  upstream: Type.Union([Type.String(), Type.Null()]),
  ahead: Type.Integer(),
  behind: Type.Integer(),
  clean: Type.Boolean(),
  files: Type.Array(Type.Object({
    path: Type.String({ description: "From the workspace's root." }),
    staged: State,
    unstaged: State,
    from: Type.Optional(Type.String({ description: "Its path before it was renamed." })),
  })),
  truncated: Type.Boolean(),
});

/** The tool `git-status`. */
export const gitStatus: Tool = defineTool({
  name: "git-status",
  title: "Git status",
  description:
    "Tells the branch, how it stands to its upstream, and which files of the workspace " +
    "have changed, staged and unstaged.",
  parameters: Parameters,
  returns: Returns,
  category: "git",
  risk: "low",
  tags: ["read", "git"],
  idempotent: true,
  examples: [{ input: {} }],
  isAvailable: ({ services }) => workspaceOf(services).isRepository,
  execute: (params, context) => answer(() => status(params, context)),
});

async function status(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { untracked = true, limit = 500 } = params;
  const { root } = workspaceOf(context.services);
  const { signal } = context;
  const [place, output] = await Promise.all([
    gitOrRefuse(root, "read the status", ["rev-parse", "--show-prefix"], { signal }),
    gitOrRefuse(root, "read the status", [
      "status",
      "--porcelain=v2",
      "--branch",
      "-z",
      `--untracked-files=${untracked ? "all" : "no"}`,
      "--ignore-submodules=all",
      "--",
      ".",
    ], { signal }),
  ]);
  const prefix = place.stdout.replace(/\n$/, "");
  const { files, ...rest } = parseStatus(output.stdout, { isCut: output.isCut, prefix });
  return {
    ...rest,
    clean: files.length === 0,
    files: files.slice(0, limit),
    truncated: output.isCut || files.length > limit,
  };
}
