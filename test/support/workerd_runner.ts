/** `bun:test` for workerd, which lacks a test runner: `runAll` runs the registered tests. */

import {
  isSuite,
  lineage,
  root,
  runCase,
  type Suite,
  type TestFunctions,
  testFunctions,
} from "./suite_tree.ts";

const functions = testFunctions();
export const test: TestFunctions["test"] = functions.test;
export const it: TestFunctions["test"] = functions.test;
export const describe: TestFunctions["describe"] = functions.describe;
export const beforeAll: TestFunctions["beforeAll"] = functions.beforeAll;
export const afterAll: TestFunctions["afterAll"] = functions.afterAll;
export const beforeEach: TestFunctions["beforeEach"] = functions.beforeEach;
export const afterEach: TestFunctions["afterEach"] = functions.afterEach;

/** The counts of one run. */
export interface WorkerdReport {
  passed: number;
  failed: number;
  skipped: number;
  /** The titles of the skipped tests. */
  readonly skips: string[];
  /** The failed tests and hooks. */
  readonly failures: { readonly name: string; readonly reason: string }[];
}

function title(suite: Suite, last: string): string {
  return [...lineage(suite).map(({ name }) => name), last].filter((name) => name !== "").join(
    " > ",
  );
}

/** Runs every registered test. */
export async function runAll(): Promise<WorkerdReport> {
  const report: WorkerdReport = { passed: 0, failed: 0, skipped: 0, skips: [], failures: [] };

  function fail(name: string, error: unknown): void {
    report.failed++;
    const reason = error instanceof Error ? error.stack ?? error.message : String(error);
    report.failures.push({ name, reason });
  }

  async function runSuite(suite: Suite): Promise<void> {
    try {
      for (const hook of suite.hooks.beforeAll) await hook();
    } catch (error) {
      // The group's tests need this hook, so they do not run, and count as one failure.
      fail(title(suite, "beforeAll"), error);
      return;
    }
    for (const child of suite.children) {
      if (isSuite(child)) await runSuite(child);
      else if (child.run === undefined) {
        report.skipped++;
        report.skips.push(title(suite, child.name));
      } else {
        try {
          await runCase(child.run, suite);
          report.passed++;
        } catch (error) {
          fail(title(suite, child.name), error);
        }
      }
    }
    try {
      for (const hook of suite.hooks.afterAll) await hook();
    } catch (error) {
      fail(title(suite, "afterAll"), error);
    }
  }

  await runSuite(root);
  return report;
}
