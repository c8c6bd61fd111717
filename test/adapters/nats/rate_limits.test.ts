import { describe, it } from "bun:test";
import { assertEquals, assertGreater, assertLess } from "@std/assert";
import { type CallStore, memoryCallStore } from "@plue/tools/calls";
import { natsRateLimitStore } from "@plue/tools/nats";

const minute = { limit: 1_000, windowMs: 60_000 };

describe("natsRateLimitStore()", () => {
  it("lets in exactly as many as the limit, in one process", async () => {
    const limits = natsRateLimitStore(memoryCallStore());
    let letIn = 0;
    for (let call = 0; call < 1_100; call++) {
      const { count } = await limits.take("ann", 1, minute);
      if (count <= 1_000) letIn++;
    }
    assertEquals(letIn, 1_000);
  });

  it("lets in no more than the limit over several processes, and nearly all of it", async () => {
    const store = memoryCallStore();
    const processes = [1, 2, 3, 4].map(() => natsRateLimitStore(store));
    const counts = await Promise.all(
      Array.from({ length: 2_000 }, (_, call) => processes[call % 4]?.take("ann", 1, minute)),
    );
    const letIn = counts.filter((answer) => (answer?.count ?? 0) <= 1_000).length;
    assertEquals(letIn <= 1_000, true);
    assertGreater(letIn, 950);
  });

  it("reads the store once for many requests", async () => {
    let reads = 0;
    const memory = memoryCallStore();
    const store: CallStore = {
      ...memory,
      get: (key) => {
        reads++;
        return memory.get(key);
      },
    };
    const limits = natsRateLimitStore(store);
    for (let call = 0; call < 100; call++) await limits.take("ann", 1, minute);
    assertLess(reads, 5);
  });

  it("does not read the store after the limit of a window is exhausted", async () => {
    let reads = 0;
    const memory = memoryCallStore();
    const store: CallStore = {
      ...memory,
      get: (key) => {
        reads++;
        return memory.get(key);
      },
    };
    const limits = natsRateLimitStore(store);
    const five = { limit: 5, windowMs: 60_000 };
    assertEquals((await limits.take("ann", 5, five)).count, 5);
    for (let call = 0; call < 100; call++) {
      assertEquals((await limits.take("ann", 1, five)).count, 6);
    }
    assertEquals(reads, 1);
  });

  it("rejects an amount beyond the limit, and takes nothing then", async () => {
    const limits = natsRateLimitStore(memoryCallStore());
    const five = { limit: 5, windowMs: 60_000 };
    assertEquals((await limits.take("ann", 3, five)).count, 3);
    assertEquals((await limits.take("ann", 3, five)).count, 6);
    assertEquals((await limits.take("ann", 2, five)).count, 5);
    assertEquals((await limits.take("ann", 0, five)).count, 5);
    assertEquals((await limits.take("bob", 5, five)).count, 5);
  });

  it("starts again when the window has ended", async () => {
    const clock = { now: 1_700_000_000_000, timestamp: () => clock.now };
    const limits = natsRateLimitStore(memoryCallStore({ clock }), clock);
    const one = { limit: 1, windowMs: 1_000 };
    assertEquals(await limits.take("ann", 1, one), { count: 1, resetMs: 1_000 });
    clock.now += 400;
    assertEquals(await limits.take("ann", 1, one), { count: 2, resetMs: 600 });
    clock.now += 600;
    assertEquals(await limits.take("ann", 1, one), { count: 1, resetMs: 1_000 });
  });
});
