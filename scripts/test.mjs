// `npm test`: all tests and checks, on every runtime, with one table at the end.

import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { CHECKS, docExamples, runCheck } from "./lib/checks.mjs";
import { readOptions } from "./lib/options.mjs";
import { NAMES } from "./lib/runtimes.mjs";
import { runSuite } from "./lib/run_suite.mjs";
import { planRuns, SUITE_NAMES } from "./lib/suites.mjs";
import { table } from "./lib/table.mjs";
import { setup, setupPackages } from "./setup.mjs";

const USAGE = `npm test -- [--only suite,…] [--on runtime,…] [part of a file name]…

Runs every suite on every runtime, or what the options and the parts of file names leave. "host" is
where the checks run that need no runtime of their own.`;
const { options, rest: match } = readOptions(process.argv.slice(2), USAGE, {
  only: [...SUITE_NAMES, "doc", ...CHECKS.map(({ name }) => name), "coverage"],
  on: [...NAMES, "host"],
}, true);
const everything = options.only === undefined && options.on === undefined && match.length === 0;
const wanted = (name, runtime) =>
  match.length === 0 && (options.only?.includes(name) ?? true) &&
  (options.on?.includes(runtime) ?? true);

const runtimes = await setup();
const folder = mkdtempSync(join(tmpdir(), "plue-"));

/** The jobs: the row and the column of a cell of the table, and the function for the cell. */
const jobs = planRuns({ ...options, match }).map((run) => {
  const coverageDir = run.runtime === "bun" && run.coverage ? join(folder, run.suite) : undefined;
  const repeat = (files) => runSuite({ ...run, files });
  return { ...run, run: () => runSuite(run, coverageDir), repeat };
});
if (wanted("doc", "deno")) {
  const run = () => runSuite({ runtime: "deno", files: [docExamples()], env: { TMPDIR: folder } });
  jobs.push({ suite: "doc", runtime: "deno", run });
}
for (const check of CHECKS.filter(({ name }) => wanted(name, "host"))) {
  const job = { ...check, suite: check.name, runtime: "host", run: () => runCheck(check) };
  // The checks with packages take long, on one processor: the last job would leave the other idle.
  if (check.packages === undefined) jobs.push(job);
  else jobs.unshift(job);
}
if (jobs.length === 0) {
  console.error("Cannot test: no suite, runtime and file are left by these options");
  process.exit(2);
}

/**
 * The reasons for missing packages, by folder. Packages are installed one folder after the other,
 * while jobs run that need no packages.
 */
const lacks = new Map();
const installed = new Set();
let lastInstall = Promise.resolve();
for (const folder of new Set(jobs.flatMap(({ packages = [] }) => packages))) {
  lastInstall = lastInstall.then(() => setupPackages(folder)).finally(() => installed.add(folder));
  lacks.set(folder, lastInstall);
}

/** The result of a job that cannot run. */
function skipped({ suite, runtime }, reason) {
  const skips = [`${suite} on ${runtime}: ${reason}`];
  return { passed: 0, failed: 0, skipped: 1, skips, ms: 0, failures: [], output: "" };
}

function counts({ passed, failed, skipped }, word = "") {
  return `${passed}${word}` + (failed > 0 ? `, ${failed} FAILED` : "") +
    (skipped > 0 ? `, ${skipped} skipped` : "");
}

let lastTimes = { idle: 0, all: 0 };
/** The share of the time since the last call in which the processors were idle. */
function idleShare() {
  const times = cpus().map((cpu) => cpu.times);
  const idle = times.reduce((sum, { idle }) => sum + idle, 0);
  const all = times.flatMap(Object.values).reduce((sum, ms) => sum + ms, 0);
  const share = (idle - lastTimes.idle) / (all - lastTimes.all);
  lastTimes = { idle, all };
  return share;
}

