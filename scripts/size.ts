/**
 * The bytes that each entry point adds to a bundle, minified and compressed, and its limit: `bun
 * scripts/size.ts`; with `--files` also by source file. Exits with 1 if a size is above its limit.
 *
 * @module
 */

import { bundle } from "./lib/bundle.ts";
import { table } from "./lib/table.mjs";

interface Entry {
  readonly name: string;
  readonly file: string;
  /** The limit in kilobytes (1,000 bytes) after gzip. Without a limit the size is only shown. */
  readonly limitKb?: number;
  /** True if the bundle may contain packages. */
  readonly packages?: boolean;
}

const ENTRIES: readonly Entry[] = [
  { name: "@plue/tools/core", file: "src/core.ts", limitKb: 20 },
  { name: "@plue/tools", file: "mod.ts", limitKb: 61.55, packages: true },
  { name: "@plue/tools/layers", file: "src/execute/layers/mod.ts" },
  { name: "@plue/tools/search", file: "src/registry/search/mod.ts", limitKb: 7.15 },
  { name: "@plue/tools/formats", file: "src/formats/mod.ts", limitKb: 68.95 },
  { name: "@plue/tools/openapi", file: "src/adapters/openapi/mod.ts", limitKb: 36.75 },
  { name: "@plue/tools/hono", file: "src/adapters/hono/mod.ts", limitKb: 79.95, packages: true },
  { name: "@plue/tools/mcp", file: "src/adapters/mcp/mod.ts", packages: true },
  { name: "@plue/tools/finding", file: "src/finding/mod.ts", limitKb: 71.2 },
  { name: "@plue/tools/calls", file: "src/adapters/calls/mod.ts", limitKb: 26.55, packages: true },
  { name: "@plue/tools/queue", file: "src/adapters/queue/mod.ts", limitKb: 12.1 },
  { name: "@plue/tools/frameworks", file: "src/adapters/frameworks/mod.ts", limitKb: 60.6 },
  { name: "@plue/tools/telemetry", file: "src/adapters/telemetry/mod.ts" },
  { name: "@plue/tools/resilience", file: "src/adapters/resilience/mod.ts", limitKb: 7.35 },
  {
    name: "@plue/tools/journal",
    file: "src/adapters/journal/mod.ts",
    limitKb: 10.45,
    packages: true,
  },
  { name: "@plue/tools/replay", file: "src/adapters/journal/replay.ts", packages: true },
  { name: "@plue/tools/rules", file: "src/adapters/rules/mod.ts", limitKb: 24.85 },
  { name: "@plue/tools/code", file: "src/adapters/code/mod.ts", limitKb: 45.15, packages: true },
  { name: "@plue/tools/pins", file: "src/adapters/pins/mod.ts" },
  { name: "@plue/tools/policies", file: "src/adapters/policies/mod.ts" },
  { name: "@plue/tools/explorer", file: "src/explorer/mod.ts", limitKb: 43.55 },
  { name: "@plue/tools/ajv", file: "src/adapters/ajv/mod.ts", packages: true },
  {
    ...{ name: "examples/edge/smallest.ts", file: "examples/edge/smallest.ts" },
    ...{ limitKb: 47.35, packages: true },
  },
];

const rows: string[][] = [];
const problems: string[] = [];
for (const entry of ENTRIES) {
  const { minifiedKb: minified, gzipKb: compressed, packages, files } = await bundle(entry.file);
  rows.push([
    entry.name,
    minified.toFixed(1),
    compressed.toFixed(1),
    String(entry.limitKb ?? "-"),
    packages.join(" ") || "none",
  ]);
  if (process.argv.includes("--files")) {
    console.log(`${table([entry.name, "minified bytes"], files)}\n`);
  }
  if (entry.limitKb !== undefined && compressed > entry.limitKb) {
    problems.push(`${entry.name} has ${compressed.toFixed(1)} kB, more than ${entry.limitKb} kB`);
  }
  if (!entry.packages && packages.length > 0) {
    problems.push(`${entry.name} must hold no package, and holds ${packages.join(", ")}`);
  }
}
console.log(`Size of a bundle (Bun.build ${Bun.version}, minified; kB = 1,000 bytes)`);
console.log(table(["entry", "minified", "gzip", "limit", "packages in it"], rows));
for (const problem of problems) console.log(`FAIL ${problem}`);
process.exitCode = problems.length > 0 ? 1 : 0;
