/** MCP's own conformance suite, against the conformance tools on all four runtimes. */

import { afterAll, beforeAll, describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { RUNTIME_NAMES } from "../../../scripts/lib/serve_app.mjs";
import { ROOT, type RunningServer, startServer } from "../servers.ts";

const SUITE = join(
  import.meta.dirname,
  "../node_modules/@modelcontextprotocol/conformance/dist/index.js",
);

/** The scenarios that must pass, whatever the baseline says. */
const MUST =
  /^(tools-(?!call-(sampling|elicitation))|ping$|server-initialize$|http-|dns-|json-schema|prompts-|resources-(?!(un)?subscribe)|completion-|caching$)/;

/** How long the lists of what plue does not do may be. Lower them when they shrink. */
const BASELINES = {
  "2026-07-28": 12,
  "2025-11-25": 4,
  "2025-11-25.workerd": 6,
} as const;
type Baseline = keyof typeof BASELINES;
const REVISIONS = ["2026-07-28", "2025-11-25"] as const;

const fileOf = (baseline: Baseline): string =>
  join(import.meta.dirname, "../baseline", `${baseline}.yaml`);
const entriesOf = (baseline: Baseline): readonly string[] =>
  [...readFileSync(fileOf(baseline), "utf8").matchAll(/^ {2}- (\S+)$/gm)]
    .map(([, name = ""]) => name);

interface Verdict {
  readonly code: number;
  readonly output: string;
}

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
  for (const [baseline, most] of Object.entries(BASELINES) as [Baseline, number][]) {
    it(`only shrinks for ${baseline}, and has nothing in it that must pass`, () => {
      const entries = entriesOf(baseline);
      assertEquals(entries.length, most);
      assertEquals(entries.filter((name) => MUST.test(name)), []);
    });
  }
});

for (const runtime of RUNTIME_NAMES) {
  describe(`MCP's conformance suite on ${runtime}`, () => {
    let server: RunningServer;
    beforeAll(async () => {
      server = await startServer(
        runtime,
        join(ROOT, "examples/conformance/worker.ts"),
      );
    });
    afterAll(() => server.stop());
    for (const revision of REVISIONS) {
      it(`passes for ${revision}`, async () => {
        const baseline = runtime === "workerd" && revision === "2025-11-25"
          ? "2025-11-25.workerd"
          : revision;
        const { code, output } = await run(server.url, revision, baseline);
        assertEquals(code, 0, output.slice(output.indexOf("=== SUMMARY ===")));
        assertStringIncludes(output, "✓ tools-list");
        // The pending ones are not scored, and must pass here all the same.
        const failed = [...output.matchAll(/^✗ (\S+):/gm)].map((
          [, name = ""],
        ) => name);
        assertEquals(failed.filter((name) => MUST.test(name)), []);
      });
    }
  });
}