const results = [];
const queue = [...jobs];
/** Removes a job from the queue: the first whose packages are installed, or else the first job. */
function nextJob() {
  const at = queue.findIndex(({ packages = [] }) => packages.every((one) => installed.has(one)));
  return queue.splice(Math.max(at, 0), 1)[0];
}
async function runNext() {
  const job = nextJob();
  const missing = await Promise.all((job.packages ?? []).map((one) => lacks.get(one)));
  const lack = runtimes.get(job.runtime)?.missing ?? missing.find((reason) => reason !== undefined);
  const result = { ...job, ...lack === undefined ? await job.run() : skipped(job, lack) };
  results.push(result);
  const { failed, ms } = result;
  const verdict = `${failed > 0 ? "FAIL" : "ok  "} ${job.suite} on ${job.runtime}`;
  console.log(`${verdict}: ${counts(result, " passed")} (${(ms / 1000).toFixed(1)} s)`);
  if (failed > 0 && !result.show) console.log(`\n${result.output}\n`);
}
const running = new Set();
function startJob() {
  if (queue.length === 0) return;
  const job = runNext().finally(() => running.delete(job));
  running.add(job);
}
const startSome = () => {
  while (queue.length > 0 && running.size < 3) startJob();
};
// Many suites mostly wait, so another one starts if a tenth of the processors' time is idle.
const watch = setInterval(() => {
  if (idleShare() > 0.1) startJob();
}, 2_000);
for (startSome(); running.size > 0; startSome()) await Promise.race(running);
clearInterval(watch);

// Tests of real processes and servers can fail because other suites take all processors. Up to two
// such tests of a whole run are repeated alone, once; more are a defect. Both results are printed.
const unstable = [];
const failures = results.filter(({ failed }) => failed > 0);
for (const result of failures.reduce((sum, { failed }) => sum + failed, 0) <= 2 ? failures : []) {
  const { suite, runtime, failed, files = [""], repeat } = result;
  if (!files.every((file) => file.endsWith(".process.test.ts"))) continue;
  if ((await repeat(files)).failed > 0) continue;
  unstable.push(...result.failures.map((failure) => `${suite} on ${runtime}: ${failure}`));
  Object.assign(result, { passed: result.passed + failed, failed: 0, failures: [] });
}

/** Prints a list under its heading, unless the list is empty. */
function list(heading, lines) {
  if (lines.length === 0) return;
  console.log(`\n${heading}:\n${lines.slice(0, 40).map((line) => `  ${line}`).join("\n")}`);
  if (lines.length > 40) console.log(`  and ${lines.length - 40} more`);
}
// The reason is in a skipped test's name; some runners put the groups before it.
const skips = results.flatMap(({ skips }) => skips).map((skip) => skip.split(" > ").at(-1));
list("Skipped", [...new Set(skips)]);

if (everything || options.only?.includes("coverage")) {
  // Not loaded above, because it needs a package that `setup` installs.
  const { coverage, WANTED } = await import("./lib/coverage.mjs");
  const { percent, low } = coverage(folder);
  console.log(`\nLine coverage of src/ on Bun: ${percent.toFixed(1)} % (at least ${WANTED} %)`);
  for (const { name, percent, missed } of low) {
    console.log(`  ${percent.toFixed(1).padStart(5)} %  ${name}  ${missed}`);
  }
  const failures = percent < WANTED ? [`${percent.toFixed(1)} % is less than ${WANTED} %`] : [];
  const failed = failures.length;
  const rest = { passed: 1 - failed, failed, skipped: 0, failures };
  results.push({ suite: "coverage", runtime: "bun", ...rest });
}
for (const { show, printed } of results) if (show) console.log(`\n${printed.trim()}`);
rmSync(folder, { recursive: true, force: true });
list("Failed once, and passed when repeated alone", unstable);
// The failures are printed last, because the start of a log may be cut.
list(
  "Failed",
  results.flatMap(({ suite, runtime, failures }) =>
    failures.map((failure) => `${suite} on ${runtime}: ${failure}`)
  ),
);

const columns = [...NAMES, "host"];
const cell = (suite, runtime) => {
  const result = results.find((one) => one.suite === suite && one.runtime === runtime);
  return result === undefined ? "-" : counts(result);
};
const suites = [...new Set([...jobs, ...results].map(({ suite }) => suite))];
const rows = suites.map((suite) => [suite, ...columns.map((column) => cell(suite, column))]);
console.log(`\n${table(["passed", ...columns], rows)}`);
for (const [name, { version, missing }] of runtimes) {
  console.log(`${name}: ${version ?? `skipped, ${missing}`}`);
}

const sum = (field) => results.reduce((total, result) => total + result[field], 0);
const passed = sum("passed");
// A run without any test is a failure.
const failed = sum("failed") + (passed + sum("failed") === 0 ? 1 : 0);
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
