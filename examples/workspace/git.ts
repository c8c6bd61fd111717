/**
 * Runs git: always with lists of arguments, never through a shell, and without the features by
 * which a repository can run programs (hooks, file system monitors, signing programs, editors).
 * With them, a file that `file-write` may change could become a command.
 *
 * @module
 */

import { Refusal } from "./refusal.ts";
import { collectProcess, minimalEnvironment } from "./run_process.ts";

const MAX_OUTPUT_BYTES = 1_048_576;

/** What git printed, and how it ended. */
export interface GitOutput {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether it printed more than is kept. */
  readonly isCut: boolean;
}

const SETTINGS: readonly string[] = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.pager=cat",
  "core.quotePath=false",
  "commit.gpgSign=false",
  "log.showSignature=false",
  // A bare repository inside the workspace must not be used: its configuration is not trusted.
  "safe.bareRepository=explicit",
];

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

/** Runs git in the workspace's root. */
export async function git(
  root: string,
  args: readonly string[],
  options: GitOptions,
): Promise<GitOutput> {
  return await collectProcess({
    command: "git",
    // Take paths literally, without patterns and magic words.
    args: ["--literal-pathspecs", "--no-pager", ...SETTINGS.flatMap((one) => ["-c", one]), ...args],
    cwd: root,
    env: minimalEnvironment({
      LC_ALL: "C.UTF-8",
      GIT_TERMINAL_PROMPT: "0",
      GIT_EDITOR: "false",
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
  root: string,
  action: string,
  args: readonly string[],
  options: GitOptions,
): Promise<GitOutput> {
  const output = await git(root, args, options);
  if (output.exitCode !== 0) throw gitRefusal(root, action, output);
  return output;
}

/**
 * A refusal with git's message in one line. The path of the workspace on this machine is left out.
 */
export function gitRefusal(root: string, action: string, output: GitOutput): Refusal {
  const said = (output.stderr.trim() || output.stdout.trim() || "it gave no reason")
    .replaceAll(root, ".").split("\n").slice(0, 3).join("; ").slice(0, 300);
  return new Refusal("invalid_arguments", `Cannot ${action}: git says ${JSON.stringify(said)}`);
}
