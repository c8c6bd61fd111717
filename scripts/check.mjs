// `npm run check`: the quick gate, in seconds: types, architecture, format, lint.

import { CHECKS, runCheck } from "./lib/checks.mjs";
import { runSuite } from "./lib/run_suite.mjs";
import { planRuns } from "./lib/suites.mjs";
import { setup } from "./setup.mjs";

setup();
const jobs = [
  ...CHECKS.filter(({ quick }) => quick).map((check) => ({
    name: check.name,
    run: () => runCheck(check),
  })),
  ...planRuns({ only: ["architecture"] }).map((run) => ({
    name: run.suite,
    run: () => runSuite(run),
  })),
];
let failed = 0;
for (const { name, run } of jobs) {
  const result = await run();
  failed += result.failed;
  console.log(
    `${result.failed > 0 ? "FAIL" : "ok  "} ${name} (${(result.ms / 1000).toFixed(1)} s)`,
  );
  if (result.failed > 0) console.log(`\n${result.output}\n`);
}
process.exitCode = failed > 0 ? 1 : 0;
