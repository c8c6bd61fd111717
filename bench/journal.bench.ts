/**
 * The cost of a journal: the time that it adds to a call, measured in turns with the same dispatch
 * without it; then the time to write 1,000,000 records to files, and to verify them. The first
 * argument is another number of records.
 */

import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolDispatcher, ToolRegistry } from "../mod.ts";
import {
  journal,
  type JournalSink,
  jsonLines,
  verifyJournal,
} from "../src/adapters/journal/mod.ts";

const ROUNDS = 400;
const CALLS = 500;
const RECORDS = Number(process.argv[2] ?? 1_000_000);

const registry = new ToolRegistry({
  tools: [{
    name: "create_issue",
    description: "Creates an issue.",
    parameters: {
      type: "object",
      properties: { repo: { type: "string" }, title: { type: "string" }, body: { type: "string" } },
      required: ["repo", "title"],
    },
    execute: ({ repo }: { readonly repo: string }) => ({
      number: 1347,
      url: `https://git/${repo}`,
    }),
  }],
});
const args = JSON.stringify({
  repo: "octocat/hello-world",
  title: "The parser loses the last line",
  body: "When the file does not end with a newline, its last line is lost.",
});
const call = { name: "create_issue", arguments: args, callId: "c1" };
const context = { principal: "ann", sessionId: "s1" };

/** Takes the lines, and does nothing: the benchmark measures the call, not the disk. */
const nowhere: JournalSink = {
  append: () => Promise.resolve(),
  async *pages() {},
};

async function run(dispatcher: ToolDispatcher): Promise<number> {
  const began = cpuSeconds();
  for (let turn = 0; turn < CALLS; turn++) await dispatcher.dispatch(call, context);
  return (cpuSeconds() - began) * 1e6 / CALLS;
}

/** The processor time of this process, which does not depend on other programs. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** The value above a part of the values: 0 for the least one, 0.5 for the median. */
function quantile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? NaN;
}

const plain = new ToolDispatcher(registry);
const kept = journal({ sink: nowhere, onFailure: "drop-and-count", flushMs: 60_000 });
const recorded = new ToolDispatcher(registry, { layers: [kept] });
const without: number[] = [];
const within: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  without.push(await run(plain));
  within.push(await run(recorded));
  // The records are written between the measurements.
  if (round % 4 === 3) await kept.flush();
}
await kept.close();
for (const [name, part] of [["best", 0], ["median", 0.5]] as const) {
  const [base, more] = [quantile(without, part), quantile(within, part)];
  console.log(
    `${name} of ${ROUNDS} rounds: a call without a journal ${base.toFixed(2)} µs, with one ${
      more.toFixed(2)
    } µs: ${(more - base).toFixed(2)} µs more (aim: 1)`,
  );
}

const folder = mkdtempSync(join(tmpdir(), "plue-journal-"));
try {
  const sink = jsonLines(join(folder, "calls.jsonl"));
  const written = journal({ sink, onFailure: "refuse-calls" });
  const dispatcher = new ToolDispatcher(registry, { layers: [written] });
  let [processor, time] = [cpuSeconds(), performance.now()];
  for (let number = 1; number <= RECORDS; number++) {
    await dispatcher.dispatch(call, context);
    if (number % 4_096 === 0) await written.flush();
  }
  await written.close();
  const files = readdirSync(folder).filter((name) => !name.endsWith(".lock"));
  const megabytes = files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0) / 1e6;
  const passed = (): string =>
    `${(cpuSeconds() - processor).toFixed(1)} s of the processor, ${
      ((performance.now() - time) / 1_000).toFixed(1)
    } s in all`;
  console.log(
    `${RECORDS} calls ran and were recorded in ${files.length} files of together ${
      megabytes.toFixed(0)
    } MB: ${passed()}`,
  );

  for (let round = 0; round < 3; round++) {
    [processor, time] = [cpuSeconds(), performance.now()];
    const { ok, records, head } = await verifyJournal(sink.pages("oldest first"));
    const speed = megabytes / (cpuSeconds() - processor);
    console.log(
      `${records} records verified (${ok}, to number ${head.sequence}): ${passed()}, ${
        speed.toFixed(0)
      } MB/s of the processor's time (aim: 200)`,
    );
  }
} finally {
  rmSync(folder, { recursive: true });
}
