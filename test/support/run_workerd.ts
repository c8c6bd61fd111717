/**
 * Runs test files inside workerd: Bun bundles them, `workerd test` runs the bundle.
 * Usage: `bun test/support/run_workerd.ts [--no-eval] [--node-modules] <file>...`
 *
 * Prints a `Report` as JSON in a line that starts with `REPORT`. Exits with 1 if a test failed.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { meterModule } from "../../src/adapters/code/mod.ts";

const args = process.argv.slice(2);
const flags = [
  ...(args.includes("--no-eval") ? ['"disallow_eval_during_startup"'] : []),
  ...(args.includes("--node-modules") ? ['"nodejs_compat"'] : []),
];
const files = args.filter((arg) => !arg.startsWith("--"));
const support = import.meta.dirname;
const folder = mkdtempSync(join(tmpdir(), "plue-workerd-"));

/** From this date on, code may be generated while the worker starts, and `nodejs_compat` is off. */
const COMPATIBILITY_DATE = "2026-08-01";

const entry = `${
  // The imports are static, so that the test files run while the worker starts, as user code does.
  files.map((file) => `import ${JSON.stringify(resolve(file))};`).join("\n")}
import { runAll } from ${JSON.stringify(join(support, "suite_tree.ts"))};
export default {
  async test() {
    const report = await runAll();
    console.log("REPORT " + JSON.stringify(report));
    if (report.failed > 0) throw new Error(report.failed + " failed");
  },
};
`;

const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "suite", worker = (
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "quickjs.wasm", wasm = embed "quickjs.wasm"),
  ],
  compatibilityDate = "${COMPATIBILITY_DATE}",
  compatibilityFlags = [${flags}],
  bindings = [(name = "LOADER", workerLoader = ())],
))]);
`;

try {
  writeFileSync(join(folder, "entry.ts"), entry);
  writeFileSync(join(folder, "config.capnp"), config);
  const quickJs = readFileSync(resolve("node_modules/quickjs-wasi/quickjs.wasm"));
  writeFileSync(join(folder, "quickjs.wasm"), meterModule(quickJs));
  const built = await Bun.build({
    entrypoints: [join(folder, "entry.ts")],
    outdir: folder,
    naming: "worker.mjs",
    target: args.includes("--node-modules") ? "node" : "browser",
    conditions: ["workerd", "worker"],
    tsconfig: resolve("tsconfig.json"),
    // package.json declares that no file of plue has side effects; registering tests is one.
    ignoreDCEAnnotations: true,
    plugins: [{
      name: "bun:test for workerd",
      setup(build) {
        build.onResolve({ filter: /^bun:test$/ }, () => ({ path: join(support, "runner.ts") }));
      },
    }],
  });
  if (!built.success) throw new AggregateError(built.logs, "Cannot bundle the tests for workerd");
  const run = spawnSync(
    "workerd",
    // The binding of Worker Loaders is experimental.
    ["test", "--experimental", join(folder, "config.capnp")],
    { stdio: "inherit" },
  );
  if (run.error !== undefined) throw run.error;
  process.exitCode = run.status ?? 1;
} finally {
  rmSync(folder, { recursive: true });
}
