import { afterAll, describe } from "bun:test";
import { assertEquals } from "@std/assert";
import { createCluster } from "redis";
import type { CallStore } from "@plue/tools/calls";
import { redisCallStore } from "@plue/tools/redis";
import { describeCallStore, itCountsExactly } from "../../contract/call_store_contract.ts";
import { itRaces } from "../../contract/race.ts";
import { missing, useCluster, useServer, withServer } from "./server.ts";

describe("redisCallStore()", () => {
  const server = useServer();

  itRaces(missing, () => {
    const url = `redis://127.0.0.1:${server().port}`;
    return Promise.resolve({ url, kill: () => server().kill(), start: () => server().start() });
  });
});

describe("redisCallStore() in a cluster of three servers", () => {
  const servers = useCluster();
  let stores = 0;
  const clusters: { destroy(): void }[] = [];
  afterAll(() => clusters.forEach((cluster) => cluster.destroy()));

  async function open(prefix = `test-${++stores}`, options = {}): Promise<CallStore> {
    const cluster = createCluster({
      rootNodes: servers().map(({ port }) => ({ socket: { host: "127.0.0.1", port } })),
      defaults: { disableOfflineQueue: true },
    });
    clusters.push(cluster);
    await cluster.connect();
    return await redisCallStore(cluster, { ...options, prefix });
  }

  if (missing === undefined) {
    describeCallStore("redisCallStore() in a cluster", {
      create: (_, name) => open(name),
      open: (_store, _time, name) => open(name),
      hasClock: true,
    });
    itCountsExactly((options) => open(undefined, options));
  }

  withServer("distributes the owners over the servers", async () => {
    const store = await open("spread");
    const owners = Array.from({ length: 64 }, (_, index) => `owner${index}`);
    for (const owner of owners) await store.create(`t.${owner}.1`, new Uint8Array(1), { dueAt: 1 });
    for (const server of servers()) {
      const client = await server.connect();
      assertEquals((await client.keys("spread:*")).length > 0, true);
    }
    assertEquals((await store.due("t", 2, 100)).length, owners.length);
  });
});
