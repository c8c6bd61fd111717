// Reads the runners' reports: counts the tests without their groups, and collects the failures with
// their reasons.

import { existsSync, readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { ROOT } from "./paths.mjs";

const CASE = /<testcase ([^>]*?)(?:\/>|>([^]*?)<\/testcase>)/g;
const FAILURE = /<(?:failure|error)[^>]*?(?:\/>|>([^]*?)<\/(?:failure|error)>)/;
const ENTITIES = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&", "#10": "\n" };

function unescape(text) {
  return text.replace(/&(lt|gt|quot|apos|amp|#10);/g, (_, name) => ENTITIES[name]);
}

function attribute(attributes, name) {
  return unescape(new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1] ?? "");
}

/** Counts a JUnit file of Bun, and lists its failures. A missing file counts as zero tests. */
export function countJunit(file) {
  const count = { passed: 0, failed: 0, skipped: 0, skips: [], failures: [] };
  const xml = existsSync(file) ? readFileSync(file, "utf8") : "";
  for (const [, attributes, body = ""] of xml.matchAll(CASE)) {
    const name = attribute(attributes, "name");
    const failure = FAILURE.exec(body);
    const isSkipped = failure === null && body.includes("<skipped");
    count[failure !== null ? "failed" : isSkipped ? "skipped" : "passed"]++;
    if (isSkipped) count.skips.push(name);
    if (failure === null) continue;
    const reason = stripVTControlCharacters(unescape(failure[1] ?? "")).trim();
    const file = `${attribute(attributes, "file")}:${attribute(attributes, "line")}`;
    count.failures.push({ name, file, reason });
  }
  return count;
}

/** Reads a `Report` of `test/support/suite_tree.ts`: the last line that starts with `REPORT`. */
export function readReport(output) {
  const line = output.split("\n").findLast((text) => text.startsWith("REPORT "));
  if (line === undefined) return { passed: 0, failed: 0, skipped: 0, skips: [], failures: [] };
  return JSON.parse(line.slice("REPORT ".length));
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
export function judge({ code, output, ms }, { failures: listed, ...count }) {
  const failures = [...listed];
  const ran = count.passed + count.failed + count.skipped;
  const isExplained = ran > 0 && failures.length >= Math.max(count.failed, code === 0 ? 0 : 1);
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
