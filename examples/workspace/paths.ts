/**
 * Resolves a caller's path inside the workspace.
 *
 * Rejects `..`, absolute paths outside, NUL, symbolic links that lead outside (anywhere in the
 * path), and `.git`, which may contain credentials and programs. A path may be replaced after the
 * check; `held.ts` detects that. A hard link to a file outside looks like a file inside.
 */

import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { errorCode, fileRefusal, Refusal } from "./refusal.ts";

const MAX_PATH_LENGTH = 4096;

/** A path that was checked. */
export interface WorkspacePath {
  /** The path from the root, with `/` and without links. The root itself is `.`. */
  readonly relative: string;
  /** The real path. */
  readonly absolute: string;
  /** The caller's path, for messages. */
  readonly shown: string;
}

/**
 * Resolves a caller's path.
 *
 * @param root The workspace's real path.
 * @param path Relative to the root, or absolute inside it.
 * @param options `followLast: false` returns a symbolic link at the end of the path itself.
 * @throws {Refusal} If it is malformed or leads outside.
 */
export async function resolveInside(
  root: string,
  path: string,
  { followLast = true }: { readonly followLast?: boolean } = {},
): Promise<WorkspacePath> {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  if (path === "" || path.length > MAX_PATH_LENGTH || path.includes("\0")) {
    throw new Refusal(
      "invalid_arguments",
      `Cannot use the path ${JSON.stringify(shown)}: it must be 1 to ${MAX_PATH_LENGTH} ` +
        "characters, none of them NUL",
      { pointer: "/path" },
    );
  }
  const outside = (why: string) =>
    new Refusal("denied", `Cannot use "${shown}": ${why}; use a path relative to the workspace`, {
      pointer: "/path",
    });
  const steps = path.split(sep === "/" ? "/" : /[\\/]/);
  if (steps.includes("..")) throw outside('it contains ".."');
  if (isAbsolute(path) && !isWithin(root, join(path))) {
    throw outside("it is absolute and outside the workspace");
  }
  const wanted = isAbsolute(path) ? join(path) : join(root, path);

  const absolute = await resolveLinks(root, wanted, followLast, shown);
  if (!isWithin(root, absolute)) throw outside("it leads outside the workspace");
  const inside = relative(root, absolute).split(sep).join("/") || ".";
  if (inside.split("/").some(isGitName)) {
    throw new Refusal("denied", `Cannot use "${shown}": ".git" is not for the file tools`, {
      pointer: "/path",
    });
  }
  return { relative: inside, absolute, shown };
}

/** Returns true if `path` is `root` or below it; both are normalised. */
export function isWithin(root: string, path: string): boolean {
  const clean = path.length > 1 && path.endsWith(sep) ? path.slice(0, -1) : path;
  return clean === root || clean.startsWith(root.endsWith(sep) ? root : root + sep);
}

/** Returns true for `.git` and the spellings that file systems of macOS and Windows accept. */
export function isGitName(step: string): boolean {
  const plain = step.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, "")
    .toLowerCase();
  return /^(?:\.git[ .]*|git~1[ .]*)(?::|$)/.test(plain);
}

/** Resolves the links in the part of a path that exists. The rest is appended unchanged. */
async function resolveLinks(
  root: string,
  wanted: string,
  followLast: boolean,
  shown: string,
): Promise<string> {
  const rest = followLast || wanted === root ? [] : [basename(wanted)];
  for (let current = rest.length === 0 ? wanted : dirname(wanted);; current = dirname(current)) {
    try {
      return join(await realpath(current), ...rest);
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw fileRefusal(error, "use", shown);
    }
    // Creating a file through a dangling link would create the link's target.
    if (await lstat(current).catch(() => undefined) !== undefined) {
      throw new Refusal(
        "denied",
        `Cannot use "${shown}": it is a symbolic link that leads outside the workspace or nowhere`,
        { pointer: "/path" },
      );
    }
    if (current === root) {
      throw new Refusal("unavailable", "Cannot use the workspace: its folder does not exist");
    }
    rest.unshift(basename(current));
  }
}
