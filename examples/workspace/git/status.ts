/**
 * Reads what `git status --porcelain=v2 --branch -z` prints.
 *
 * @see https://git-scm.com/docs/git-status#_porcelain_format_version_2
 * @module
 */

const STATES = {
  ".": "unmodified",
  M: "modified",
  T: "type-changed",
  A: "added",
  D: "deleted",
  R: "renamed",
  C: "copied",
  U: "unmerged",
} as const;

/** How a file differs, between the last commit and the index, or the index and the folder. */
export type FileState = (typeof STATES)[keyof typeof STATES] | "untracked";

/** A file that differs. */
export interface ChangedFile {
  readonly path: string;
  readonly staged: FileState;
  readonly unstaged: FileState;
  readonly from?: string;
}

/** The branch, and what differs. */
export interface GitStatus {
  readonly branch: string | null;
  readonly commit: string | null;
  readonly upstream: string | null;
  readonly ahead: number;
  readonly behind: number;
  readonly files: ChangedFile[];
}

/** Options for {@linkcode parseStatus}. */
export interface ParseStatusOptions {
  /**
   * The output is not all there: its last record is dropped.
   *
   * @default {false}
   */
  readonly isCut?: boolean;
  /**
   * The workspace's place in the repository, ending in `/`: it is taken off the paths.
   *
   * @default {""}
   */
  readonly prefix?: string;
}

/** Parses the output. */
export function parseStatus(output: string, options: ParseStatusOptions = {}): GitStatus {
  const { isCut = false, prefix = "" } = options;
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
        // A renamed file is followed by a record with its path before.
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

/** Splits at the first spaces only: the last field is a path, and may hold spaces. */
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

function state(letter: string | undefined): FileState {
  return letter !== undefined && Object.hasOwn(STATES, letter)
    ? STATES[letter as keyof typeof STATES]
    : "modified";
}
