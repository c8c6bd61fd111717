// Reads the runners' reports: counts the tests without their groups, and collects the failures with
// their reasons.

import { existsSync, readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { ROOT } from "./paths.mjs";

const CASE = /<testcase\s((?:[\w-]+="[^"]*"\s*)*)(?:\/>|>([\s\S]*?)<\/testcase>)/g;
const ENTITIES = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function unescape(text) {
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => ENTITIES[name]);
}

/** Counts a JUnit file. A missing file counts as zero tests. */
export function countJunit(file) {
  const xml = existsSync(file) ? readFileSync(file, "utf8") : "";
  const cases = [...xml.matchAll(CASE)].map(([, attributes, body = ""]) => ({
    // Node escapes twice.
    name: unescape(unescape(/(?:^|\s)name="([^"]*)"/.exec(attributes)?.[1] ?? "")),
    state: /<(failure|error)\b/.test(body)
      ? "failed"
      : body.includes("<skipped")
      ? "skipped"
      : "passed",
  }));
  // Deno reports a group as one more case, named like the front of the names in it.
  const groups = new Set(
    cases.flatMap(({ name }) =>
      name.split(" > ").slice(0, -1).map((_, at, parts) => parts.slice(0, at + 1).join(" > "))
    ),
  );
  const count = { passed: 0, failed: 0, skipped: 0, skips: [] };
  for (const { name, state } of cases) {
    if (groups.has(name)) continue;
    // Node reports a file that registered no test as one test that passed.
    if (state === "passed" && /\.test\.(ts|mjs)$/.test(name)) continue;
    count[state]++;
    if (state === "skipped") count.skips.push(name);
  }
  return count;
}

/** Counts the report of `test/support/run_workerd.ts`: its last line that starts with `REPORT`. */
export function countWorkerd(output) {
  const line = output.split("\n").findLast((text) => text.startsWith("REPORT "));
  if (line === undefined) return { passed: 0, failed: 0, skipped: 0, skips: [] };
  const { passed, failed, skipped, skips } = JSON.parse(line.slice("REPORT ".length));
  return { passed, failed, skipped, skips };
}

/** The failures in what Bun prints: the name of a file, then per test what it printed and its line. */
function readBun(output) {
  const [tests] = output
    .replaceAll(
      /^# Unhandled error between tests\n-+\n([^]*?)\n-+$/gm,
      "$1\n(fail) outside of tests",
    )
    .replaceAll(/^(\(fail\) .*)\n( {2}\^ .*)$/gm, "$2\n$1")
    // The lines of tests are repeated at the end.
    .split(/^\d+ tests? (?:skipped|failed|todo):$/m);
  const failures = [];
  let file;
  let reason = [];
  for (const line of tests.split("\n")) {
    const [, header, verdict, name] =
      /^(?:(\S+\.test\.ts):|\((pass|skip|todo|fail)\) (.*?)(?: \[[\d.]+m?s\])?)$/.exec(line) ?? [];
    if (verdict === "fail") failures.push({ name, file, reason: reason.join("\n").trim() });
    file = header ?? file;
    if (header === undefined && verdict === undefined) reason.push(line);
    else reason = [];
  }
  return failures;
}

/** The sections of a text, each of which begins with a line that `head` matches. */
function sections(text, head) {
  const found = [];
  for (const line of text.split("\n")) {
    const match = head.exec(line);
    if (match !== null) found.push({ match, lines: [] });
    else found.at(-1)?.lines.push(line);
  }
  return found.map(({ match, lines }) => ({ match, reason: lines.join("\n").trim() }));
}

/** The other runners print the failures once more, after everything else. */
const READERS = {
  bun: readBun,
  deno: (output) =>
    sections(
      output.split(/^ (?:ERRORS|FAILURES) $/m)[1] ?? "",
      /^(.+) (?:=> \.\/|\(uncaught error\)$)/,
    )
      .map(({ match: [, name], reason }) => ({
        name: name.replaceAll(" ... ", " > "),
        file: /[\w@./-]+\.test\.ts:\d+/.exec(reason)?.[0],
        reason,
      })),
  node: (output) =>
    sections(output.split(/^✖ failing tests:$/m)[1] ?? "", /^test at (.+):\d+$/)
      .map(({ match: [, file], reason }) => {
        const [name, ...lines] = reason.split("\n");
        return { name: name.replaceAll(/^✖ | \([\d.]+ms\)$/g, ""), file, reason: lines.join("\n") };
      }),
  workerd: (output) =>
    sections(output.split(/^REPORT /m)[0], /^FAIL (.+)$/)
      .map(({ match: [, name], reason }) => ({ name, reason })),
};

/** A test that failed, in one line. */
function title({ name, file }) {
  return file === undefined ? name : `${name} (${relative(ROOT, resolve(ROOT, file))})`;
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
 * @returns {{ passed: number, failed: number, skipped: number, skips: string[], ms: number, failures: string[], output: string }}
 * The count, the milliseconds, `failures`: a line for each test that failed, and `output`:
 * those lines, then the reasons. A run that crashed, or in which no test ran, is a failure, too.
 */
export function judge(runtime, { code, stdout, stderr, output, ms }, count) {
  // Bun's own lines are apart from what tests print on the standard output.
  const printed = runtime === "bun" ? stderr : stdout;
  const failures = READERS[runtime](stripVTControlCharacters(printed));
  const ran = count.passed + count.failed + count.skipped;
  const isExplained = ran > 0 && failures.length >= Math.max(count.failed, code === 0 ? 0 : 1) &&
    // For a file that ended early Node reports only a failure.
    !failures.some(({ name }) => /\.test\.m?[jt]s$/.test(name));
  if (!isExplained) failures.push({ name: `exit code ${code}`, reason: output });
  return {
    ...count,
    failed: Math.max(count.failed, failures.length),
    ms,
    failures: failures.map(title),
    output: failures.length === 0 ? "" : describe(failures),
  };
}
