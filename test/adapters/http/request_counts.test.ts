import { describe, it } from "bun:test";
import { assertEquals, assertGreater, assertLess, assertRejects } from "@std/assert";
import { type CallStore, memoryCallStore } from "@plue/tools/calls";
import { MemoryRateLimitStore, type RateLimitStore, storedRateLimits } from "@plue/tools/hono";
import { createTime, type StoreTime } from "../../contract/call_store_contract.ts";
import { describeRateLimits } from "../../contract/store_users_contract.ts";

const WINDOW = { limit: 5, windowMs: 1_000 };
const ADVANCE = { maxPermits: 50 };

/** The stores of this package, by their names. */
const STORES: Readonly<Record<string, (clock: StoreTime) => RateLimitStore>> = {
  "MemoryRateLimitStore": ({ timestamp }) => new MemoryRateLimitStore({ now: timestamp }),
  "storedRateLimits()": (clock) => storedRateLimits(memoryCallStore({ clock }), { clock }),
  "storedRateLimits() with permits in advance": (clock) =>
    storedRateLimits(memoryCallStore({ clock }), { clock, ...ADVANCE }),
};

for (const [name, make] of Object.entries(STORES)) {
  describeRateLimits(name, createTime, (time) => {
    const counts = make(time);
    return Promise.resolve([counts, counts]);
  });
}

describe("storedRateLimits()", () => {
  it("rejects if other processes count at every attempt", async () => {
    const update = (): Promise<undefined> => Promise.resolve(undefined);
    const limits = storedRateLimits({ ...memoryCallStore(), update });
    await limits.take("ann", 1, WINDOW);
    await assertRejects(
      () => Promise.resolve(limits.take("ann", 1, WINDOW)),
      Error,
      "other processes change it",
    );
  });
});

describe("storedRateLimits() with permits in advance", () => {
  const FIVE = { limit: 5, windowMs: 60_000 };
  const THOUSAND = { limit: 1_000, windowMs: 60_000 };

  function countedStore(): { readonly store: CallStore; reads: number } {
    const memory = memoryCallStore();
    const get: CallStore["get"] = (key) => {
      counted.reads++;
      return memory.get(key);
    };
    const counted = { store: { ...memory, get }, reads: 0 };
    return counted;
  }

  it("admits exactly the limit in one process, and rarely reads the store", async () => {
    const counted = countedStore();
    const limits = storedRateLimits(counted.store, ADVANCE);
    let letIn = 0;
    for (let call = 0; call < 1_100; call++) {
      const { count } = await limits.take("ann", 1, THOUSAND);
      if (count <= 1_000) letIn++;
      if (call === 99) assertLess(counted.reads, 5);
    }
    assertEquals(letIn, 1_000);
  });

  it("admits at most the limit over several processes, and nearly all of it", async () => {
    const store = memoryCallStore();
    const processes = [1, 2, 3, 4].map(() => storedRateLimits(store, ADVANCE));
    const counts = await Promise.all(
      Array.from({ length: 2_000 }, (_, call) => processes[call % 4]?.take("ann", 1, THOUSAND)),
    );
    const letIn = counts.filter((answer) => (answer?.count ?? 0) <= 1_000).length;
    assertEquals(letIn <= 1_000, true);
    assertGreater(letIn, 950);
  });

  it("does not read the store after the limit of a window is exhausted", async () => {
    const counted = countedStore();
    const limits = storedRateLimits(counted.store, ADVANCE);
    assertEquals((await limits.take("ann", 5, FIVE)).count, 5);
    for (let call = 0; call < 100; call++) {
      assertEquals((await limits.take("ann", 1, FIVE)).count, 6);
    }
    assertEquals(counted.reads, 1);
  });
});

describe("MemoryRateLimitStore", () => {
  const WINDOW = { limit: 10, windowMs: 1_000 };

  it("stores at most maxKeys keys, and evicts the oldest window first", () => {
    const store = new MemoryRateLimitStore({ maxKeys: 2, now: () => 0 });
    for (const key of ["a", "b", "c"]) store.take(key, 1, WINDOW);
    assertEquals(store.take("b", 1, WINDOW).count, 2);
    assertEquals(store.take("a", 1, WINDOW).count, 1);
    assertEquals(store.take("c", 1, WINDOW).count, 2);
  });

  it("evicts a window at its limit only if every window is at its limit or has ended", () => {
    let now = 0;
    const store = new MemoryRateLimitStore({ maxKeys: 2, now: () => now });
    store.take("full", 10, WINDOW);
    for (const key of ["a", "b", "c"]) store.take(key, 1, WINDOW);
    assertEquals(store.take("full", 1, WINDOW).count, 11);
    store.take("c", 9, WINDOW);
    store.take("d", 1, WINDOW);
    assertEquals([store.take("c", 0, WINDOW).count, store.take("full", 0, WINDOW).count], [10, 0]);
    store.take("d", 9, WINDOW);
    now = 1_000;
    store.take("e", 1, WINDOW);
    store.take("f", 1, WINDOW);
    assertEquals([store.take("e", 0, WINDOW).count, store.take("f", 0, WINDOW).count], [1, 1]);
  });

  it("measures windows with a clock that does not go back", () => {
    const { now } = Date;
    let back = 0;
    Date.now = () => now() - back;
    try {
      const store = new MemoryRateLimitStore();
      store.take("a", 10, WINDOW);
      back = 3_600_000;
      assertEquals(store.take("a", 1, WINDOW).resetMs <= 1_000, true);
    } finally {
      Date.now = now;
    }
  });
});
