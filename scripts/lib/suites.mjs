// The suites of test files, and the runtimes on which each suite runs. The end of a file's name
// states the needs of its tests:
// - x.test.ts: nothing; it runs on every runtime of its suite
// - x.process.test.ts: files, processes or sockets; it does not run in workerd
// - x.node.test.ts: modules of Node; in workerd it runs in a suite of its own, with `nodejs_compat`
// - x.bun.test.ts: Bun

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./paths.mjs";

const ALL = ["bun", "deno", "node", "workerd"];
const WITH_FILES = ["bun", "deno", "node"];

/**
 * The suites, longest first. `folders`: by default, the folder with the suite's name. `coverage`:
 * the run on Bun counts towards the line coverage of `src/`. `files`: the pattern of the files, by
 * default all. `packages`: the folders with the packages that the suite needs.
 */
const SUITES = [
  // libplue and its hosts; the tests start the other runtimes themselves. There are two runs,
  // because a single run would last longer than all other suites together.
  { name: "native", on: ["bun"], coverage: true, files: /native\/(?!c_sanitizers|npm)/ },
  {
    ...{ name: "native, builds", folders: ["test/native"], on: ["bun"], coverage: true },
    files: /native\/(c_sanitizers|npm)/,
  },
  // Tools over NATS; the tests start servers of their own.
  { name: "nats", on: ["bun"], coverage: true },
  {
    // The differences between runtimes: connections, sockets, timers, streams, keys and processes.
    ...{ name: "nats, runtimes", folders: ["test/nats"], on: ["deno", "node"] },
    files: /(contracts|command|keys|per_call|served_calls|start)\.process/,
  },
  { name: "adapters", on: ALL, coverage: true },
  // The page of the explorer, in Chromium.
  { name: "explorer", on: ["node"], packages: ["test/explorer", "test/oauth"] },
  // The clients run on Node, the endpoints on all four.
  { name: "mcp", folders: ["test/mcp/endpoint"], on: ["node"], packages: ["test/mcp"] },
  {
    ...{ name: "mcp, import", folders: ["test/mcp/import"], on: WITH_FILES },
    ...{ packages: ["test/mcp"], coverage: true },
  },
  { name: "package", on: ["bun"], packages: ["test/package"] },
  { name: "cli", on: WITH_FILES, coverage: true },
  { name: "runtime", on: WITH_FILES, coverage: true },
  { name: "examples", on: WITH_FILES, coverage: true },
  // Other projects' code, with packages of its own. Some of them need Node 22 or later.
  { name: "oracles", on: ["node"], packages: ["test/oracles"] },
  { name: "unit", on: ALL, coverage: true },
  {
    // Only the tests that compile schemas, or check arguments with them.
    ...{ name: "unit, no eval", on: ["workerd"], noEval: true },
    folders: [
      ...["test/unit/schema", "test/unit/execute"],
      ...["test/adapters/typebox", "test/adapters/openapi"],
    ],
  },
  {
    ...{ name: "adapters, Node modules", folders: ["test/adapters"], on: ["workerd"] },
    ...{ files: /\.node\.test/, nodeModules: true },
  },
  // Credentials, with an authorization server of another project.
  { name: "oauth", on: WITH_FILES, packages: ["test/oauth"], coverage: true },
  // The HTTP handler with optional packages of other projects.
  { name: "edge", on: ["node"], packages: ["test/edge"] },
  { name: "architecture", on: ["bun"] },
];

/** The names that `planRuns` takes; "unit, no eval" is a part of "unit". */
export const SUITE_NAMES = [...new Set(SUITES.map(({ name }) => groupOf(name)))];

function groupOf(name) {
  return name.split(",")[0];
}

function filesBelow(folder) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((file) => file.endsWith(".test.ts") && !file.includes("node_modules/"))
    .sort();
}

function runsOn(file, runtime, nodeModules) {
  if (file.endsWith(".bun.test.ts")) return runtime === "bun";
  if (file.endsWith(".process.test.ts")) return runtime !== "workerd";
  if (file.endsWith(".node.test.ts")) return runtime !== "workerd" || nodeModules;
  return true;
}

/**
 * The runs of a test of everything.
 *
 * @param {{ only?: readonly string[], on?: readonly string[], match?: readonly string[] }} filter
 * `only`: names of suites; `on`: names of runtimes; `match`: parts of file names.
 * @returns One entry per suite and runtime that has files to run.
 */
export function planRuns({ only, on, match = [] } = {}) {
  return SUITES.filter(({ name }) => only === undefined || only.includes(groupOf(name)))
    .flatMap(({ name, folders = [`test/${name}`], on: runtimes, files: only = /./, ...rest }) => {
      const files = folders.flatMap(filesBelow).filter((file) => only.test(file))
        .filter((file) => match.length === 0 || match.some((part) => file.includes(part)));
      return runtimes.filter((runtime) => on === undefined || on.includes(runtime))
        .map((runtime) => ({
          suite: name,
          runtime,
          files: files.filter((file) => runsOn(file, runtime, rest.nodeModules)),
          ...rest,
        }));
    })
    .filter(({ files }) => files.length > 0);
}
