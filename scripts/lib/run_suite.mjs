// Runs one suite on one runtime, and counts its tests.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ROOT } from "./paths.mjs";
import { capture } from "./process.mjs";
import { countJunit, countWorkerd, onlyFailures } from "./reports.mjs";

/** The time that each long test of `npm run test:soak` may add: up to three times this. */
const SOAK_MS = Number(process.env.PLUE_SOAK ?? 0) * 1_000;

const NO_EVAL = "--disallow-code-generation-from-strings";

/** The options with which Deno runs the tests: the map of `deno.json`, npm's `node_modules`. */
export const DENO_TEST = [
  "test",
  "--allow-all",
  "--no-check",
  // deno.json excludes the tests that need permissions from a plain `deno test`.
  "--no-config",
  "--import-map=deno.json",
  "--node-modules-dir=manual",
];

const COMMANDS = {
  bun: ({ files, junit, coverageDir }) => [
    "bun",
    "test",
    // bunfig.toml excludes the suites with packages of their own from a plain `bun test`.
    "--config=scripts/lib/bunfig.toml",
    ...files.map((file) => `./${file}`),
    // Bun's default of 5 seconds per test is too short on a busy machine. The whole run has a
    // limit.
    `--timeout=${120_000 + 4 * SOAK_MS}`,
    "--reporter=junit",
    `--reporter-outfile=${junit}`,
    ...(coverageDir === undefined
      ? []
      : ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${coverageDir}`]),
  ],
  deno: ({ files, junit, noEval }) => [
    "deno",
    ...DENO_TEST,
    "--parallel",
    ...(noEval ? [`--v8-flags=${NO_EVAL}`] : []),
    `--junit-path=${junit}`,
    ...files,
  ],
  node: ({ files, junit, noEval }) => [
    "node",
    ...(noEval ? [NO_EVAL] : []),
    "--disable-warning=ExperimentalWarning",
    "--import=./test/support/node_hook.mjs",
    "--test",
    "--test-reporter=junit",
    `--test-reporter-destination=${junit}`,
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    ...files,
  ],
  workerd: ({ files, noEval }) => [
    "bun",
    "test/support/run_workerd.ts",
    ...(noEval ? ["--no-eval"] : []),
    ...files,
  ],
};

/**
 * One file that loads the others, because Node starts a process per file. Node's own
 * `--test-isolation=none` ignores a file that throws while it is loaded.
 */
function oneFile(folder, files) {
  const file = join(folder, "all.test.mjs");
  const imports = files.map((name) => `import ${JSON.stringify(pathToFileURL(join(ROOT, name)))};`);
  writeFileSync(file, imports.join("\n"));
  return file;
}

/**
 * Runs one entry of the plan.
 *
 * @returns The counts, the milliseconds, and what to show if a test failed. A suite that crashed,
 * or in which no test ran, has at least one failure.
 */
export async function runSuite(
  { runtime, files, noEval = false, together = false },
  coverageDir,
) {
  const folder = mkdtempSync(join(tmpdir(), "plue-test-"));
  const junit = join(folder, "junit.xml");
  try {
    const run = runtime === "node" && together ? [oneFile(folder, files)] : files;
    const [command, ...args] = COMMANDS[runtime]({ files: run, junit, noEval, coverageDir });
    const timeoutMs = 420_000 + 12 * SOAK_MS;
    const { code, output, ms } = await capture(command, args, { timeoutMs });
    const count = runtime === "workerd" ? countWorkerd(output) : countJunit(junit);
    const ran = count.passed + count.failed + count.skipped;
    const crashed = (code !== 0 && count.failed === 0) || ran === 0;
    return {
      ...count,
      failed: count.failed + (crashed ? 1 : 0),
      ms,
      output: crashed ? `exit code ${code}\n${output}` : onlyFailures(output),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
