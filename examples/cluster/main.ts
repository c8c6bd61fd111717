/**
 * Starts a NATS server, a worker on each installed runtime, and an edge that accepts HTTP requests;
 * kills a worker while it works; and prints the outcome of every call.
 *
 *     npm run cluster
 */

import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { callTasks, storedKeys, storedTickets } from "@plue/tools/calls";
import { createToolHandler, storedRateLimits } from "@plue/tools/hono";
import { natsCallStore, remoteTools } from "@plue/tools/nats";
import { Cluster, hasServer, runtimes, SECRET } from "./cluster.ts";

const CALLS = 600;

if (!hasServer()) {
  console.error("Cannot start the cluster: nats-server is not installed");
  process.exit(1);
}
await using cluster = await Cluster.start();
console.log(`nats-server  ${cluster.url}`);
const names = runtimes();
const workers = await Promise.all(
  [0, 1, 2].map((at) => cluster.startWorker(names[at % names.length] ?? "bun")),
);
for (const { name } of workers) console.log(`started      ${name}`);

// The edge has no tools of its own. It decides on the rights of its callers.
const connection = await connect({ servers: cluster.url });
const registry = new ToolRegistry();
await using remote = await remoteTools(connection, { registry, secret: SECRET });
// All edges can share the store: start more of them behind a balancer.
const store = await natsCallStore(connection);
const edge = createToolHandler(registry, {
  authorize: () => ({ principal: "ann" }),
  dispatcher: new ToolDispatcher(registry, {
    tickets: storedTickets(store),
    idempotency: { kept: storedKeys(store) },
  }),
  tasks: callTasks({ store }),
  rateLimit: {
    limit: 10_000,
    windowMs: 60_000,
    store: storedRateLimits(store, { maxPermits: 50 }),
  },
});
console.log(`edge         ${remote.tools.map(({ id }) => id).join(", ")}`);

const answers = new Map<string, number>();
const failures = new Set<string>();
const by = new Map<string, number>();

/** A result over HTTP, or a problem. */
interface Answer {
  readonly ok?: boolean;
  readonly content?: { readonly by: string };
  readonly error?: { readonly message: string };
  readonly detail?: string;
}

/** Returns the result in a response. For a task, waits until the task has ended. */
async function ended(response: Response): Promise<Answer> {
  const place = response.headers.get("location");
  if (response.status !== 202 || place === null) return await response.json();
  for (;;) {
    const looked = await edge.fetch(new Request(new URL(place, "http://localhost")));
    const { status, result, detail } = await looked.json() as {
      readonly status?: string | number;
      readonly result?: Answer;
      readonly detail?: string;
    };
    if (status !== "working") return result ?? { detail: detail ?? `It is ${status}` };
    await setTimeout(100);
  }
}

async function call(number: number): Promise<void> {
  const tool = ["again", "once", "task"][number % 3] ?? "";
  const response = await edge.fetch(
    new Request(`http://localhost/tools/${tool}/execute`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ arguments: { number }, callId: `call ${number}` }),
    }),
  );
  const body = await ended(response);
  const what = `${tool}: ${body.ok === true ? "done" : `failed, ${response.status}`}`;
  answers.set(what, (answers.get(what) ?? 0) + 1);
  if (body.content !== undefined) by.set(body.content.by, (by.get(body.content.by) ?? 0) + 1);
  const why = body.detail ?? body.error?.message;
  if (why !== undefined) failures.add(why);
  if (number === CALLS / 2) {
    console.log(`killing      ${workers[0]?.name}`);
    await workers[0]?.kill();
  }
}

const waiting = Array.from({ length: CALLS }, (_, number) => number);
async function caller(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await call(next);
}
await Promise.all(Array.from({ length: 30 }, caller));

console.log(`\n${CALLS} calls over HTTP, ${remote.workers} of ${workers.length} workers left:`);
for (const [what, count] of [...answers].sort()) console.log(`  ${what} ${count}`);
for (const [runtime, count] of [...by].sort()) console.log(`  by ${runtime} ${count}`);
for (const why of failures) console.log(`  ${why}`);
const twice = [...cluster.runs].filter(([, runs]) => runs > 1).map(([callId]) => callId);
const wrong = twice.filter((callId) => Number(callId.slice(5)) % 3 === 1);
console.log(`  run twice ${twice.length}, of those that may not be ${wrong.length}`);
const sum = [...answers.values()].reduce((total, count) => total + count, 0);
process.exitCode = sum === CALLS && wrong.length === 0 ? 0 : 1;
await connection.close();
