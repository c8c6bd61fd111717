// Counts the tests in the runners' reports: one count per test, none per group of tests.

import { existsSync, readFileSync } from "node:fs";

const CASE = /<testcase\s((?:[\w-]+="[^"]*"\s*)*)(?:\/>|>([\s\S]*?)<\/testcase>)/g;
const ENTITIES = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function unescape(text) {
  return text.replace(/&(lt|gt|quot|apos|amp);/g, (_, name) => ENTITIES[name]);
}

/** Counts a JUnit file. A file that is not there counts nothing. */
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
  const groups = new Set();
  for (const { name } of cases) {
    for (let at = name.indexOf(" > "); at !== -1; at = name.indexOf(" > ", at + 1)) {
      groups.add(name.slice(0, at));
    }
  }
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

/** A runner's output without the tests that passed. */
export function onlyFailures(output) {
  return output.split("\n")
    .filter((line) =>
      !/^\s*(\(pass\)|\(skip\)|✔|﹣|REPORT |Check )|\.\.\. (ok|ignored)\b/.test(line)
    )
    .join("\n").replace(/\n{3,}/g, "\n\n").trim();
}
