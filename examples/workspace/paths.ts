/**
 * Paths of callers, resolved inside the workspace or refused.
 *
 * Refused are `..`, absolute paths outside, NUL, symbolic links that lead outside (anywhere in the
 * path), `.git`, which may hold credentials and programs, and the folders of open transactions.
 * What a path leads to may be replaced after the check: `held.ts` sees to it that this is noticed. A
 * hard link to a file outside looks like a file inside.
 *
 * @module
 */

import type { Stats } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { errorCode, fileRefusal, Refusal } from "./refusal.ts";

/** The prefix of the folders of open transactions. */
export const TRANSACTION_PREFIX = ".plue-tx-";

const MAX_PATH_LENGTH = 4096;

/** A path that was checked. */
export interface WorkspacePath {
  /** From the root, with `/`; the root itself is `.`. Links are resolved in it. */
  readonly relative: string;
  /** The real path. */
  readonly absolute: string;
  /** As the caller wrote it, for messages. */
  readonly shown: string;
  /** Whether something was there when it was checked. */
  readonly exists: boolean;
}

/** Options for {@linkcode resolveInside}. */
export interface ResolveOptions {
  /**
   * Follow a symbolic link that the path ends in. A tool that removes the link itself does not.
   *
   * @default {true}
   */
  readonly followLast?: boolean;
}

/**
 * Resolves a caller's path.
 *
 * @param root The workspace's real path.
 * @param path Relative to the root, or absolute inside it.
 * @throws {Refusal} If it is malformed or leads outside.
 */
export async function resolveInside(
  root: string,
  path: string,
  options: ResolveOptions = {},
): Promise<WorkspacePath> {
  const { followLast = true } = options;
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

  const { absolute, exists } = await resolveLinks(root, wanted, followLast, shown);
  if (!isWithin(root, absolute)) throw outside("it leads outside the workspace");
  const inside = relative(root, absolute).split(sep).join("/") || ".";
  refuseProtected(inside, shown);
  return { relative: inside, absolute, shown, exists };
}

/** Whether `path` is `root` or below it; both normalised. */
export function isWithin(root: string, path: string): boolean {
  const clean = path.length > 1 && path.endsWith(sep) ? path.slice(0, -1) : path;
  return clean === root || clean.startsWith(root.endsWith(sep) ? root : root + sep);
}

function refuseProtected(inside: string, shown: string): void {
  const isOwn = (step: string) => isGitName(step) || step.startsWith(TRANSACTION_PREFIX);
  if (!inside.split("/").some(isOwn)) return;
  throw new Refusal(
    "denied",
    `Cannot use "${shown}": ".git" and open transactions are not for the file tools; ` +
      "the git tools show the repository",
    { pointer: "/path" },
  );
}

/**
 * Whether file systems take a name for `.git`. Those of macOS and Windows accept other spellings.
 */
export function isGitName(step: string): boolean {
  const plain = step.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, "")
    .toLowerCase();
  const stream = plain.indexOf(":");
  const name = (stream === -1 ? plain : plain.slice(0, stream)).replace(/^git~1$/, ".git");
  let end = name.length;
  while (end > 1 && (name[end - 1] === " " || name[end - 1] === ".")) end--;
  return name.slice(0, end) === ".git";
}

/** Resolves the links in the part of a path that exists. The rest is appended unchanged. */
async function resolveLinks(
  root: string,
  wanted: string,
  followLast: boolean,
  shown: string,
): Promise<{ readonly absolute: string; readonly exists: boolean }> {
  const rest: string[] = [];
  let current = wanted;
  if (!followLast && wanted !== root) {
    const entry = await lstatOrNothing(wanted, shown);
    if (entry !== undefined) {
      const parent = await realpath(dirname(wanted)).catch((error: unknown) => {
        throw fileRefusal(error, "use", shown);
      });
      return { absolute: join(parent, basename(wanted)), exists: true };
    }
  }
  for (;;) {
    try {
      const real = await realpath(current);
      return { absolute: join(real, ...rest), exists: rest.length === 0 };
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw fileRefusal(error, "use", shown);
    }
    // Creating a file through a dangling link would create the link's target.
    if (await lstatOrNothing(current, shown) !== undefined) {
      throw new Refusal(
        "denied",
        `Cannot use "${shown}": it is a symbolic link that leads outside the workspace or nowhere`,
        { pointer: "/path" },
      );
    }
    const parent = dirname(current);
    if (parent === current || !isWithin(root, parent)) {
      throw new Refusal("unavailable", "Cannot use the workspace: its folder does not exist");
    }
    rest.unshift(basename(current));
    current = parent;
  }
}

async function lstatOrNothing(path: string, shown: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw fileRefusal(error, "use", shown);
  }
}
