// The checks that are not test files. Each is one program, judged by its exit code.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { docExamples } from "./doc_examples.mjs";
import { ROOT } from "./paths.mjs";
import { capture } from "./process.mjs";

const TSC = join("node_modules", "typescript", "bin", "tsc");
const DENO_FOLDERS = ["mod.ts", "src", "test", "examples", "bench", "scripts"];

const present = () => DENO_FOLDERS.filter((name) => existsSync(join(ROOT, name)));

/**
 * The checks. `quick`: `npm run check` runs it. `show`: what it prints is shown at the end. `keep`:
 * the lines to show when it fails. `packages`: the folder with the packages that only it needs.
 */
export const CHECKS = [
  {
    name: "types",
    quick: true,
    steps() {
      docExamples();
      return ["tsconfig.json", "tsconfig.core.json"]
        .map((config) => [process.execPath, TSC, "-p", config]);
    },
  },
  {
    name: "format",
    quick: true,
    steps: () => [["deno", "fmt", "--check", ...present()]],
    // Show the files, not their lines.
    keep: /^(from |error: Found)/,
  },
  { name: "lint", quick: true, steps: () => [["deno", "lint", ...present()]] },
  {
    name: "publish",
    // Still rejects exports without written types. "types" checks the rest.
    steps: () => [[
      ...["deno", "publish", "--dry-run", "--allow-dirty", "--no-check"],
      "--node-modules-dir=manual",
    ]],
  },
  // True if the explorer's page equals its build.
  { name: "page", steps: () => [["bun", "scripts/build_explorer.ts", "--check"]] },
  // Whether the site can be built: links that lead nowhere, pages that load from other hosts.
  {
    name: "site",
    packages: "scripts/site",
    steps: () => [[process.execPath, "scripts/build_docs.mjs"]],
  },
  { name: "size", show: true, steps: () => [["bun", "scripts/size.ts"]] },
];

/** Runs one check. */
export async function runCheck({ steps, keep = /^/ }) {
  const count = { passed: 0, failed: 0, skipped: 0, skips: [], ms: 0, printed: "" };
  const failures = [];
  let shown = "";
  for (const [command, ...args] of steps()) {
    const { code, output, ms } = await capture(command, args);
    count.ms += ms;
    count.printed += output;
    if (code === 0) count.passed++;
    else {
      count.failed++;
      const lines = output.split("\n").filter((line) => keep.test(line)).join("\n");
      failures.push([command, ...args].join(" "));
      shown += `$ ${failures.at(-1)}\n${lines}\n`;
    }
  }
  return { ...count, failures, output: shown };
}
