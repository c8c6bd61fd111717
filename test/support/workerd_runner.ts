/**
 * `bun:test` for workerd, which has no test runner: the part of it that the suite uses. Test files
 * register here, and `runAll` runs what they registered, one test after the other. A name that is
 * missing here fails the bundle, and a run without tests fails.
 *
 * @module
 */

type Step = () => unknown;

interface Case {
  readonly name: string;
  readonly run: Step | undefined;
}

interface Suite {
  readonly name: string;
  readonly parent: Suite | undefined;
  readonly children: (Suite | Case)[];
  readonly hooks: Record<"beforeAll" | "afterAll" | "beforeEach" | "afterEach", Step[]>;
}

/** What one run counted. */
export interface WorkerdReport {
  passed: number;
  failed: number;
  skipped: number;
  /** The titles of the skipped tests. */
  readonly skips: string[];
  /** One entry per failed test or hook: its title and its stack. */
  readonly failures: string[];
}

function newSuite(name: string, parent?: Suite): Suite {
  return {
    name,
    parent,
    children: [],
    hooks: { beforeAll: [], afterAll: [], beforeEach: [], afterEach: [] },
  };
}

const root = newSuite("");
let current = root;

function register(name: string, run: Step): void {
  current.children.push({ name, run });
}

function registerSkipped(name: string, _run?: Step): void {
  current.children.push({ name, run: undefined });
}

/** Registers a test; `test.skip` one that does not run. */
export const test: typeof register & { readonly skip: typeof registerSkipped } = Object.assign(
  register,
  { skip: registerSkipped },
);
export const it: typeof test = test;

/** Registers a group of tests. */
export function describe(name: string, body: () => void): void {
  const suite = newSuite(name, current);
  current.children.push(suite);
  current = suite;
  try {
    body();
  } finally {
    current = suite.parent ?? root;
  }
}

export function beforeAll(step: Step): void {
  current.hooks.beforeAll.push(step);
}
export function afterAll(step: Step): void {
  current.hooks.afterAll.push(step);
}
export function beforeEach(step: Step): void {
  current.hooks.beforeEach.push(step);
}
export function afterEach(step: Step): void {
  current.hooks.afterEach.push(step);
}

function lineage(suite: Suite): readonly Suite[] {
  return suite.parent === undefined ? [suite] : [...lineage(suite.parent), suite];
}

function title(suite: Suite, last: string): string {
  return [...lineage(suite).map(({ name }) => name), last].filter((name) => name !== "").join(
    " > ",
  );
}

async function runCase(run: Step, suites: readonly Suite[]): Promise<void> {
  try {
    for (const { hooks } of suites) for (const hook of hooks.beforeEach) await hook();
    await run();
  } finally {
    for (const { hooks } of suites.toReversed()) for (const hook of hooks.afterEach) await hook();
  }
}

/** Runs every registered test. */
export async function runAll(): Promise<WorkerdReport> {
  const report: WorkerdReport = { passed: 0, failed: 0, skipped: 0, skips: [], failures: [] };

  function fail(what: string, error: unknown): void {
    report.failed++;
    report.failures.push(
      `${what}\n${error instanceof Error ? error.stack ?? error.message : String(error)}`,
    );
  }

  async function runSuite(suite: Suite): Promise<void> {
    try {
      for (const hook of suite.hooks.beforeAll) await hook();
    } catch (error) {
      // Its tests would run without what they need: the suite counts as one failure.
      fail(title(suite, "beforeAll"), error);
      return;
    }
    for (const child of suite.children) {
      if ("children" in child) await runSuite(child);
      else if (child.run === undefined) {
        report.skipped++;
        report.skips.push(title(suite, child.name));
      } else {
        try {
          await runCase(child.run, lineage(suite));
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
  if (report.passed + report.failed + report.skipped === 0) {
    fail("the suite", new Error("Cannot pass: no test was registered"));
  }
  return report;
}
