// Reads the runners' reports: counts the tests without their groups, and collects the failures with
// their reasons.

import { existsSync, readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { ROOT } from "./paths.mjs";

const ATTRIBUTES = '((?:[\\w-]+="[^"]*"\\s*)*)';
const CASE = new RegExp(`<testcase\\s${ATTRIBUTES}(?:/>|>([^]*?)</testcase>)`, "g");
const FAILURE = new RegExp(
  `<(?:failure|error)\\s*${ATTRIBUTES}(?:/>|>([^]*?)</(?:failure|error)>)`,
);
const ENTITIES = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&", "#10": "\n" };

function unescape(text) {
  return text.replace(/&(lt|gt|quot|apos|amp|#10);/g, (_, name) => ENTITIES[name]);
}

/** The value of an attribute. Node escapes twice. */
function attribute(attributes, name) {
  const [, value = ""] = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes) ?? [];
  return unescape(unescape(value));
}

/** Counts a JUnit file, and lists its failures. A missing file counts as zero tests. */
export function countJunit(file) {
  const xml = existsSync(file) ? readFileSync(file, "utf8") : "";
  const cases = [...xml.matchAll(CASE)].map(([, attributes, body = ""]) => {
    const failure = FAILURE.exec(body);
    const reason = failure === null ? "" : stripVTControlCharacters(unescape(failure[2] ?? ""));
    return {
      name: attribute(attributes, "name"),
      file: /[\w@./-]+\.test\.ts:\d+/.exec(reason)?.[0] ?? attribute(attributes, "file"),
      reason: reason.trim(),
      state: failure !== null ? "failed" : body.includes("<skipped") ? "skipped" : "passed",
    };
  });
  // Deno reports a group as a further case. Its name is the beginning of the names of its tests.
  const groups = new Set(
    cases.flatMap(({ name }) =>
      name.split(" > ").slice(0, -1).map((_, at, parts) => parts.slice(0, at + 1).join(" > "))
    ),
  );
  const count = { passed: 0, failed: 0, skipped: 0, skips: [], failures: [] };
  for (const { name, file, reason, state } of cases) {
    // A group fails because a test of the group fails, or because its own hook fails.
    if (groups.has(name) && (state !== "failed" || /^\d+ test steps? failed/.test(reason))) {
      continue;
    }
    // Node reports a file that registered no test as one test that passed.
    if (state === "passed" && /\.test\.(ts|mjs)$/.test(name)) continue;
    count[state]++;
    if (state === "skipped") count.skips.push(name);
    if (state === "failed") count.failures.push({ name, file, reason });
  }
  return count;
}

/** The report of `test/support/run_workerd.ts`: its last line that starts with `REPORT`. */
export function countWorkerd(output) {
  const line = output.split("\n").findLast((text) => text.startsWith("REPORT "));
  if (line === undefined) return { passed: 0, failed: 0, skipped: 0, skips: [] };
  return JSON.parse(line.slice("REPORT ".length));
}

/** The failures that Node prints at the end. Its JUnit report lacks the failures of hooks. */
function failuresOfNode(stdout) {
  const [, list = ""] = stripVTControlCharacters(stdout).split(/^✖ failing tests:$/m);
  return list.split(/^test at /m).slice(1).map((section) => {
    const [place, title, ...lines] = section.split("\n");
    return {
      name: title.replaceAll(/^✖ | \([\d.]+ms\)$/g, ""),
      file: place.replace(/:\d+$/, ""),
      reason: lines.join("\n").trim(),
    };
  });
}

/** The path of the file of a test that failed, from the root of the project. */
function fileOf({ file = "" }) {
  return file === "" ? "" : relative(ROOT, resolve(ROOT, file.replace(/:\d+$/, "")));
}

/** A test that failed, in one line. */
function title({ name, file = "" }) {
  return file === "" ? name : `${name} (${relative(ROOT, resolve(ROOT, file))})`;
}

/** The failures by name, so that they are seen first, and then each with its reason. */
function describe(failures) {
  return [
    failures.map((failure) => `failed: ${title(failure)}`).join("\n"),
    ...failures.map((failure) => `--- ${title(failure)}\n${failure.reason}`),
  ].join("\n\n");
}

/**
 * Returns the result of one run.
 *
 * @param count What the runner's report counts.
 * @returns {{ passed: number, failed: number, skipped: number, skips: string[], ms: number, failures: string[], files: string[], output: string }}
 * The count, the milliseconds, `failures`: a line for each test that failed, `files`: the files of
 * these tests, and `output`: the lines, then the reasons. A run that crashed, or in which no test
 * ran, is a failure, too.
 */
export function judge(runtime, { code, stdout, output, ms }, { failures: listed = [], ...count }) {
  const failures = runtime === "node" ? failuresOfNode(stdout) : [...listed];
  const ran = count.passed + count.failed + count.skipped;
  const isExplained = ran > 0 && failures.length >= Math.max(count.failed, code === 0 ? 0 : 1) &&
    // For a file that ended early, Node reports only a failure.
    !failures.some(({ name }) => /\.test\.m?[jt]s$/.test(name));
  if (!isExplained) failures.push({ name: `exit code ${code}`, reason: output });
  return {
    ...count,
    failed: Math.max(count.failed, failures.length),
    ms,
    failures: failures.map(title),
    files: [...new Set(failures.map(fileOf))],
    output: failures.length === 0 ? "" : describe(failures),
  };
}
