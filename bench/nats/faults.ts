/**
 * Calls from two callers over three workers, while workers are killed, stopped, drained, replaced
 * by a new version and cut off, and the server is killed. Prints the outcomes, and fails if a call
 * was lost, never ended, ran twice without being repeatable, or later has another result. The
 * workers write each run into a file before they work.
 *
 *     npm run cluster -- faults [calls] [seconds] [rounds]
 */

import { once } from "node:events";
import { connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import process from "node:process";
import { connect } from "@nats-io/transport-node";
import { ToolDispatcher, ToolRegistry, type ToolResult } from "@plue/tools";
import { storedKeys } from "@plue/tools/calls";
import { natsCallStore, remoteTools } from "@plue/tools/nats";
import { Cluster, type ClusterWorker, runtimes, SECRET } from "../../examples/cluster/cluster.ts";

const [, , calls = "10000", seconds = "120", rounds = "2"] = process.argv;
const CALLS = Number(calls);
const SPAN_MS = Number(seconds) * 1_000;
/** The timeout of a call; a task may have to wait for two leases and the server. */
const TIMEOUT_MS = 60_000;
/** `keyed` calls `once` with an idempotency key, again and again, through both callers. */
const KINDS = ["once", "again", "task", "busy", "stream", "keyed"] as const;
/** The kinds whose calls may run again. */
const REPEATABLE: readonly string[] = ["again", "task"];

/** The connection of a worker to the server, which can be held and cut. */
class Line {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  #isHeld = false;

  constructor(port: number) {
    this.#server = createServer((near) => {
      const far = connectTcp(port, "127.0.0.1");
      for (const [from, to] of [[near, far], [far, near]] as const) {
        this.#sockets.add(from);
        from.on("data", (data) => void to.write(data));
        from.on("error", () => {});
        from.on("close", () => {
          this.#sockets.delete(from);
          to.destroy();
        });
        if (this.#isHeld) from.pause();
      }
    });
  }

  async open(): Promise<string> {
    this.#server.listen(0, "127.0.0.1").unref();
    await once(this.#server, "listening");
    const address = this.#server.address();
    return `nats://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  }

  /** Delivers nothing until it is released: both sides see an open connection. */
  hold(): void {
    this.#isHeld = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Delivers again, first the messages that arrived meanwhile. */
  release(): void {
    this.#isHeld = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Closes the connections. New connections are possible. */
  cut(): void {
    this.#isHeld = false;
    for (const socket of this.#sockets) socket.destroy();
  }
}

interface Worker extends ClusterWorker {
  readonly line: Line;
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

await using cluster = await Cluster.start();
const names = runtimes();
let version = 1;
let started = 0;
const start = async (): Promise<Worker> => {
  const line = new Line(Number(new URL(cluster.url).port));
  const runtime = names[started++ % names.length] ?? "bun";
  const url = await line.open();
  for (let tries = 0;; tries++) {
    try {
      return { ...await cluster.startWorker(runtime, version, undefined, url), line };
    } catch (error) {
      // The server may be killed meanwhile: a supervisor would start the worker again.
      if (tries > 20) throw error;
      await wait(500);
    }
  }
};
const workers: Worker[] = await Promise.all([start(), start(), start()]);

/** Makes a caller with a connection of its own. */
async function startCaller() {
  const connection = await connect({
    ...{ servers: cluster.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 },
  });
  const registry = new ToolRegistry();
  await remoteTools(connection, { registry, secret: SECRET });
  const kept = storedKeys(await natsCallStore(connection, { secret: SECRET }));
  return { dispatcher: new ToolDispatcher(registry, { idempotency: { kept } }), connection };
}
const callers = [await startCaller(), await startCaller()];
console.log(`${CALLS} calls in ${SPAN_MS / 1_000} s, over ${workers.map(({ name }) => name)}`);

const begun = performance.now();
function print(what: string): void {
  console.log(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(6)} s  ${what}`);
}

/** Returns the worker whose last fault is the oldest. */
function next(fault: string): Worker {
  const worker = workers.shift() as Worker;
  workers.push(worker);
  print(`${fault} ${worker.name}`);
  return worker;
}

async function replace(fault: string, end: (worker: Worker) => Promise<void>): Promise<void> {
  const worker = next(fault);
  const other = start();
  await end(worker);
  workers[workers.indexOf(worker)] = await other;
}

const FAULTS: readonly (() => Promise<void>)[] = [
  async () => {
    const { line } = next("cut off for 9 s, and reset then");
    line.hold();
    await wait(9_000);
    line.cut();
  },
  async () => {
    const worker = next("stop for 8 s");
    worker.pause();
    await wait(8_000);
    worker.resume();
  },
  async () => {
    const { line } = next("cut off for 4 s, and deliver then");
    line.hold();
    await wait(4_000);
    line.release();
  },
  () => replace("kill", (worker) => worker.kill()),
  () => replace("drain", (worker) => worker.drain()),
  async () => {
    version++;
    print(`deploy version ${version}`);
    for (let left = workers.length; left > 0; left--) {
      await replace("drain", (worker) => worker.drain());
    }
  },
  async () => {
    print("kill the server, for 2 s");
    await cluster.killServer();
    await wait(2_000);
    await cluster.startServer();
  },
];

async function causeFaults(): Promise<void> {
  const count = FAULTS.length * Number(rounds);
  // The last fault has time to end.
  const every = SPAN_MS / (count + 1);
  const under: (Promise<void> | undefined)[] = [];
  for (let at = 0; at < count; at++) {
    await wait(Math.max(0, (at + 1) * every - (performance.now() - begun)));
    under.push(FAULTS[at % FAULTS.length]?.());
  }
  await Promise.all(under);
}

const outcomes = new Map<string, number>();
const tasks = new Map<string, string>();
const problems: string[] = [];
/** The calls whose last failure has `ran: "no"`. */
const unrun: string[] = [];
let slowest = 0;

/** Makes a call until it has ended. */
async function call(number: number): Promise<void> {
  const kind = KINDS[number % KINDS.length] ?? "task";
  const callId = `${kind} ${number}`;
  const isTask = kind === "task" || kind === "busy";
  const at = performance.now();
  const outputs: unknown[] = [];
  let result: ToolResult;
  for (let tries = 0;; tries++) {
    const { dispatcher } = callers[(number + tries) % 2] as (typeof callers)[0];
    result = await dispatcher.dispatch(
      { name: kind === "keyed" ? "once" : kind, arguments: { number }, callId },
      {
        ...{ timeoutMs: TIMEOUT_MS, messageId: "faults" },
        ...(kind === "keyed" && { idempotencyKey: callId, principal: "ann" }),
        output: (value) => void outputs.push(value),
      },
    );
    // A repeated call of a task is the same task, and a call with a key runs only once.
    const isRepeated = isTask || kind === "keyed";
    if (!isRepeated || result.ok || !result.error.retryable) break;
    if (performance.now() - at > TIMEOUT_MS) break;
    await wait(200);
  }
  const took = performance.now() - at;
  slowest = Math.max(slowest, took);
  if (took > 2 * TIMEOUT_MS) problems.push(`${callId} took ${took} ms`);
  const what = `${kind}: ${result.ok ? "done" : `${result.error.code}, ran ${result.error.ran}`}`;
  outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
  if (!result.ok) {
    if (result.error.ran === "no") unrun.push(callId);
    if (kind === "task") problems.push(`${callId} was lost: ${result.error.message}`);
    return;
  }
  const { square } = result.content as { readonly square: number };
  if (square !== number * number) problems.push(`${callId} has the result of another call`);
  const wanted = [0, 1, 2, 3, 4].map((more) => number + more);
  if (kind === "stream" && outputs.join() !== wanted.join()) problems.push(`${callId} has a gap`);
  if (isTask) tasks.set(callId, JSON.stringify(result.content));
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
const { runs } = cluster;
for (const [callId, count] of runs) {
  const [kind = ""] = callId.split(" ");
  if (count > 1 && !REPEATABLE.includes(kind)) problems.push(`${callId} ran ${count} times`);
}
for (const callId of unrun) {
  if (runs.has(callId)) problems.push(`${callId} ran, and its failure has ran: "no"`);
}

// Another caller gets the same results as the first callers.
const later = await startCaller();
for (const [callId, content] of tasks) {
  const [name = "", number] = callId.split(" ");
  const again = await later.dispatcher.dispatch(
    { name, arguments: { number: Number(number) }, callId },
    { messageId: "faults" },
  );
  if (!again.ok || JSON.stringify(again.content) !== content) {
    problems.push(`${callId} has another result later`);
  }
}
const answered = [...outcomes.values()].reduce((sum, count) => sum + count, 0);

console.log();
for (const [what, count] of [...outcomes].sort()) {
  console.log(`${String(count).padStart(6)}  ${what}`);
}
const repeated = [...runs.values()].filter((count) => count > 1).length;
console.log(`
calls ${CALLS}, answered ${answered}, in ${(endedIn / 1_000).toFixed(1)} s, slowest ${
  (slowest / 1_000).toFixed(1)
} s
calls that ran more than once ${repeated}
problems ${problems.length}`);
for (const problem of problems.slice(0, 20)) console.log(`  ${problem}`);
process.exitCode = problems.length === 0 && answered === CALLS ? 0 : 1;
for (const { connection } of [...callers, later]) await connection.close();
