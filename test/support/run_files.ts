/**
 * Runs test files in this process, one after the other: `run_files.ts <file>...`. One process per
 * file would load all sources again. Prints a `Report` as JSON in a line that starts with `REPORT`.
 */

import process from "node:process";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { addFailure, emptyReport, runAll } from "./suite_tree.ts";

const report = emptyReport();
for (const file of process.argv.slice(2)) {
  try {
    await import(pathToFileURL(resolve(file)).href);
  } catch (error) {
    addFailure(report, "loads", error, file);
  }
  await runAll(report, file);
}
console.log(`\nREPORT ${JSON.stringify(report)}`);
// A test that hangs or fails may leave a server behind, which would keep this process alive.
if (report.failed > 0) process.exit(1);
