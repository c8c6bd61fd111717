import type { Verdict } from "./reports.mjs";
import type { Run } from "./suites.mjs";

export function runSuite(
  run: Pick<Run, "runtime" | "files" | "noEval" | "together">,
  coverageDir?: string,
): Promise<Verdict>;
