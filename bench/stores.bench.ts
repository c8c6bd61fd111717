/** The time of an operation of each store of calls, on servers that the benchmark starts. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { table } from "../scripts/lib/table.mjs";
import { type CallStore, memoryCallStore } from "../src/adapters/calls/mod.ts";
import { natsCallStore } from "../src/adapters/nats/mod.ts";
import { migratePostgresCallStore, postgresCallStore } from "../src/adapters/postgres/mod.ts";
import { redisCallStore } from "../src/adapters/redis/mod.ts";
import { sqliteCallStore } from "../src/adapters/sqlite/mod.ts";
import { WorkerdObjects } from "../test/adapters/durable_objects/workerd_objects.ts";
import { PostgresServer } from "../test/adapters/postgres/server.ts";
import { RedisServer } from "../test/adapters/redis/server.ts";
import { TestServer } from "../test/nats/server.ts";
import { operate, OPERATIONS } from "./stores/operate.ts";

const ROUNDS = 40;

const folder = mkdtempSync(join(tmpdir(), "plue-stores-"));
const postgres = await PostgresServer.start();
const pool = postgres.pool();
await migratePostgresCallStore(pool);
await using redis = await RedisServer.start();
await using nats = await TestServer.start();
await using objects = await WorkerdObjects.create(join(import.meta.dirname, "stores/worker.ts"));
await objects.start();
const synced = { syncsEachWrite: true };

const inProcess = (store: CallStore) => (round: number) => operate(store, round);
const stores: Readonly<Record<string, (round: number) => Promise<readonly number[]>>> = {
  "memory": inProcess(memoryCallStore()),
  "SQLite": inProcess(await sqliteCallStore(join(folder, "calls.db"))),
  "SQLite, syncsEachWrite": inProcess(await sqliteCallStore(join(folder, "synced.db"), synced)),
  "PostgreSQL": inProcess(await postgresCallStore(pool, { preparesStatements: true })),
  "Redis, appendfsync always": inProcess(await redisCallStore(await redis.connect())),
  "NATS": inProcess(await natsCallStore(await nats.connect())),
  "Durable Objects, workerd": async (round) => {
    const response = await fetch(objects.url, { method: "POST", body: `${round}` });
    return await response.json() as readonly number[];
  },
};

const measured = new Map<string, (readonly number[])[]>();
for (let round = 0; round <= ROUNDS; round++) {
  for (const [name, run] of Object.entries(stores)) {
    const means = await run(round);
    // The first round warms up.
    if (round > 0) measured.set(name, [...measured.get(name) ?? [], means]);
  }
}
await postgres.stop();
rmSync(folder, { recursive: true });

/** The fastest round, because other work on the machine only makes rounds longer. */
function fastest(rounds: readonly (readonly number[])[], at: number): number {
  return Math.min(...rounds.map((means) => means[at] ?? NaN));
}

const floor = fastest(measured.get("memory") ?? [], OPERATIONS.indexOf("update"));
const rows = [...measured].map(([name, rounds]) => {
  const times = OPERATIONS.map((_, at) => fastest(rounds, at));
  const ratio = (times[OPERATIONS.indexOf("update")] ?? NaN) / floor;
  return [name, ...times.map((us) => us.toFixed(us < 10 ? 1 : 0)), ratio.toFixed(0)];
});
console.log(
  "µs of an operation with 300 bytes, one after another; update, divided by that in memory",
);
console.log(table(["store", ...OPERATIONS, "ratio"], rows));
