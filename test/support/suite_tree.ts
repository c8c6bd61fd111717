/**
 * `bun:test` for the other runtimes: test files register their tests here, and `runAll` runs them.
 * Node's own runner follows each promise, which doubles the time of some suites, and workerd has
 * none. Exports only the names of `bun:test` that all tests use; a test file that imports another
 * name fails.
 */

/** A test's body, or a hook's. */
export type Step = () => unknown;

/** A test; without `run` it is skipped. */
export type Case = { readonly name: string; readonly run: Step | undefined };

/** A group of tests. */
export interface Suite {
  readonly name: string;
  readonly parent: Suite | undefined;
  readonly children: (Suite | Case)[];
  readonly hooks: Record<"beforeAll" | "afterAll" | "beforeEach" | "afterEach", Step[]>;
}

/** The exports of `bun:test` that the suite uses. */
export interface TestFunctions {
  readonly test: ((name: string, run: Step) => void) & {
    readonly skip: (name: string, run?: Step) => void;
  };
  readonly describe: (name: string, body: () => void) => void;
  readonly beforeAll: (step: Step) => void;
  readonly afterAll: (step: Step) => void;
  readonly beforeEach: (step: Step) => void;
  readonly afterEach: (step: Step) => void;
}

function newSuite(name: string, parent?: Suite): Suite {
  return {
    name,
    parent,
    children: [],
    hooks: { beforeAll: [], afterAll: [], beforeEach: [], afterEach: [] },
  };
}

/** The root suite, which contains all others. */
export const root: Suite = newSuite("");

/** True if `child` is a group. */
export function isSuite(child: Suite | Case): child is Suite {
  return "children" in child;
}

/** The groups around a test of `suite`, from the outermost. */
export function lineage(suite: Suite): readonly Suite[] {
  return suite.parent === undefined ? [suite] : [...lineage(suite.parent), suite];
}

/**
 * Makes the functions with which test files register.
 *
 * @param onTop Called with each top-level test and each finished top-level group.
 */
export function testFunctions(onTop: (child: Suite | Case) => void = () => {}): TestFunctions {
  let current = root;

  function add(child: Case): void {
    current.children.push(child);
    if (current === root) onTop(child);
  }

  function describe(name: string, body: () => void): void {
    const suite = newSuite(name, current);
    current.children.push(suite);
    current = suite;
    try {
      body();
    } finally {
      current = suite.parent ?? root;
    }
    if (current === root) onTop(suite);
  }

  return {
    test: Object.assign((name: string, run: Step) => add({ name, run }), {
      skip: (name: string) => add({ name, run: undefined }),
    }),
    describe,
    beforeAll: (step) => void current.hooks.beforeAll.push(step),
    afterAll: (step) => void current.hooks.afterAll.push(step),
    beforeEach: (step) => void current.hooks.beforeEach.push(step),
    afterEach: (step) => void current.hooks.afterEach.push(step),
  };
}

/** The limit of a test, in milliseconds: only a hanging test reaches it. */
const TEST_LIMIT_MS = 600_000;
// Tests replace the global timers.
const { setTimeout, clearTimeout } = globalThis;

async function runWithinLimit(run: Step): Promise<void> {
  const late = Promise.withResolvers<never>();
  const reason = new Error(`The test did not end within ${TEST_LIMIT_MS} ms`);
  const timer = setTimeout(() => late.reject(reason), TEST_LIMIT_MS);
  try {
    await Promise.race([run(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Runs one test between the hooks of the groups around it. */
export async function runCase(run: Step, suite: Suite): Promise<void> {
  const suites = lineage(suite);
  try {
    for (const { hooks } of suites) for (const hook of hooks.beforeEach) await hook();
    await runWithinLimit(run);
  } finally {
    for (const { hooks } of suites.toReversed()) for (const hook of hooks.afterEach) await hook();
  }
}

/** The counts of one run. */
export interface Report {
  passed: number;
  failed: number;
  skipped: number;
  /** The titles of the skipped tests. */
  readonly skips: string[];
  /** The failed tests, hooks and files. `file` is missing where all files are in one bundle. */
  readonly failures: { readonly name: string; readonly reason: string; readonly file?: string }[];
}

/** A report without results. */
export function emptyReport(): Report {
  return { passed: 0, failed: 0, skipped: 0, skips: [], failures: [] };
}

export function addFailure(report: Report, name: string, error: unknown, file?: string): void {
  report.failed++;
  const reason = error instanceof Error ? error.stack ?? error.message : String(error);
  report.failures.push({ name, reason, ...(file !== undefined && { file }) });
}

function title(suite: Suite, last: string): string {
  return [...lineage(suite).slice(1).map(({ name }) => name), last].join(" > ");
}

/** Runs the tests that were registered since the last call, and adds their results to the report. */
export async function runAll(report: Report = emptyReport(), file?: string): Promise<Report> {
  const fail = (suite: Suite, name: string, error: unknown) =>
    addFailure(report, title(suite, name), error, file);

  async function runSuite(suite: Suite): Promise<void> {
    try {
      for (const hook of suite.hooks.beforeAll) await hook();
    } catch (error) {
      // The group's tests need this hook, so they do not run, and count as one failure.
      return fail(suite, "beforeAll", error);
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
          fail(suite, child.name, error);
        }
      }
    }
    try {
      for (const hook of suite.hooks.afterAll) await hook();
    } catch (error) {
      fail(suite, "afterAll", error);
    }
  }

  await runSuite(root);
  for (const list of [root.children, ...Object.values(root.hooks)]) list.length = 0;
  return report;
}
