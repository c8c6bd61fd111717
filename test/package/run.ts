/**
 * Starts the programs that the tests of the package need.
 *
 * @module
 */

import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** The project's folder. */
export const ROOT: string = join(import.meta.dirname, "../..");

/** Runs a program, and returns what it prints on its standard output. */
export function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env,
    encoding: "utf8",
  });
  if (status !== 0) {
    throw new Error(
      `Cannot run ${command} ${args.join(" ")}: ${stdout}${stderr}`,
      {
        cause: error,
      },
    );
  }
  return stdout;
}

/** Returns true if the program can be started. */
export function canRun(command: string): boolean {
  try {
    run(command, ["--version"], ROOT);
    return true;
  } catch {
    return false;
  }
}
