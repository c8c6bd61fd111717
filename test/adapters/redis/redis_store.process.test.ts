import { describe } from "bun:test";
import {
  assert,
  assertEquals,
  assertGreater,
  assertLess,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import type { CallStore } from "@plue/tools/calls";
import { redisCallStore, type RedisCallStoreOptions, type RedisClient } from "@plue/tools/redis";
import { shardOf } from "../../../src/execute/durable/mod.ts";
import {
  describeCallStore,
  describeOutages,
  itCountsExactly,
} from "../../contract/call_store_contract.ts";
import { loseAnswers } from "../../contract/lost_answers.ts";
import { missing, RedisServer, useServer, withServer as it } from "./server.ts";
import { poll } from "../../support/waiting.ts";

const value = new Uint8Array(1_000);
let stores = 0;
const prefixOf = new WeakMap<object, string>();

/** Opens a store with a prefix of its own, or a given one. */
async function open(
  client: RedisClient | Promise<RedisClient>,
  options: RedisCallStoreOptions = {},
): Promise<CallStore> {
  const { prefix = `test-${++stores}` } = options;
  const store = await redisCallStore(await client, { ...options, prefix });
  prefixOf.set(store, prefix);
  return store;
}

/** Opens the store again, as another process would. */
function openAgain(
  client: RedisClient | Promise<RedisClient>,
  store: CallStore,
  options: RedisCallStoreOptions = {},
): Promise<CallStore> {
  return open(client, { ...options, prefix: prefixOf.get(store) ?? "" });
}

describe("redisCallStore()", () => {
  const server = useServer();

  if (missing === undefined) {
    // Replies differ between the versions, not between the runtimes, which use the same client.
    for (const RESP of "Bun" in globalThis ? [2, 3] as const : [3] as const) {
      describeCallStore(`redisCallStore() with version ${RESP} of the protocol`, {
        create: () => open(server().connect({ RESP })),
        open: (store) => openAgain(server().connect({ RESP }), store),
        hasClock: true,
      });
    }
    describeOutages("redisCallStore()", {
      open: () => open(server().connect()),
      kill: () => server().kill(),
      start: () => server().start(),
    });
    itCountsExactly((options) => open(server().connect(), options));
  } else it("is a CallStore", () => {});

  it("rejects clients that would make writes later, and invalid options", async () => {
    for (const client of [undefined, {}, { options: { disableOfflineQueue: true } }]) {
      await assertRejects(() => redisCallStore(client as RedisClient), TypeError, "client must");
    }
    const late = await server().connect({ disableOfflineQueue: false });
    await assertRejects(() => open(late), TypeError, "set disableOfflineQueue: true");
    const client = await server().connect();
    for (
      const [options, problem] of [
        [{ prefix: "a{b" }, '"/prefix" must be at most 64 letters'],
        [{ timeoutMs: 0 }, '"/timeoutMs" must be'],
        [{ clock: Date } as object, '"/clock" is not one of its fields'],
      ] as const
    ) await assertRejects(() => redisCallStore(client, options), Error, problem);
    client.destroy();
    await assertRejects(() => open(client), Error, "Cannot open the store: The client is closed");
  });

  it("listens to errors of its client, since a lost connection would end the process", async () => {
    const client = await server().connect();
    await open(client);
    await open(client);
    assertEquals(client.listenerCount("error"), 1);
  });

  it("rejects servers that evict entries or keep them in memory only, and replicas", async () => {
    await using own = await RedisServer.start(["--appendonly", "no"]);
    const client = await own.connect();
    const problem = "Cannot open the store: the server would lose confirmed writes when it ends";
    await assertRejects(() => open(client), Error, problem);
    const lossy = await open(client, { allowsLostWrites: true });
    assertEquals(typeof await lossy.create("t.a.1", value), "number");
    await client.configSet("maxmemory-policy", "allkeys-lru");
    await assertRejects(
      () => open(client, { allowsLostWrites: true }),
      Error,
      'Cannot open the store: maxmemory-policy is "allkeys-lru"; set it to "noeviction"',
    );
    await client.configSet("maxmemory-policy", "noeviction");
    await client.sendCommand(["REPLICAOF", "127.0.0.1", `${server().port}`]);
    await assertRejects(
      () => open(client),
      Error,
      "the server is a replica; connect to its primary",
    );
    await assertRejects(() => lossy.create("t.a.2", value), Error, "READONLY");
  });

  it("opens for a user without the permission for INFO only with checksServer: false", async () => {
    const rights = ["on", ">secret", "~*", "+@all", "-@dangerous"];
    await (await server().connect()).sendCommand(["ACL", "SETUSER", "plain", ...rights]);
    const client = await server().connect({ username: "plain", password: "secret" });
    const { message } = await assertRejects(() => open(client), Error);
    assertStringIncludes(
      message,
      "the user may not run INFO, or another command; see checksServer",
    );
    assert(!message.includes("secret"));
    const store = await open(client, { checksServer: false });
    assertEquals(typeof await store.create("t.a.1", value), "number");
  });

  it("continues when the server has lost the script", async () => {
    const client = await server().connect();
    const store = await open(client);
    const revision = await store.create("t.a.1", value) ?? 0;
    await client.scriptFlush();
    assertEquals((await store.get("t.a.1"))?.revision, revision);
    await client.scriptFlush();
    assertEquals(await store.delete("t.a.1", revision), true);
  });

  it("reads and deletes on a full server, and counts exactly there", async () => {
    await using own = await RedisServer.start();
    const client = await own.connect();
    const store = await open(client, { maxOwnerBytes: 3_400 });
    const first = await store.create("t.a.1", value) ?? 0;
    await client.configSet("maxmemory", "1");
    const why = "Cannot store a value: maxmemory of the server is used up";
    for (let tries = 0; tries < 5; tries++) {
      await assertRejects(() => store.create("t.a.2", value), RangeError, why);
      await assertRejects(() => store.update("t.a.1", value, first), RangeError, why);
    }
    await client.scriptFlush();
    assertEquals((await store.get("t.a.1"))?.revision, first);
    assertEquals(await store.get("t.a.2"), undefined);
    assertEquals(await store.delete("t.a.1", first), true);
    await client.configSet("maxmemory", "0");
    for (const key of ["t.a.1", "t.a.2", "t.a.3"]) {
      assert(await store.create(key, value) ?? 0 > first);
    }
    await assertRejects(() => store.create("t.a.4", new Uint8Array()), RangeError, "the quota of");
  });

  it("rejects while the server does not respond, and does not write later", async () => {
    await using own = await RedisServer.start();
    const [client, other] = [await own.connect(), await own.connect()];
    const store = await open(client, { timeoutMs: 2_000 });
    const kept = await store.create("t.a.kept", value) ?? 0;
    own.pause();
    const why = "Cannot use the store of calls: the server has not answered for 2000 ms";
    await Promise.all([
      assertRejects(() => store.create("t.a.late", value), Error, why),
      assertRejects(() => store.update("t.a.kept", value, kept), Error, why),
      assertRejects(() => store.delete("t.a.kept", kept), Error, why),
      assertRejects(() => store.get("t.a.kept"), Error, why),
    ]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    own.resume();
    // The answers to earlier commands arrive before the answer to this one.
    await client.ping();
    const after = await openAgain(other, store);
    assertEquals(await after.get("t.a.late"), undefined);
    assertEquals((await after.get("t.a.kept"))?.revision, kept);
  });

  it("determines the outcome of a write whose answer is lost", async () => {
    if (missing !== undefined) return;
    await loseAnswers(server().port, (port) => open(server().connect({ port })));
  });

  it("raises revisions even if the server has lost its data", async () => {
    await using own = await RedisServer.start(["--appendonly", "no"]);
    const store = await open(own.connect(), { allowsLostWrites: true });
    const revision = await store.create("t.a.1", value) ?? 0;
    await own.kill();
    await own.start();
    let second: number | undefined;
    while (second === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      second = await store.create("t.a.1", value).catch(() => undefined);
    }
    assertGreater(second, revision);
  });

  it("has the server's time", async () => {
    const store = await open(server().connect());
    const before = Date.now();
    await store.get("t.a.1");
    const time = store.now?.() ?? 0;
    // Clocks of the runtimes are in whole milliseconds.
    assertGreater(time, before - 2);
    assertLess(time, Date.now() + 2);
  });

  it("lists and finds more than a page", async () => {
    const store = await open(server().connect());
    const keys = Array.from({ length: 300 }, (_, index) => `t.a.${index + 1_000}`);
    const large = new Uint8Array(700_000);
    await Promise.all(keys.flatMap((key) => [
      store.create(key, new Uint8Array(1), { dueAt: 2 }),
      store.create(`u${key}`, new Uint8Array(1), { dueAt: 1 }),
    ]));
    for (const key of ["v.a", "v.a.1", "v.a.2", "v.a.3"]) await store.create(key, large);
    const listed = async (prefix: string): Promise<readonly string[]> => {
      const found: string[] = [];
      for await (const { key } of store.list(prefix)) found.push(key);
      return found;
    };
    assertEquals(await listed("t.a"), keys);
    assertEquals(await listed("v.a"), ["v.a", "v.a.1", "v.a.2", "v.a.3"]);
    const due = async (before: number, limit: number) =>
      (await store.due("t", before, limit)).length;
    assertEquals([await due(Infinity, 1_000), await due(2, 200), await due(1, 200)], [300, 200, 0]);
  });

  it("deletes expired entries, and frees their bytes in the quota of their principal", async () => {
    const client = await server().connect();
    const store = await open(client, { maxOwnerBytes: 175_000 });
    const expiresAt = Date.now() + 5_000;
    await Promise.all(
      Array.from(
        { length: 150 },
        (_, index) => store.create(`t.a.${index}`, value, { expiresAt, dueAt: 1 }),
      ),
    );
    const [expires = "", due = ""] = ["expires", "due"]
      .map((name) => `${prefixOf.get(store)}:{${prefixOf.get(store)}-${shardOf("a", 16)}}:${name}`);
    assertEquals(await client.zCard(expires), 150);
    await poll(async () => await store.get("t.a.149") === undefined);
    // Each write deletes some expired entries, and a write that exceeds the quota deletes more.
    await store.create("u.a.small", new Uint8Array());
    assertEquals(await client.zCard(expires), 134);
    assert(await store.create("u.a.large", new Uint8Array(150_000)) !== undefined);
    assertEquals([await client.exists(expires), await client.exists(due)], [0, 0]);
  });
});
