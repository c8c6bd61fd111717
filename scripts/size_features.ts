/**
 * What each feature weighs in a bundle: the kilobytes after gzip that are gone when its files are
 * empty, and how a program gets rid of it, if it can. The rows overlap where features share words.
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
  /** The files and folders that are nothing else. */
  readonly files: readonly string[];
  /** How it leaves a program that does not want it, or why it stays. */
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
    files: ["check_schema", "references", "reference_bounds", "keywords", "value_rules"]
      .map((file) => `src/schema/${file}.ts`),
    leaves: "stays: what is not checked must not be registered",
  },
  {
    name: "FunctionDefinition",
    files: ["src/formats/function_definition.ts"],
    leaves: "stays: operations of the registry",
  },
  { name: "streaming", files: part("execute", "stream", "event_"), leaves: NEEDED },
  {
    name: "life of tools",
    files: part("registry", "lifecycle", "retirement"),
    leaves: NEEDED,
  },
  { name: "idempotency keys", files: part("execute", "idempotency"), leaves: SMALL },
  { name: "filters", files: part("select", "filters"), leaves: SHAKEN },
  {
    name: "availability context",
    files: part("select", "availability_"),
    leaves: "stays: part of every selection",
  },
  {
    name: "where a result is not JSON",
    files: ["src/tool/json_reader.ts"],
    leaves: "stays: bounds arguments and results",
  },
  {
    name: "where arguments are not JSON",
    files: ["src/execute/json_error.ts"],
    leaves: "stays: the model corrects itself by it",
  },
  { name: "checks of options", files: ["src/execute/settings.ts"], leaves: SMALL },
  {
    name: "metrics, percentiles",
    files: part("execute", "stats", "histogram"),
    leaves: SMALL,
  },
  { name: "timeout, abort, grace", files: ["src/execute/deadline.ts"], leaves: NEEDED },
  { name: "change events", files: part("registry", "change_"), leaves: SMALL },
  { name: "transactions", files: ["src/execute/transaction_steps.ts"], leaves: SMALL },
  { name: "names for the wire", files: ["src/formats/names.ts"], leaves: SMALL },
  { name: "hooks", files: ["src/execute/hook_steps.ts"], leaves: SMALL },
  { name: "truncation", files: ["src/execute/truncate.ts"], leaves: SMALL },
  { name: "limits and queue", files: part("execute", "gate", "turn_"), leaves: SMALL },
  { name: "ToolsetBuilder", files: ["src/select/toolset_builder.ts"], leaves: SHAKEN },
  { name: "Standard Schema", files: ["src/schema/standard.ts"], leaves: SMALL },
  { name: "explain, near ids", files: part("select", "explain", "near_"), leaves: SMALL },
  { name: "approval", files: ["src/execute/approval_step.ts"], leaves: SMALL },
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
    name: "what is wrong with a value",
    files: part("schema", "explain", "issues", "limit_issues", "union_issues"),
    leaves: "stays: a model acts on it",
  },
  {
    name: "schemas for the engine",
    files: part("schema", "normalize", "repeated_parts"),
    leaves: "stays: both drafts, and time that is bounded",
  },
  { name: "hono", files: ["node_modules/hono/"], leaves: "stays: the handler is one of Hono" },
  {
    name: "the HTTP handler",
    files: ["src/adapters/hono/"],
    leaves: "with what only it brings in",
  },
  {
    name: "Prometheus, traceparent",
    files: part("adapters/hono", "prometheus", "traceparent"),
    leaves: "could be handed in",
  },
  { name: "GET /tools' query", files: ["src/adapters/hono/query.ts"], leaves: SMALL },
  {
    name: "GET /events",
    files: part("adapters/hono", "routes/events", "listing_changes", "change_signal"),
    leaves: SMALL,
  },
  { name: "CORS", files: ["src/adapters/hono/cors.ts"], leaves: SMALL },
  { name: "rate limits", files: ["src/adapters/hono/rate_limit.ts"], leaves: SMALL },
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
