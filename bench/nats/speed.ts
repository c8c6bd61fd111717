/**
 * The cost of a call over NATS, relative to a bare request of NATS in the same run; the calls per
 * second by the number of workers; and the time until an abort reaches a tool. All on one machine.
 *
 *     npm run cluster -- speed
 */

import { join } from "node:path";
import process from "node:process";
import { connect } from "@nats-io/transport-node";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { remoteTools, serveTools } from "@plue/tools/nats";
import { Cluster, type ClusterWorker, SECRET } from "../../examples/cluster/cluster.ts";

const CALLS = 1_000;
const RUNTIME = "bun";

await using cluster = await Cluster.start();

async function caller() {
  const connection = await connect({ servers: cluster.url });
  const registry = new ToolRegistry();
  const remote = await remoteTools(connection, { registry, secret: SECRET });
  return { connection, registry, remote, dispatcher: new ToolDispatcher(registry) };
}

/** The mean of many runs, `atOnce` of them concurrently, in microseconds. */
async function mean(atOnce: number, work: () => Promise<unknown>): Promise<number> {
  let left = CALLS;
  const begun = performance.now();
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (left-- > 0) await work();
  }));
  return (performance.now() - begun) / CALLS * 1_000;
}

// Calls one after the other, to a worker in another process, like the bare requests of NATS.
const near = await caller();
const echo = await cluster.startWorker(RUNTIME, 1, join(import.meta.dirname, "echo.ts"));
const [worker] = [await cluster.startWorker(RUNTIME)] as const;
while (near.remote.workers < 1) await near.connection.flush();
const body = new TextEncoder().encode(JSON.stringify({ number: 1 }));
const bare = () => near.connection.request("echo", body);
const call = () => near.dispatcher.dispatch({ name: "add", arguments: { number: 1 } });
const once = () => near.dispatcher.dispatch({ name: "count", arguments: { number: 1 } });
await mean(1, bare);
await mean(1, call);
await mean(1, once);
// The fastest round is the round that other programs have disturbed least.
async function fastest(
  atOnce: number,
): Promise<readonly [bare: number, call: number, once: number]> {
  const rounds: (readonly [number, number, number])[] = [];
  for (let round = 0; round < 10; round++) {
    rounds.push([await mean(atOnce, bare), await mean(atOnce, call), await mean(atOnce, once)]);
  }
  const least = (at: 0 | 1 | 2): number => Math.min(...rounds.map((round) => round[at]));
  return [least(0), least(1), least(2)];
}
let ratio = 0;
for (const atOnce of [1, 32]) {
  const [request, called, calledOnce] = await fastest(atOnce);
  ratio ||= called / request;
  const times = (cost: number): string =>
    `${cost.toFixed(0)} µs (${(cost / request).toFixed(2)} x)`;
  console.log(
    `${atOnce} concurrently: a request of NATS ${request.toFixed(0)} µs, a call ${
      times(called)
    }, ` +
      `a call of a tool that is not idempotent ${times(calledOnce)}`,
  );
}
console.log();

// A tool that works for 5 ms; a worker runs 8 calls of it concurrently.
const workers: ClusterWorker[] = [worker];
let first = 0;
for (let count = 1; count <= 3; count++) {
  if (count > 1) workers.push(await cluster.startWorker(RUNTIME));
  while (near.remote.workers < count) await near.connection.flush();
  let left = 1_500 * count;
  const total = left;
  const begun = performance.now();
  await Promise.all(Array.from({ length: 8 * count }, async () => {
    while (left-- > 0) await near.dispatcher.dispatch({ name: "again", arguments: { number: 1 } });
  }));
  const rate = total / (performance.now() - begun) * 1_000;
  first ||= rate;
  const share = rate / first / count;
  console.log(
    `${count} workers: ${rate.toFixed(0)} calls/s, ${share.toFixed(2)} of the first each`,
  );
}

// Both ends are in this process, so that they have the same clock.
const connection = await connect({ servers: cluster.url });
let reached = (_at: number): void => {};
let began = (): void => {};
const served = await serveTools(
  new ToolRegistry({
    tools: [{
      name: "wait",
      description: "Waits.",
      execute(_, { signal }) {
        began();
        return new Promise((resolve) =>
          signal.addEventListener("abort", () => resolve(reached(performance.now())))
        );
      },
    }],
  }),
  connection,
  { secret: SECRET },
);
while (!near.registry.hasTool("wait")) await near.connection.flush();
const times: number[] = [];
for (let round = 0; round < 100; round++) {
  const begins = new Promise<void>((resolve) => began = resolve);
  const aborted = new Promise<number>((resolve) => reached = resolve);
  const abort = new AbortController();
  const result = near.dispatcher.dispatch({ name: "wait" }, { signal: abort.signal });
  await Promise.race([begins, result]);
  const at = performance.now();
  abort.abort();
  times.push(await aborted - at);
  await result;
}
times.sort((a, b) => a - b);
console.log(
  `\nan abort reaches its tool in ${times[50]?.toFixed(1)} ms (median), ` +
    `${times.at(-1)?.toFixed(1)} ms (longest of ${times.length})`,
);
await served.close();
await echo.kill();
process.exitCode = ratio <= 2 ? 0 : 1;
await near.remote.close();
await Promise.all([connection.close(), near.connection.close()]);
