/** `git-status`: the branch and the changed files. */

import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { gitOrRefuse, openRepository } from "../git.ts";
import { answer } from "../refusal.ts";
import { workspaceOf } from "../workspace.ts";

/** The maximum number of files in one answer. */
const MAX_FILES = 500;
/** The states of a file, in the order of git's letters. */
const STATES = [
  "unmodified",
  "modified",
  "type-changed",
  "added",
  "deleted",
  "unmerged",
  "untracked",
] as const;
const LETTERS = ".MTADU?";
const State = Type.Enum(STATES);

const Returns = Type.Object({
  branch: Type.Union([Type.String(), Type.Null()], { description: "Null: no branch (detached)." }),
  commit: Type.Union([Type.String(), Type.Null()], { description: "Null: no commit yet." }),
  clean: Type.Boolean(),
  files: Type.Array(Type.Object({
    path: Type.String({ description: "From the workspace's root." }),
    staged: State,
    unstaged: State,
  })),
  truncated: Type.Boolean({ description: "True if there are more files." }),
});

/** The tool `git-status`. */
export const gitStatus: Tool = defineTool({
  name: "git-status",
  title: "Git status",
  description: "Shows the branch, and which files of the workspace have changed, staged and " +
    "unstaged. A renamed file is listed as deleted and as added.",
  returns: Returns,
  category: "git",
  risk: "low",
  tags: ["read-only", "git"],
  idempotent: true,
  examples: [{ input: {} }],
  isAvailable: ({ services }) => workspaceOf(services).isRepository,
  execute: (_params, context) => answer(() => status(context)),
});

async function status(context: ToolContext): Promise<Static<typeof Returns>> {
  const repository = await openRepository(context);
  const { stdout, isCut } = await gitOrRefuse(repository, "read the status", [
    ...["status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all"],
    // For submodules git would start a program that obeys the submodule's own configuration.
    ...["--ignore-submodules=all", "--", "."],
  ], { signal: context.signal });
  const files = changedFiles(stdout, repository.prefix, isCut);
  const header = (name: string): string | null =>
    new RegExp(`(?:^|\0)# branch\\.${name} (?!\\((?:detached|initial)\\))([^\0]+)`).exec(stdout)
      ?.[1] ?? null;
  return {
    branch: header("head"),
    commit: header("oid"),
    clean: files.length === 0,
    files: files.slice(0, MAX_FILES),
    truncated: isCut || files.length > MAX_FILES,
  };
}

/** A file that differs between the last commit, the index and the folder. */
export type ChangedFile = Static<typeof Returns>["files"][number];

/** The number of spaces before the path, by the first character of a record. */
const FIELDS: ReadonlyMap<string, number> = new Map([["1", 8], ["u", 10], ["?", 1]]);

/**
 * Parses the output of `git status --porcelain=v2 -z --no-renames`.
 *
 * @param prefix The path of the workspace in the repository; it is removed from the paths.
 * @param isCut True if the output is incomplete: its last record is dropped.
 */
export function changedFiles(
  output: string,
  prefix: string,
  isCut: boolean = false,
): readonly ChangedFile[] {
  const records = output.split("\0");
  if (isCut) records.pop();
  return records.flatMap((record) => {
    const fields = FIELDS.get(record.charAt(0));
    if (fields === undefined) return [];
    // The path is the last field, and may contain spaces.
    const path = record.split(" ").slice(fields).join(" ").slice(prefix.length);
    const kind = record.charAt(0);
    const letters = kind === "1" ? record.slice(2, 4) : kind.toUpperCase().repeat(2);
    return [{ path, staged: stateOf(letters[0]), unstaged: stateOf(letters[1]) }];
  });
}

function stateOf(letter: string | undefined): ChangedFile["staged"] {
  return STATES[LETTERS.indexOf(letter ?? "")] ?? "modified";
}
