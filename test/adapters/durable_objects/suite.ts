/** Tests that run in workerd. The objects are in another worker. */

import { describe, it } from "bun:test";
import { assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { env } from "cloudflare:workers";
import type { CallStore } from "@plue/tools/calls";
import {
  type CallStoreMethods,
  type CallStoreNamespace,
  durableObjectStore,
  type DurableObjectStoreOptions,
} from "@plue/tools/durable-objects";
import { describeCallStore, itCountsExactly } from "../../contract/call_store_contract.ts";
import { runAll } from "../../support/suite_tree.ts";
import { poll } from "../../support/waiting.ts";

const namespace = env["CALLS"] as CallStoreNamespace;
let opened = 0;

function open(options: DurableObjectStoreOptions = {}): CallStore {
  return durableObjectStore(namespace, { name: `store-${++opened}`, ...options });
}

/** The only object of a store with one shard. */
function objectOf(name: string): CallStoreMethods & { break(): Promise<void> } {
  return namespace.get(namespace.idFromName(`${name}:1:0`)) as ReturnType<typeof objectOf>;
}

describeCallStore("durableObjectStore()", {
  create: (_, name) => open({ name }),
  open: (_store, _time, name) => open({ name }),
  hasClock: true,
});

describe("durableObjectStore()", () => {
  const one = new TextEncoder().encode("one");

  itCountsExactly(open);

  it("deletes expired entries if the quota is exhausted", async () => {
    const store = open({ maxOwnerBytes: 2_000 });
    const value = new Uint8Array(1_000);
    const revision = await store.create("t.a.1", value, { expiresAt: Date.now() + 1 });
    assertEquals(typeof revision, "number");
    await poll(async () => await store.get("t.a.1") === undefined);
    assertEquals(typeof await store.create("t.a.2", value), "number");
  });

  it("accepts the requests of an older edge, which are shorter", async () => {
    const store = open({ name: "older", shards: 1 });
    const [now, revision] = await objectOf("older").callStore(["put", "t.a.1", one.buffer]);
    assertEquals(typeof now, "number");
    const entry = await store.get("t.a.1");
    assertEquals([entry?.value, entry?.revision], [one, revision as number]);
    assertEquals(await store.due("t", Infinity, 9), []);
    // An edge of a later version may send more fields.
    const later = ["put", "t.a.2", one.buffer, null, null, 5, 1_000, "later"];
    assertEquals((await objectOf("older").callStore(later)).length, 2);
    assertEquals((await store.due("t", 5, 9)).map(({ key }) => key), ["t.a.2"]);
  });

  it("accepts the answers of an older object, which are shorter", async () => {
    const answers: Readonly<Record<string, readonly unknown[]>> = {
      get: [1, ["t.a.1", one.buffer, 7]],
      put: [1, 8],
      delete: [1, true],
      list: [1, [["t.a.1", one.buffer, 7]]],
      due: [1, [["t.a.1", one.buffer, 7]]],
    };
    const store = durableObjectStore({
      idFromName: (name) => name,
      get: () => ({
        callStore: ([operation, , after]: readonly unknown[]) =>
          Promise.resolve(after === "t.a.1" ? [1, []] : answers[`${operation}`]),
      }),
    }, { shards: 1 });
    const entry = await store.get("t.a.1");
    assertEquals([entry?.value, entry?.revision, entry?.expiresAt], [one, 7, undefined]);
    assertEquals(await store.create("t.a.1", one), 8);
    assertEquals(await store.delete("t.a.1", 7), true);
    assertEquals((await Array.fromAsync(store.list("t.a"))).length, 1);
    assertEquals((await store.due("t", 1, 1)).length, 1);
  });

  it("rejects an operation that an older object does not have", async () => {
    const problem = 'the deployed object has no operation "move"';
    await assertRejects(async () => await objectOf("new").callStore(["move"]), Error, problem);
  });

  it("retains a value whose replacement fails", async () => {
    const store = open({ name: "undone", shards: 1 });
    const revision = await store.create("t.a.1", one);
    const wrong = { byteLength: 1 } as unknown as ArrayBuffer;
    const put = ["put", "t.a.1", wrong, revision];
    await assertRejects(async () => await objectOf("undone").callStore(put), Error);
    assertEquals((await store.get("t.a.1"))?.value, one);
  });

  it("rejects if the object throws, and continues afterwards", async () => {
    const store = open({ name: "broken", shards: 1 });
    await store.create("t.a.1", one);
    await objectOf("broken").break();
    const problem = "Cannot use the store of calls: no such table: entries";
    await assertRejects(() => store.get("t.a.1"), Error, problem);
    await assertRejects(() => store.create("t.a.2", one), Error, problem);
    assertEquals(await open({ name: "broken-2", shards: 1 }).get("t.a.1"), undefined);
  });

  it("lists and returns more than one answer can hold", async () => {
    const store = open({ shards: 1 });
    const large = new Uint8Array(400_000);
    for (let index = 0; index < 7; index++) {
      await store.create(`t.a.${index}`, large, { dueAt: 10 - index });
    }
    for (let index = 0; index < 200; index++) await store.create(`t.b.${index}`, one);
    assertEquals((await Array.fromAsync(store.list("t.a"))).length, 7);
    assertEquals((await Array.fromAsync(store.list("t.b"))).length, 200);
    const due = await store.due("t", 10, 100);
    assertEquals(due.map(({ key }) => key), ["t.a.6", "t.a.5", "t.a.4"]);
  });

  it("returns the time of the objects", async () => {
    const store = open();
    const before = Date.now();
    await store.get("t.a.1");
    const time = store.now?.() ?? NaN;
    assertGreater(time, before - 1_000);
    assertLess(time, Date.now() + 1_000);
  });
});

export default {
  async test(): Promise<void> {
    console.log(`REPORT ${JSON.stringify(await runAll())}`);
  },
};
