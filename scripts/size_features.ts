/**
 * The size of each feature in a bundle: the kilobytes after gzip that its files add, and how a
 * program can leave it out. The rows overlap where features compress together.
 * Usage: `bun scripts/size_features.ts`.
 *
 * @module
 */

import { bundle } from "./lib/bundle.ts";
import { table } from "./lib/table.mjs";

const ENTRIES = ["src/core.ts", "mod.ts", "examples/edge/smallest.ts"] as const;

const SMALL = "stays: under 1 kB";
const NEEDED = "stays: every call goes through it";
const SHAKEN = "shaken out where it is not imported";

interface Feature {
  readonly name: string;
  /** The files and folders of this feature alone. */
  readonly files: readonly string[];
  /** How a program leaves it out, or why it cannot. */
  readonly leaves: string;
}

const FEATURES: readonly Feature[] = [
  {
    name: "search index",
    files: ["src/registry/search/"],
    leaves: "is handed in to the core (@plue/tools/search)",
  },
  {
    name: "check of schemas",
    files: part("schema", "check_schema", "references", "keywords"),
    leaves: "is handed in to the core with the engine (SchemaEngine.admit)",
  },
  {
    name: "FunctionDefinition",
    files: ["src/select/function_definition.ts"],
    leaves: "stands beside the registry of the core",
  },
  { name: "streaming", files: ["src/execute/events.ts"], leaves: NEEDED },
  {
    name: "life of tools",
    files: ["src/registry/lifecycle.ts"],
    leaves: NEEDED,
  },
  { name: "idempotency keys", files: part("execute", "idempotency"), leaves: SMALL },
  { name: "filters", files: ["src/select/filters.ts"], leaves: SHAKEN },
  {
    name: "availability context",
    files: ["src/select/availability_context.ts"],
    leaves: "stays: part of every selection",
  },
  {
    name: "where a result is not JSON",
    files: ["src/tool/json.ts"],
    leaves: "stays: bounds arguments and results",
  },
  { name: "checks of options", files: ["src/execute/options.ts"], leaves: SMALL },
  { name: "metrics, percentiles", files: ["src/execute/metrics.ts"], leaves: SMALL },
  { name: "timeout, abort, grace", files: ["src/execute/deadline.ts"], leaves: NEEDED },
  { name: "change events", files: ["src/registry/changes.ts"], leaves: SMALL },
  { name: "hooks, approval, transactions", files: ["src/execute/port_steps.ts"], leaves: SMALL },
  { name: "questions", files: part("execute", "questions"), leaves: "stays: tools may ask" },
  { name: "names for the wire", files: ["src/select/wire_names.ts"], leaves: SMALL },
  { name: "limits and queue", files: ["src/execute/limits.ts"], leaves: SMALL },
  { name: "ToolsetBuilder", files: ["src/select/toolset_builder.ts"], leaves: SHAKEN },
  { name: "Standard Schema", files: ["src/schema/standard.ts"], leaves: SMALL },
  {
    name: "TypeBox: all of it",
    files: ["node_modules/typebox/"],
    leaves: "the core has an engine handed in",
  },
  {
    name: "TypeBox: formats",
    files: ["node_modules/typebox/build/format/"],
    leaves: "stays: verdicts are the same everywhere",
  },
  {
    name: "hardened engines",
    files: part("schema", "hardened", "patterns", "pattern_syntax", "repeated_parts"),
    leaves: "is left out with the registry of the core",
  },
  {
    name: "what is wrong with a value",
    files: part("schema", "explain", "issues"),
    leaves: "stays: a model acts on it",
  },
  {
    name: "schemas for the engine",
    files: part("schema", "normalize"),
    leaves: "stays: all drafts",
  },
  {
    name: "the HTTP handler",
    files: ["src/adapters/hono/", "src/adapters/http/"],
    leaves: "its parts are handed in, one by one",
  },
  { name: "the example's tools", files: ["examples/edge/tools.ts"], leaves: "an example" },
];

/** The files of a folder whose names begin so. */
function part(folder: string, ...starts: readonly string[]): readonly string[] {
  return starts.map((start) => `src/${folder}/${start}`);
}

const whole = await Promise.all(ENTRIES.map((entry) => bundle(entry)));
const rows: string[][] = [];
for (const { name, files, leaves } of FEATURES) {
  const cells: string[] = [];
  for (const [index, entry] of ENTRIES.entries()) {
    const weight = (whole[index]?.gzipKb ?? 0) - (await bundle(entry, files)).gzipKb;
    cells.push(weight < 0.05 ? "-" : weight.toFixed(1));
  }
  rows.push([name, ...cells, leaves]);
}
console.log(`kB after gzip that are gone without it (Bun.build ${Bun.version})`);
console.log(table(["feature", "core", "mod.ts", "worker", "how it leaves"], [
  ["all", ...whole.map(({ gzipKb }) => gzipKb.toFixed(1)), ""],
  ...rows,
]));
