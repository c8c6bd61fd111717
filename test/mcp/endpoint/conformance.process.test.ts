/** MCP's own conformance suite, against the conformance tools on all four runtimes. */

import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { NAMES as RUNTIME_NAMES } from "../../../scripts/lib/runtimes.mjs";
import { ROOT, serverOn } from "../servers.ts";

const SUITE = join(
  import.meta.dirname,
  "../node_modules/@modelcontextprotocol/conformance/dist/index.js",
);

/** The expected failures. Warnings of the suite count as failures. */
const BASELINES = ["2026-07-28", "2025-11-25", "2025-11-25.workerd"] as const;
type Baseline = (typeof BASELINES)[number];
const REVISIONS = ["2026-07-28", "2025-11-25"] as const;

/** The scenarios with sampling or roots, which plue does not support. Each fails in one check. */
const NEED_SAMPLING = [
  "server-stateless",
  "input-required-result-basic-sampling",
  "input-required-result-basic-list-roots",
  "input-required-result-multiple-input-requests",
  "input-required-result-capability-check",
];
const NEED_SAMPLING_BEFORE = ["tools-call-sampling"];

/** The scenarios that need a session. */
const NEED_SESSION = [
  "tools-call-elicitation",
  "elicitation-sep1034-defaults",
  "elicitation-sep1330-enums",
  "resources-subscribe",
  "resources-unsubscribe",
];

const fileOf = (baseline: Baseline): string =>
  join(import.meta.dirname, "../baseline", `${baseline}.yaml`);
const entriesOf = (baseline: Baseline): readonly string[] =>
  [...readFileSync(fileOf(baseline), "utf8").matchAll(/^ {2}- (\S+)$/gm)]
    .map(([, name = ""]) => name);

type Verdict = { readonly code: number; readonly output: string };

function run(url: URL, revision: string, baseline: Baseline): Promise<Verdict> {
  const args = [SUITE, "server", "--url", url.href, "--requirements", revision];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...args, "--expected-failures", fileOf(baseline)],
      { maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) =>
        resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    );
  });
}

describe("the baseline of the conformance suite", () => {
  it("contains sampling and roots, and on Workers the scenarios that need a session", () => {
    assertEquals(BASELINES.map(entriesOf), [
      NEED_SAMPLING,
      NEED_SAMPLING_BEFORE,
      [...NEED_SAMPLING_BEFORE, ...NEED_SESSION],
    ]);
  });
});

for (const runtime of RUNTIME_NAMES) {
  describe(`MCP's conformance suite on ${runtime}`, () => {
    const server = serverOn(runtime, join(ROOT, "test/support/conformance/worker.ts"));
    for (const revision of REVISIONS) {
      it(`passes for ${revision}`, async () => {
        const baseline = runtime === "workerd" && revision === "2025-11-25"
          ? "2025-11-25.workerd"
          : revision;
        const { code, output } = await run(server.url, revision, baseline);
        assertEquals(code, 0, output.slice(output.indexOf("=== SUMMARY ===")));
        assertStringIncludes(output, "✓ tools-list");
        // The suite does not score pending scenarios and extensions. They have to pass here.
        const failed = [...output.matchAll(/^✗ (\S+):/gm)].map(([, name = ""]) => name);
        assertEquals(failed, entriesOf(baseline));
        // A scenario in the baseline may fail only one check.
        const onlyOnce = [...output.matchAll(/^✗ (\S+): \d+ passed, 1 failed$/gm)];
        const names = new Set(onlyOnce.map(([, name = ""]) => name));
        const expected = revision === "2026-07-28" ? NEED_SAMPLING : NEED_SAMPLING_BEFORE;
        assertEquals(expected.filter((name) => !names.has(name)), []);
      });
    }
  });
}
