import type { Count } from "./reports.mjs";
import type { Run } from "./suites.mjs";

export function runSuite(
  run: Pick<Run, "runtime" | "files" | "noEval">,
  coverageDir?: string,
): Promise<Count & { readonly ms: number; readonly output: string }>;
