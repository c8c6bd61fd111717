/**
 * `git-status`: the branch, and what has changed.
 *
 * @module
 */

import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { gitOrRefuse, openRepository } from "../git.ts";
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

/** How a file differs, between the last commit and the index, or the index and the folder. */
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
  tags: ["read-only", "git"],
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
  const repository = await openRepository(context);
  const output = await gitOrRefuse(repository, "read the status", [
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    `--untracked-files=${untracked ? "all" : "no"}`,
    // Git would ask a submodule by a program that obeys the submodule's own configuration.
    "--ignore-submodules=all",
    "--",
    ".",
  ], { signal: context.signal });
  const { isCut } = output;
  const { prefix } = repository;
  const { files, ...rest } = parseStatus(output.stdout, { isCut, prefix });
  return {
    ...rest,
    clean: files.length === 0,
    files: files.slice(0, limit),
    truncated: isCut || files.length > limit,
  };
}

/** The branch, and what differs. */
export type GitStatus = Omit<Static<typeof Returns>, "clean" | "truncated">;

type ChangedFile = GitStatus["files"][number];

/** What is known of the output besides its text. */
export interface StatusOutput {
  /** Whether it is incomplete: its last record is dropped. */
  readonly isCut?: boolean;
  /** The workspace's place in the repository, ending in `/`: it is taken off the paths. */
  readonly prefix?: string;
}

/** Parses the output. */
export function parseStatus(
  output: string,
  { isCut = false, prefix = "" }: StatusOutput = {},
): GitStatus {
  const inside = (path: string | undefined): string | undefined =>
    path?.startsWith(prefix) ? path.slice(prefix.length) : undefined;
  const headers = new Map<string, string>();
  const files: ChangedFile[] = [];
  const records = output.split("\0");
  if (isCut) records.pop();
  for (let index = 0; index < records.length; index++) {
    const record = records[index] ?? "";
    switch (record[0]) {
      case "#": {
        const [, name = "", value = ""] = split(record, 3);
        headers.set(name, value);
        break;
      }
      case "1": {
        const fields = split(record, 9);
        files.push({ path: inside(fields[8]) ?? "", ...states(fields[1]) });
        break;
      }
      case "2": {
        // The record after a renamed file is its old path.
        const fields = split(record, 10);
        const from = inside(records[++index]);
        files.push({
          path: inside(fields[9]) ?? "",
          ...states(fields[1]),
          ...(from === undefined ? {} : { from }),
        });
        break;
      }
      case "u":
        files.push({
          path: inside(split(record, 11)[10]) ?? "",
          staged: "unmerged",
          unstaged: "unmerged",
        });
        break;
      case "?":
        files.push({
          path: inside(record.slice(2)) ?? "",
          staged: "untracked",
          unstaged: "untracked",
        });
    }
  }
  const [ahead = "+0", behind = "-0"] = (headers.get("branch.ab") ?? "").split(" ");
  const commit = headers.get("branch.oid");
  const branch = headers.get("branch.head");
  return {
    branch: branch === undefined || branch === "(detached)" ? null : branch,
    commit: commit === undefined || commit === "(initial)" ? null : commit,
    upstream: headers.get("branch.upstream") ?? null,
    ahead: Math.abs(Number(ahead)) || 0,
    behind: Math.abs(Number(behind)) || 0,
    files,
  };
}

/** Splits at the first spaces only: the last field is a path, which may contain spaces. */
function split(record: string, count: number): readonly string[] {
  const fields: string[] = [];
  let start = 0;
  while (fields.length < count - 1) {
    const space = record.indexOf(" ", start);
    if (space === -1) break;
    fields.push(record.slice(start, space));
    start = space + 1;
  }
  return [...fields, record.slice(start)];
}

function states(letters = ".."): Pick<ChangedFile, "staged" | "unstaged"> {
  return { staged: state(letters[0]), unstaged: state(letters[1]) };
}

/** Git's letter for each state. */
const LETTERS: ReadonlyMap<string | undefined, ChangedFile["staged"]> = new Map([
  [".", "unmodified"],
  ["M", "modified"],
  ["T", "type-changed"],
  ["A", "added"],
  ["D", "deleted"],
  ["R", "renamed"],
  ["C", "copied"],
  ["U", "unmerged"],
]);

function state(letter: string | undefined): ChangedFile["staged"] {
  return LETTERS.get(letter) ?? "modified";
}
