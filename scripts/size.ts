/**
 * The bytes that each entry point adds to a bundle, minified and compressed, and its limit: `bun
 * scripts/size.ts`; with `--files` also by source file. Exits with 1 if a size is above its limit.
 *
 * @module
 */

import { bundle } from "./lib/bundle.ts";
import { table } from "./lib/table.mjs";

interface Entry {
  /** The name of the entry after "@plue/tools/", or what the bundle is. */
  readonly name: string;
  readonly file: string;
  /** The source of an entry that is not a file. */
  readonly text?: string;
  /** The limit in kilobytes (1,000 bytes) after gzip. Without a limit the size is only shown. */
  readonly limitKb?: number;
  /** True if the bundle may contain packages. */
  readonly packages?: boolean;
}

const ENTRIES: readonly Entry[] = [
  { name: "core", file: "src/core.ts", limitKb: 20 },
  { name: "the whole package", file: "mod.ts", limitKb: 61.65, packages: true },
  { name: "layers", file: "src/execute/layers/mod.ts" },
  { name: "search", file: "src/registry/search/mod.ts", limitKb: 7.15 },
  { name: "formats", file: "src/formats/mod.ts", limitKb: 68.96 },
  {
    name: "formats/anthropic",
    file: "src/formats/entries/anthropic.generated.ts",
    limitKb: 42.3,
  },
  { name: "openapi", file: "src/adapters/openapi/mod.ts", limitKb: 36.75 },
  { name: "hono", file: "src/adapters/hono/mod.ts", limitKb: 80.1, packages: true },
  { name: "mcp", file: "src/adapters/mcp/mod.ts", packages: true },
  { name: "finding", file: "src/finding/mod.ts", limitKb: 66.9 },
  { name: "calls", file: "src/adapters/calls/mod.ts", limitKb: 26.35, packages: true },
  { name: "queue", file: "src/adapters/queue/mod.ts", limitKb: 11.85 },
  { name: "frameworks", file: "src/adapters/frameworks/mod.ts", limitKb: 59.5 },
  {
    name: "toAiSdkTools alone",
    file: "to_ai_sdk_tools.ts",
    text: 'export { toAiSdkTools } from "./src/adapters/frameworks/mod.ts";',
    limitKb: 40.3,
  },
  { name: "telemetry", file: "src/adapters/telemetry/mod.ts" },
  { name: "resilience", file: "src/adapters/resilience/mod.ts", limitKb: 7.35 },
  { name: "journal", file: "src/adapters/journal/mod.ts", limitKb: 10.45, packages: true },
  { name: "replay", file: "src/adapters/journal/replay.ts", packages: true },
  { name: "rules", file: "src/adapters/rules/mod.ts", limitKb: 24.85 },
  { name: "credentials", file: "src/adapters/credentials/mod.ts", limitKb: 24.3, packages: true },
  { name: "code", file: "src/adapters/code/mod.ts", limitKb: 47.45, packages: true },
  { name: "pins", file: "src/adapters/pins/mod.ts" },
  { name: "policies", file: "src/adapters/policies/mod.ts" },
  { name: "explorer", file: "src/explorer/mod.ts", limitKb: 56.5 },
  { name: "ajv", file: "src/adapters/ajv/mod.ts", packages: true },
  { name: "smallest handler", file: "examples/edge/smallest.ts", limitKb: 47.45, packages: true },
];

const rows: string[][] = [];
const problems: string[] = [];
for (const { name, file, text, limitKb, packages: mayHavePackages } of ENTRIES) {
  const { minifiedKb, gzipKb, packages, files } = await bundle(file, text);
  const sizes = [minifiedKb, gzipKb].map((kb) => kb.toFixed(1));
  rows.push([name, ...sizes, `${limitKb ?? "-"}`, packages.join(" ") || "none"]);
  if (process.argv.includes("--files")) console.log(`${table([name, "minified bytes"], files)}\n`);
  if (limitKb !== undefined && gzipKb > limitKb) {
    problems.push(`${name} has ${gzipKb.toFixed(1)} kB, more than ${limitKb} kB`);
  }
  if (!mayHavePackages && packages.length > 0) {
    problems.push(`${name} must hold no package, and holds ${packages.join(", ")}`);
  }
}
console.log(`Size of a bundle (Bun.build ${Bun.version}, minified; kB = 1,000 bytes)`);
console.log(table(["entry", "minified", "gzip", "limit", "packages in it"], rows));
for (const problem of problems) console.log(`FAIL ${problem}`);
process.exitCode = problems.length > 0 ? 1 : 0;
