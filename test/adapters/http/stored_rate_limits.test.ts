import { describe, it } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";
import { memoryCallStore } from "@plue/tools/calls";
import { storedRateLimits } from "@plue/tools/hono";

const WINDOW = { limit: 5, windowMs: 1_000 };

describe("storedRateLimits()", () => {
  it("counts together with others on the same store, also at once", async () => {
    const store = memoryCallStore();
    const limits = [storedRateLimits(store), storedRateLimits(store)];
    const taken = await Promise.all(
      Array.from({ length: 10 }, (_, index) => limits[index % 2]?.take("ann", 1, WINDOW)),
    );
    assertEquals(taken.map((answer) => answer?.count).toSorted(), [1, 2, 3, 4, 5, 6, 6, 6, 6, 6]);
    assertEquals((await limits[0]?.take("bob", 1, WINDOW))?.count, 1);
  });

  it("takes nothing for 0, and nothing beyond the limit", async () => {
    const limits = storedRateLimits(memoryCallStore());
    assertEquals((await limits.take("ann", 0, WINDOW)).count, 0);
    assertEquals((await limits.take("ann", 4, WINDOW)).count, 4);
    assertEquals((await limits.take("ann", 2, WINDOW)).count, 6);
    assertEquals((await limits.take("ann", 1, WINDOW)).count, 5);
  });

  it("opens a window when the one before has ended", async () => {
    const clock = { now: 1_000_000, timestamp: () => clock.now };
    const limits = storedRateLimits(memoryCallStore({ clock }), clock);
    assertEquals(await limits.take("ann", 5, WINDOW), { count: 5, resetMs: 1_000 });
    clock.now += 999;
    assertEquals(await limits.take("ann", 1, WINDOW), { count: 6, resetMs: 1 });
    clock.now += 1;
    assertEquals(await limits.take("ann", 1, WINDOW), { count: 1, resetMs: 1_000 });
  });

  it("rejects when others count all the time", async () => {
    const update = (): Promise<undefined> => Promise.resolve(undefined);
    const limits = storedRateLimits({ ...memoryCallStore(), update });
    await limits.take("ann", 1, WINDOW);
    await assertRejects(
      () => Promise.resolve(limits.take("ann", 1, WINDOW)),
      Error,
      "others count",
    );
  });
});
