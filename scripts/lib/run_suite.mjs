// Runs one suite on one runtime, and counts its tests.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ROOT } from "./paths.mjs";
import { capture } from "./process.mjs";
import { countJunit, countWorkerd, judge } from "./reports.mjs";
import { FLAGS } from "./runtimes.mjs";

/** The time that each long test of `npm run test:soak` may add: up to three times this. */
const SOAK_MS = Number(process.env.PLUE_SOAK ?? 0) * 1_000;

/**
 * The time limits of a run and a test, in milliseconds. Even on a busy machine, only a hanging test
 * reaches them.
 */
const RUN_LIMIT_MS = 1_200_000 + 12 * SOAK_MS;
const TEST_LIMIT_MS = 600_000 + 4 * SOAK_MS;

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
  deno: ({ files, junit }) => [
    ...["deno", "test", ...FLAGS.deno],
    "--parallel",
    `--junit-path=${junit}`,
    ...files,
  ],
  node: ({ files, junit, noEval }) => [
    ...["node", ...FLAGS.node, "--single-threaded-gc"],
    ...(noEval ? ["--disallow-code-generation-from-strings"] : []),
    "--test",
    "--test-reporter=junit",
    `--test-reporter-destination=${junit}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    ...files,
  ],
  workerd: ({ files, noEval, nodeModules }) => [
    "bun",
    "test/support/run_workerd.ts",
    ...(noEval ? ["--no-eval"] : []),
    ...(nodeModules ? ["--node-modules"] : []),
    ...files,
  ],
};

/**
 * Creates one file that loads the others. Otherwise Node would start a process per file, and Deno
 * would load all sources again for each file, which doubles the work. Node's own
 * `--test-isolation=none` ignores a file that throws while it is loaded.
 */
function oneFile(folder, files) {
  const file = join(folder, "all.test.mjs");
  const imports = files.map((name) => `import ${JSON.stringify(pathToFileURL(join(ROOT, name)))};`);
  writeFileSync(file, imports.join("\n"));
  return file;
}

/** Runs one entry of the plan, and returns its result from `judge`. */
export async function runSuite({ runtime, files, env = {}, ...options }, coverageDir) {
  const folder = mkdtempSync(join(tmpdir(), "plue-test-"));
  const junit = join(folder, "junit.xml");
  try {
    const run = ["node", "deno"].includes(runtime) ? [oneFile(folder, files)] : files;
    const [command, ...args] = COMMANDS[runtime]({ files: run, junit, coverageDir, ...options });
    const ended = await capture(command, args, { env, timeoutMs: RUN_LIMIT_MS });
    const count = runtime === "workerd" ? countWorkerd(ended.output) : countJunit(junit);
    return judge(runtime, ended, count);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
