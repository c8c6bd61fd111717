/**
 * Calls over three workers, while workers are killed, stopped, drained and replaced by a new version,
 * and the server is killed. Says what became of every call, and fails if one was lost, done twice that
 * may not be, or never ended.
 *
 *     npm run cluster -- faults [calls] [seconds]
 */

import process from "node:process";
import { connect } from "@nats-io/transport-node";
import { ToolDispatcher, ToolRegistry, type ToolResult } from "@plue/tools";
import { remoteTools } from "@plue/tools/nats";
import { Cluster, type ClusterWorker, runtimes, SECRET } from "../../examples/cluster/cluster.ts";

const [, , calls = "10000", seconds = "120"] = process.argv;
const CALLS = Number(calls);
const SPAN_MS = Number(seconds) * 1_000;
/** What a call may take; a task may have to wait for two leases and the server. */
const TIMEOUT_MS = 60_000;
const TOOLS = ["once", "again", "task"] as const;

await using cluster = await Cluster.start();
const names = runtimes();
let version = 1;
let started = 0;
const start = (): Promise<ClusterWorker> =>
  cluster.startWorker(names[started++ % names.length] ?? "bun", version);
const workers: ClusterWorker[] = await Promise.all([start(), start(), start()]);
const connection = await connect({
  servers: cluster.url,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 100,
});
const registry = new ToolRegistry();
await remoteTools(connection, { registry, secret: SECRET });
const dispatcher = new ToolDispatcher(registry);
console.log(`${CALLS} calls in ${SPAN_MS / 1_000} s, over ${workers.map(({ name }) => name)}`);

const begun = performance.now();
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
function say(what: string): void {
  console.log(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(6)} s  ${what}`);
}

/** Puts another worker in the place of the one that has gone longest without a fault. */
async function replace(fault: string, end: (worker: ClusterWorker) => Promise<void>) {
  const worker = workers.shift();
  if (worker === undefined) return;
  say(`${fault} ${worker.name}`);
  const next = start();
  await end(worker);
  workers.push(await next);
}

const FAULTS: readonly (() => Promise<void>)[] = [
  () => replace("kill", (worker) => worker.kill()),
  async () => {
    const [worker] = workers;
    say(`stop ${worker?.name} for 8 s`);
    worker?.pause();
    await wait(8_000);
    worker?.resume();
  },
  () => replace("drain", (worker) => worker.drain()),
  async () => {
    version++;
    say(`deploy version ${version}`);
    for (let left = workers.length; left > 0; left--) {
      await replace("drain", (worker) => worker.drain());
    }
  },
  async () => {
    say("kill the server, for 2 s");
    await cluster.killServer();
    await wait(2_000);
    await cluster.startServer();
  },
];

async function causeFaults(): Promise<void> {
  // Each twice, and time for the last one to pass.
  const every = SPAN_MS / (FAULTS.length * 2 + 1);
  for (let at = 0; at < FAULTS.length * 2; at++) {
    await wait(Math.max(0, (at + 1) * every - (performance.now() - begun)));
    await FAULTS[at % FAULTS.length]?.();
  }
}

const outcomes = new Map<string, number>();
const tasks = new Map<string, string>();
let hung = 0;
let lost = 0;
let slowest = 0;

async function call(number: number): Promise<void> {
  const name = TOOLS[number % TOOLS.length] ?? "task";
  const callId = `${name} ${number}`;
  const at = performance.now();
  let result: ToolResult;
  do {
    result = await dispatcher.dispatch(
      { name, arguments: { number }, callId },
      { timeoutMs: TIMEOUT_MS, messageId: "faults" },
    );
    // The same call of a task is the same task: to repeat it is safe, whatever has happened.
    if (name !== "task" || result.ok || !result.error.retryable) break;
    await wait(200);
  } while (performance.now() - at < TIMEOUT_MS);
  const took = performance.now() - at;
  slowest = Math.max(slowest, took);
  if (took > TIMEOUT_MS + 5_000) hung++;
  const what = `${name}: ${result.ok ? "done" : result.error.code}`;
  outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
  if (name === "task") {
    if (result.ok) tasks.set(callId, JSON.stringify(result.content));
    else lost++;
  }
  if (result.ok && (result.content as { readonly square: number }).square !== number * number) {
    lost++;
  }
}

const faults = causeFaults();
const running: Promise<void>[] = [];
for (let number = 0; number < CALLS; number++) {
  const due = number / CALLS * SPAN_MS - (performance.now() - begun);
  if (due > 1) await wait(due);
  running.push(call(number));
}
await faults;
await Promise.all(running);
const endedIn = performance.now() - begun;
const repeated = [...cluster.runs].filter(([, runs]) => runs > 1).map(([callId]) => callId);

// What was answered once is answered always.
let changed = 0;
for (const [callId, content] of tasks) {
  const number = Number(callId.slice(5));
  const ask = () =>
    dispatcher.dispatch({ name: "task", arguments: { number }, callId }, { messageId: "faults" });
  let again = await ask();
  // The server may have come back just now.
  for (let tries = 0; !again.ok && again.error.retryable && tries < 50; tries++) {
    await wait(200);
    again = await ask();
  }
  if (!again.ok || JSON.stringify(again.content) !== content) changed++;
}
const doubled = repeated.filter((callId) => callId.startsWith("once")).length;
const answered = [...outcomes.values()].reduce((sum, count) => sum + count, 0);

console.log();
for (const [what, count] of [...outcomes].sort()) {
  console.log(`${String(count).padStart(6)}  ${what}`);
}
console.log(`
calls ${CALLS}, answered ${answered}, in ${(endedIn / 1_000).toFixed(1)} s, slowest ${
  (slowest / 1_000).toFixed(1)
} s
lost ${lost + CALLS - answered}, done twice that may not be ${doubled}, hung ${hung}
tasks ${tasks.size}, of which another result later ${changed}
runs that were repeated, of tools that may be: ${repeated.length - doubled}`);
process.exitCode = lost + CALLS - answered + doubled + hung + changed === 0 ? 0 : 1;
await connection.close();
