/**
 * The cost of the definitions of 1,000 tools for a request: an export by plue, and by an SDK for
 * the same tools. The first export must be at least five times as fast, and later exports must take
 * less than a microsecond.
 *
 * Neither the SDKs nor an export rewrite a schema for these targets. The cost of rewriting for
 * strict mode is shown below, without a limit.
 *
 * The rivals are in `test/oracles`; `npm test` installs them.
 */

import { do_not_optimize } from "mitata";
import { existsSync } from "node:fs";
import { exportTools } from "../src/formats/mod.ts";
import { makeTool, type Tool } from "../src/tool/mod.ts";

const COUNT = 1_000;
const ROUNDS = 25;
const AGAIN = 1_000_000;

interface ZodTool {
  readonly name: string;
  readonly description: string;
}

/** The exports of `test/oracles/rivals.ts`, whose packages may not be installed. */
interface Rivals {
  makeZodTools(count: number, strict?: boolean): readonly ZodTool[];
  jsonSchemaOf(tool: ZodTool): Record<string, unknown>;
  listWithAiSdk(tools: readonly ZodTool[]): Promise<readonly unknown[]>;
  listWithOpenAi(tools: readonly ZodTool[]): readonly unknown[];
  serveWithMcpSdk(tools: readonly ZodTool[]): Promise<() => Promise<readonly unknown[]>>;
}

const folder = new URL("../test/oracles/", import.meta.url);
if (!existsSync(new URL("node_modules/ai/package.json", folder))) {
  console.log("skipped: the packages of test/oracles are missing; npm test installs them");
  process.exit(0);
}
const rivals: Rivals = await import(new URL("rivals.ts", folder).href);

/** A comparison. `wanted` is the minimum speed of an export relative to the SDK. */
const PAIRS = [
  { target: "ai-sdk", rival: "AI SDK, asSchema", wanted: 5 },
  { target: "openai.chat", rival: "AI SDK, asSchema", wanted: 5 },
  { target: "mcp", rival: "MCP SDK, tools/list", wanted: 5 },
  { target: "openai.chat.strict", rival: "OpenAI SDK, zodFunction", wanted: 0 },
] as const;
const NANOSECONDS_WANTED = 1_000;

const times = new Map<string, number[]>();

/** Collects the garbage of the previous measurement. */
function collectGarbage(): void {
  if (typeof Bun !== "undefined") Bun.gc(true);
  else globalThis.gc?.();
}

async function measure(name: string, run: () => unknown): Promise<void> {
  collectGarbage();
  const start = performance.now();
  const list = await run();
  const milliseconds = performance.now() - start;
  do_not_optimize(list);
  times.set(name, [...times.get(name) ?? [], milliseconds]);
}

/** Returns new tools, because the export of a known tool is cached. */
function newTools(): readonly Tool[] {
  return Object.freeze(
    rivals.makeZodTools(COUNT).map((tool) =>
      makeTool({
        name: tool.name,
        description: tool.description,
        parameters: rivals.jsonSchemaOf(tool),
      })
    ),
  );
}

/** Measures in turns, so that a slow moment of the machine affects all of them. */
async function round(): Promise<void> {
  for (const { target } of PAIRS) {
    const tools = newTools();
    await measure(target, () => exportTools(tools, target).tools);
  }
  const forAiSdk = rivals.makeZodTools(COUNT);
  await measure("AI SDK, asSchema", () => rivals.listWithAiSdk(forAiSdk));
  const forOpenAi = rivals.makeZodTools(COUNT, true);
  await measure("OpenAI SDK, zodFunction", () => rivals.listWithOpenAi(forOpenAi));
  const list = await rivals.serveWithMcpSdk(rivals.makeZodTools(COUNT));
  await measure("MCP SDK, tools/list", list);
}

function median(name: string): number {
  const sorted = (times.get(name) ?? []).toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

await round();
times.clear();
for (let index = 0; index < ROUNDS; index++) await round();

let failed = false;
for (const { target, rival, wanted } of PAIRS) {
  const [own, other] = [median(target), median(rival)];
  const ratio = other / own;
  failed ||= !(ratio >= wanted);
  console.log(
    `first export to ${target.padEnd(20)}${own.toFixed(2).padStart(7)} ms   ` +
      `${rival.padEnd(24)}${other.toFixed(2).padStart(7)} ms   ${ratio.toFixed(1)} times` +
      (wanted === 0 ? "" : `, wanted ${wanted}`),
  );
}

const known = newTools();
exportTools(known, "openai.chat");
const start = performance.now();
for (let call = 0; call < AGAIN; call++) do_not_optimize(exportTools(known, "openai.chat"));
const again = (performance.now() - start) / AGAIN * 1e6;
failed ||= !(again < NANOSECONDS_WANTED);
console.log(
  `the same export again ${again.toFixed(0).padStart(5)} ns, wanted ${NANOSECONDS_WANTED}`,
);
if (failed) process.exitCode = 1;
