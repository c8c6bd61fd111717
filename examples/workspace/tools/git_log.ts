/**
 * `git-log`: the commits of the repository, newest first.
 *
 * @module
 */

import { type Static, Type } from "typebox";
import { defineTool, type Tool, type ToolContext } from "../../../mod.ts";
import { git, gitRefusal, openRepository } from "../git.ts";
import { resolveInside } from "../paths.ts";
import { answer } from "../refusal.ts";
import { clip } from "../clip.ts";
import { workspaceOf } from "../workspace.ts";

/** The separator of fields. NUL, which a commit cannot contain, separates commits. */
const SEPARATOR = "\u001f";
/** How many characters of a commit's body are kept, so that the longest list fits an answer. */
const MAX_BODY_LENGTH = 3_000;
const FORMAT = ["%H", "%P", "%an", "%ae", "%aI", "%s", "%b"].join("%x1f");

const Parameters = Type.Object({
  limit: Type.Optional(
    Type.Integer({ description: "How many commits.", minimum: 1, maximum: 200, default: 20 }),
  ),
  skip: Type.Optional(
    Type.Integer({
      description: "How many commits to pass over first.",
      minimum: 0,
      maximum: 1_000_000,
      default: 0,
    }),
  ),
  ref: Type.Optional(
    Type.String({
      description: 'A branch, tag, commit or range, such as "main" or "v1.0..HEAD".',
      // A revision that git cannot take for an option, a path or a pattern.
      pattern: "^[A-Za-z0-9_@][A-Za-z0-9_./@{}~^-]{0,199}$",
      default: "HEAD",
    }),
  ),
  path: Type.Optional(
    Type.String({ description: "Only commits that changed this file or folder.", minLength: 1 }),
  ),
}, { additionalProperties: false });

const Returns = Type.Object({
  commits: Type.Array(Type.Object({
    hash: Type.String(),
    parents: Type.Array(Type.String()),
    author: Type.String(),
    email: Type.String(),
    date: Type.String({ description: "When it was written (ISO 8601)." }),
    subject: Type.String(),
    body: Type.String({ description: `At most ${MAX_BODY_LENGTH} characters.` }),
  })),
  more: Type.Boolean({ description: "There are older commits; go on with skip." }),
});

/** The tool `git-log`. */
export const gitLog: Tool = defineTool({
  name: "git-log",
  title: "Git log",
  description: "Lists the repository's commits, newest first, with author, date and message; all " +
    "of them, or those that changed one path.",
  parameters: Parameters,
  returns: Returns,
  category: "git",
  risk: "low",
  tags: ["read-only", "git"],
  idempotent: true,
  examples: [{ description: "The last five commits", input: { limit: 5 } }],
  isAvailable: ({ services }) => workspaceOf(services).isRepository,
  execute: (params, context) => answer(() => log(params, context)),
});

async function log(
  params: Static<typeof Parameters>,
  context: ToolContext,
): Promise<Static<typeof Returns>> {
  const { limit = 20, skip = 0, ref = "HEAD" } = params;
  const { root } = workspaceOf(context.services);
  const path = params.path === undefined ? "." : (await resolveInside(root, params.path)).relative;
  const repository = await openRepository(context);
  const output = await git(repository, [
    "log",
    "-z",
    `--max-count=${limit + 1}`,
    `--skip=${skip}`,
    `--format=format:${FORMAT}`,
    "--no-ext-diff",
    "--end-of-options",
    ref,
    "--",
    // Without a path git also lists merges.
    ...(path === "." ? [] : [path]),
  ], { signal: context.signal });
  if (output.exitCode !== 0) {
    if (/does not have any commits yet|bad revision 'HEAD'/.test(output.stderr) && ref === "HEAD") {
      return { commits: [], more: false };
    }
    throw gitRefusal(repository, "read the log", output);
  }
  const records = output.stdout === "" ? [] : output.stdout.split("\0");
  if (output.isCut) records.pop();
  const commits = records.map((record) => {
    const [hash = "", parents = "", author = "", email = "", date = "", subject = "", ...body] =
      record.split(SEPARATOR);
    return {
      hash,
      parents: parents === "" ? [] : parents.split(" "),
      author,
      email,
      date,
      subject,
      body: clip(body.join(SEPARATOR).trim(), MAX_BODY_LENGTH),
    };
  });
  return { commits: commits.slice(0, limit), more: output.isCut || commits.length > limit };
}
