import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import {
  createToolHandler,
  limitRate,
  type RateLimitOptions,
  type ToolHandlerOptions,
} from "@plue/tools/hono";
import { BASE, handler, sampleRegistry } from "../hono/support.ts";

describe("rateLimit", () => {
  function limited(
    limit: number,
    more: Partial<RateLimitOptions> = {},
    options: ToolHandlerOptions = {},
  ) {
    const app = handler({
      ...options,
      authorize: (request) => {
        const principal = request.headers.get("x-who");
        return principal === null ? {} : { principal };
      },
      rateLimit: {
        limit,
        windowMs: 60_000,
        ...more,
      },
    });
    const ask = async (who?: string): Promise<Response> =>
      await app.request(`${BASE}/tools`, who === undefined ? {} : { headers: { "x-who": who } });
    return { ask };
  }

  it("counts by the key of keyOf", async () => {
    const { ask } = limited(1, { keyOf: (_, request) => new URL(request.url).hostname });
    assertEquals((await ask("ann")).status, 200);
    assertEquals((await ask("bob")).status, 429);
  });

  it("counts neither rejected callers nor health checks", async () => {
    let asked = 0;
    const app = createToolHandler(sampleRegistry(), {
      authorize: () => new Response(null, { status: 401 }),
      rateLimit: {
        limit: 1,
        windowMs: 1_000,
        store: { take: () => ({ count: ++asked, resetMs: 1 }) },
      },
    });
    await app.request(`${BASE}/tools`);
    await app.request(`${BASE}/healthz`);
    assertEquals(asked, 0);
  });

  it("rejects requests when its store fails, hangs or returns invalid counts, and logs the error", async () => {
    for (
      const [take, status] of [
        [() => Promise.reject(new Error("down")), 500],
        [() => new Promise(() => {}), 503],
        [() => ({ count: NaN, resetMs: NaN }), 503],
        [() => ({ count: -Infinity, resetMs: 1 }), 503],
        [() => Promise.resolve({ count: 1, resetMs: Infinity }), 503],
        [() => undefined, 503],
      ] as const
    ) {
      const errors: unknown[] = [];
      const { ask } = limited(5, { store: { take: take as never }, storeTimeoutMs: 1 }, {
        onError: (error) => void errors.push(error),
      });
      const refused = await ask("ann");
      assertEquals([refused.status, refused.headers.get("ratelimit")], [status, null]);
      assertEquals(errors.length, 1);
    }
  });

  for (
    const options of [{ limit: 0, windowMs: 1 }, { limit: 1, windowMs: 0 }, {
      limit: 1.5,
      windowMs: 1,
    }]
  ) {
    it(`rejects ${JSON.stringify(options)}`, () => {
      assertThrows(() => limitRate(options), RangeError);
    });
  }
});
