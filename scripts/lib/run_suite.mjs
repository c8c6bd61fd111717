// Runs one suite on one runtime, and counts its tests.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { capture } from "./process.mjs";
import { countJunit, judge, readReport } from "./reports.mjs";
import { FLAGS } from "./runtimes.mjs";

/** The time that each long test of `npm run test:soak` may add: up to three times this. */
const SOAK_MS = Number(process.env.PLUE_SOAK ?? 0) * 1_000;

/**
 * The time limits of a run and a test, in milliseconds. Even on a busy machine, only a hanging test
 * reaches them.
 */
const RUN_LIMIT_MS = 1_200_000 + 12 * SOAK_MS;
const TEST_LIMIT_MS = 600_000 + 4 * SOAK_MS;

const RUN_FILES = "test/support/run_files.ts";

const COMMANDS = {
  bun: ({ files, junit, coverageDir }) => [
    "bun",
    "test",
    // bunfig.toml excludes the suites with packages of their own from a plain `bun test`.
    "--config=scripts/lib/bunfig.toml",
    ...files.map((file) => `./${file}`),
    // The default is 5 seconds.
    `--timeout=${TEST_LIMIT_MS}`,
    "--reporter=junit",
    `--reporter-outfile=${junit}`,
    ...(coverageDir === undefined
      ? []
      : ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${coverageDir}`]),
  ],
  deno: ({ files }) => ["deno", "run", ...FLAGS.deno, RUN_FILES, ...files],
  node: ({ files }) => ["node", ...FLAGS.node, "--single-threaded-gc", RUN_FILES, ...files],
  workerd: ({ files, noEval, nodeModules }) => [
    "bun",
    "test/support/run_workerd.ts",
    ...(noEval ? ["--no-eval"] : []),
    ...(nodeModules ? ["--node-modules"] : []),
    ...files,
  ],
};

/** Runs one entry of the plan, and returns its result from `judge`. */
export async function runSuite({ runtime, files, env = {}, ...options }, coverageDir) {
  const folder = mkdtempSync(join(tmpdir(), "plue-test-"));
  const junit = join(folder, "junit.xml");
  try {
    const [command, ...args] = COMMANDS[runtime]({ files, junit, coverageDir, ...options });
    const ended = await capture(command, args, { env, timeoutMs: RUN_LIMIT_MS });
    return judge(ended, runtime === "bun" ? countJunit(junit) : readReport(ended.stdout));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
