import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import {
  createRateLimiter,
  createToolHandler,
  MemoryRateLimitStore,
  type RateLimitOptions,
} from "@plue/tools/hono";
import { BASE, handler, problemOf, sampleRegistry } from "./support.ts";

describe("rateLimit", () => {
  function limited(limit: number, more: Partial<RateLimitOptions> = {}) {
    const clock = { now: 0 };
    const app = handler({
      authorize: (request) => {
        const principal = request.headers.get("x-who");
        return principal === null ? {} : { principal };
      },
      rateLimit: {
        limit,
        windowMs: 60_000,
        store: new MemoryRateLimitStore({ now: () => clock.now }),
        ...more,
      },
    });
    const ask = async (who?: string): Promise<Response> =>
      await app.request(`${BASE}/tools`, who === undefined ? {} : { headers: { "x-who": who } });
    return { app, ask, clock };
  }

  it("says how much is left, and refuses what is too much", async () => {
    const { ask, clock } = limited(2);
    const headers = (response: Response) => [
      response.status,
      response.headers.get("ratelimit-policy"),
      response.headers.get("ratelimit"),
    ];
    const policy = '"default";q=2;w=60';
    assertEquals(headers(await ask("ann")), [200, policy, '"default";r=1;t=60']);
    clock.now = 20_500;
    assertEquals(headers(await ask("ann")), [200, policy, '"default";r=0;t=40']);
    const refused = await ask("ann");
    assertEquals(headers(refused), [429, policy, '"default";r=0;t=40']);
    assertEquals(refused.headers.get("retry-after"), "40");
    assertEquals((await problemOf(refused)).retryable, true);
    clock.now = 60_000;
    assertEquals((await ask("ann")).status, 200);
  });

  it("counts each principal by itself, and callers without one together", async () => {
    const { ask } = limited(1);
    assertEquals((await ask("ann")).status, 200);
    assertEquals((await ask("bob")).status, 200);
    assertEquals((await ask()).status, 200);
    assertEquals((await ask()).status, 429);
    assertEquals((await ask("ann")).status, 429);
  });

  it("counts by the key that it is told", async () => {
    const { ask } = limited(1, { keyOf: (_, request) => new URL(request.url).hostname });
    assertEquals((await ask("ann")).status, 200);
    assertEquals((await ask("bob")).status, 429);
  });

  it("does not count those who are turned away, nor health checks", async () => {
    let asked = 0;
    const app = createToolHandler(sampleRegistry(), {
      authorize: () => new Response(null, { status: 401 }),
      rateLimit: {
        limit: 1,
        windowMs: 1_000,
        store: { count: () => ({ count: ++asked, resetMs: 1 }) },
      },
    });
    await app.request(`${BASE}/tools`);
    await app.request(`${BASE}/healthz`);
    assertEquals(asked, 0);
  });

  it("refuses when its store breaks, or answers nonsense", async () => {
    for (
      const count of [
        () => Promise.reject(new Error("down")),
        () => ({ count: NaN, resetMs: NaN }),
      ]
    ) {
      const { ask } = limited(5, { store: { count } });
      assertEquals((await ask("ann")).status >= 429, true);
    }
  });

  for (
    const options of [{ limit: 0, windowMs: 1 }, { limit: 1, windowMs: 0 }, {
      limit: 1.5,
      windowMs: 1,
    }]
  ) {
    it(`refuses ${JSON.stringify(options)}`, () => {
      assertThrows(() => createRateLimiter(options), TypeError);
    });
  }
});

describe("MemoryRateLimitStore", () => {
  it("keeps no more keys than its limit, and forgets the oldest window first", () => {
    const store = new MemoryRateLimitStore({ maxKeys: 2, now: () => 0 });
    store.count("a", 1_000);
    store.count("b", 1_000);
    store.count("c", 1_000);
    assertEquals(store.count("b", 1_000).count, 2);
    assertEquals(store.count("a", 1_000).count, 1);
    assertEquals(store.count("c", 1_000).count, 2);
  });

  it("opens a new window when the old one has ended", () => {
    let now = 0;
    const store = new MemoryRateLimitStore({ now: () => now });
    store.count("a", 100);
    now = 99;
    assertEquals(store.count("a", 100), { count: 2, resetMs: 1 });
    now = 100;
    assertEquals(store.count("a", 100), { count: 1, resetMs: 100 });
  });

  it("takes any name for a key", () => {
    const store = new MemoryRateLimitStore({ now: () => 0 });
    for (const key of ["__proto__", "constructor", ""]) {
      assertEquals(store.count(key, 1_000).count, 1);
    }
  });

  it("refuses to keep no keys", () => {
    assertThrows(() => new MemoryRateLimitStore({ maxKeys: 0 }), TypeError);
  });
});
