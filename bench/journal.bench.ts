/**
 * The cost of a journal: the time that it adds to a call, measured in turns with the same dispatch
 * without it; then the time to write and to verify 1,000,000 records.
 */

import { ToolDispatcher, ToolRegistry } from "../mod.ts";
import { journal, type JournalSink, verifyJournal } from "../src/adapters/journal/mod.ts";

const ROUNDS = 40;
const CALLS = 2_000;
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

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
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
  await kept.flush();
}
await kept.close();
const added = median(within) - median(without);
console.log(
  `a call without a journal ${median(without).toFixed(2)} µs, with one ${
    median(within).toFixed(2)
  } µs: ${added.toFixed(2)} µs more (aim: 1)`,
);

const lines: string[] = [];
const inMemory: JournalSink = {
  append: (added) => Promise.resolve(void lines.push(...added)),
  async *pages() {},
};
const written = journal({ sink: inMemory, onFailure: "refuse-calls" });
const dispatcher = new ToolDispatcher(registry, { layers: [written] });
const began = cpuSeconds();
for (let number = 1; number <= RECORDS; number++) {
  await dispatcher.dispatch(call, context);
  if (number % 4_096 === 0) await written.flush();
}
await written.close();
const seconds = cpuSeconds() - began;
console.log(`${RECORDS} calls ran and were recorded in ${seconds.toFixed(1)} s`);

/** The lines in chunks, which are made before the measured time. */
const chunks: Uint8Array[] = [];
for (let at = 0; at < lines.length; at += 2_048) {
  chunks.push(Buffer.from(`${lines.slice(at, at + 2_048).join("\n")}\n`));
}
const megabytes = chunks.reduce((sum, { length }) => sum + length, 0) / 1e6;
async function* all(): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield await Promise.resolve(chunk);
}
const start = cpuSeconds();
const verdict = await verifyJournal(all());
const speed = megabytes / (cpuSeconds() - start);
console.log(
  `${verdict.records} records, ${megabytes.toFixed(0)} MB, verified (${verdict.ok}): ${
    speed.toFixed(0)
  } MB/s (aim: 200)`,
);
