// `npm test` must fail when a suite crashes, and when no test ran.

import { assertEquals, assertGreater, assertMatch, assertStringIncludes } from "@std/assert";
import { afterAll, beforeAll, describe, it } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { runSuite } from "../../scripts/lib/run_suite.mjs";
import { planRuns } from "../../scripts/lib/suites.mjs";
import { maybe } from "../support/skip.ts";

const ROOT = join(import.meta.dirname, "../..");
const RUNTIMES = ["bun", "deno", "node", "workerd"] as const;
const TEST = ["scripts/test.mjs"];
const BENCH = ["scripts/run.mjs", "bench"];

const MIXED = `
  import { assertEquals } from "@std/assert";
  import { describe, it, test } from "bun:test";
  test("passes alone", () => console.log(["printed", "by a pass"].join(" ")));
  test.skip("is skipped alone", () => {});
  describe("group <a> & 'b'", () => {
    it("passes", () => {});
    it("fails", () => assertEquals(1, 2));
    it.skip("is skipped", () => {});
    describe("nested > group", () => {
      it("passes", async () => { await 1; });
      it("rejects", async () => { await 1; throw new TypeError("the reason"); });
    });
  });
`;

const BROKEN_HOOK = `
  import { afterAll, describe, it } from "bun:test";
  describe("a group", () => {
    afterAll(() => { throw new Error("in a hook"); });
    it("passes", () => {});
  });
  it("fails", () => { throw new Error("in a test"); });
`;

describe("runSuite()", () => {
  let folder = "";

  beforeAll(() => {
    mkdirSync(join(ROOT, "coverage"), { recursive: true });
    // The folder is inside the project, so that its packages and its import map are found.
    folder = mkdtempSync(join(ROOT, "coverage", "harness-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  for (const runtime of RUNTIMES) {
    const test = maybe(Bun.which(runtime) !== null, `${runtime} is not here`);
    const run = (name: string, source: string) => {
      const file = join(folder, name);
      writeFileSync(file, source);
      return runSuite({ runtime, files: [relative(ROOT, file)] });
    };

    test(`counts tests, not groups, on ${runtime}, and shows only failures with their reasons`, async () => {
      const { failures, output, ...counts } = await run("mixed.test.ts", MIXED);
      assertEquals([counts.passed, counts.failed, counts.skipped], [3, 2, 2]);
      assertEquals(counts.skips.length, 2);
      const lines = output.split("\n");
      assertEquals(lines.slice(0, 3), [...failures.map((failure) => `failed: ${failure}`), ""]);
      assertMatch(lines[0] ?? "", /\bfails\b/);
      assertMatch(lines[1] ?? "", /\brejects\b/);
      // The stacks of workerd name its bundle only.
      for (const line of runtime === "workerd" ? [] : lines.slice(0, 2)) {
        assertMatch(line, / \(coverage\/harness-\w+\/mixed\.test\.ts/);
      }
      assertStringIncludes(output, "Values are not equal");
      assertStringIncludes(output, "TypeError: the reason");
      assertEquals(output.includes("printed by a pass"), false, output);
    });

    test(`shows on ${runtime} an error outside of tests and the failed tests`, async () => {
      const { output } = await run("hook.test.ts", BROKEN_HOOK);
      for (const reason of ["in a test", "in a hook"]) assertStringIncludes(output, reason);
    });

    test(`fails on ${runtime} when no test was registered`, async () => {
      const { passed, failed } = await run("empty.test.ts", "export {};");
      assertEquals({ passed, failed }, { passed: 0, failed: 1 });
    });

    test(`fails on ${runtime} when a file throws while it is loaded`, async () => {
      const { failed, output } = await run(
        "throws.test.ts",
        'import { test } from "bun:test"; test("x", () => {}); throw new Error("too early");',
      );
      assertGreater(failed, 0);
      assertStringIncludes(output, "too early");
    });

    test(`fails on ${runtime} when a file cannot be resolved`, async () => {
      const { failed } = await run("unresolved.test.ts", 'import "./not_there.ts";');
      assertGreater(failed, 0);
    });
  }
});

describe("planRuns()", () => {
  it("runs no test of processes in workerd, and no test of Bun elsewhere", () => {
    const runs = planRuns();
    const misplaced = runs.flatMap(({ suite, runtime, files }) =>
      files.filter((file) =>
        (file.endsWith(".process.test.ts") && runtime === "workerd") ||
        (file.endsWith(".node.test.ts") && runtime === "workerd" && !suite.includes("Node")) ||
        (file.endsWith(".bun.test.ts") && runtime !== "bun")
      )
    );
    assertEquals(misplaced, []);
  });

  it("runs every test file somewhere", () => {
    const planned = new Set(planRuns().flatMap(({ files }) => files));
    const all = [...new Bun.Glob("{test,examples,src,bench}/**/*.test.ts").scanSync(ROOT)]
      .filter((file) => !file.includes("node_modules"));
    assertEquals(all.filter((file) => !planned.has(file)), []);
  });

  it("runs the unit tests on every runtime", () => {
    const runtimes = planRuns({ only: ["unit"] }).filter(({ suite }) => suite === "unit")
      .map(({ runtime }) => runtime);
    assertEquals(runtimes, [...RUNTIMES]);
  });
});

describe("the options of npm test and npm run bench", () => {
  const run = (...args: readonly string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, ...args], { cwd: ROOT });
    return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  };
  const helps: readonly [script: readonly string[], values: readonly string[]][] = [
    [TEST, ["oracles, unit, ", "doc, types, ", ", coverage\n", "bun, deno, node, workerd, host"]],
    [BENCH, ["bun, node, deno"]],
  ];
  for (const [script, values] of helps) {
    for (const option of ["--help", "-h"]) {
      it(`${script.join(" ")} ${option} lists them and their values`, () => {
        const { exitCode, stdout, stderr } = run(...script, option);
        assertEquals([exitCode, stderr], [0, ""]);
        for (const part of values) assertStringIncludes(stdout, part);
      });
    }
  }

  const rejected: readonly [args: readonly string[], message: string][] = [
    [[...TEST, "--only", "unti"], 'Cannot read "--only": "unti" must be one of those below'],
    [[...TEST, "--only=unit,unti"], 'Cannot read "--only": "unti" must be one of those below'],
    [[...TEST, "--on", "nod"], 'Cannot read "--on": "nod" must be one of those below'],
    // The words of `parseArgs`.
    [[...TEST, "--only"], "Option '--only <value>' argument missing"],
    [[...TEST, "--onyl=unit"], "Unknown option '--onyl'"],
    [[...BENCH, "--on", "workerd"], 'Cannot read "--on": "workerd" must be one of those below'],
  ];
  for (const [args, message] of rejected) {
    it(`${args.join(" ")} is rejected, and the options are listed`, () => {
      const { exitCode, stdout, stderr } = run(...args);
      assertEquals([exitCode, stdout], [2, ""]);
      assertStringIncludes(stderr.split("\n")[0] ?? "", message);
      assertStringIncludes(stderr, "\n  --on");
    });
  }
});
