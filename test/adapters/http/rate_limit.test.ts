import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import {
  createToolHandler,
  limitRate,
  MemoryRateLimitStore,
  type RateLimitOptions,
  serveFormats,
  type ToolHandlerOptions,
} from "@plue/tools/hono";
import * as formats from "@plue/tools/formats";
import { ToolRegistry } from "@plue/tools";
import { BASE, execution, handler, problemOf, sampleRegistry } from "../hono/support.ts";
import { toolOf } from "../../support/tool_of.ts";

describe("rateLimit", () => {
  function limited(
    limit: number,
    more: Partial<RateLimitOptions> = {},
    options: ToolHandlerOptions = {},
  ) {
    const clock = { now: 0 };
    const app = handler({
      ...options,
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

  it("sends the remaining number, and rejects further requests", async () => {
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

describe("rateLimit of a turn", () => {
  function serve(limit: number) {
    const ran: string[] = [];
    const registry = new ToolRegistry({
      tools: [
        toolOf("note", () => void ran.push("note"), { risk: "safe" }),
      ],
    });
    const app = createToolHandler(registry, {
      openExecution: true,
      formats: serveFormats(formats),
      rateLimit: { limit, windowMs: 60_000, store: new MemoryRateLimitStore({ now: () => 0 }) },
    });
    const turn = async (calls: number): Promise<Response> =>
      await app.request(
        `${BASE}/dispatch/openai.chat`,
        execution({
          role: "assistant",
          tool_calls: Array.from({ length: calls }, (_, index) => ({
            id: `call_${index}`,
            type: "function",
            function: { name: "note", arguments: "{}" },
          })),
        }),
      );
    return { app, turn, ran };
  }
  const left = (response: Response): string | null => response.headers.get("ratelimit");

  it("counts each of its calls, and one for a turn without calls", async () => {
    const { turn } = serve(10);
    assertEquals(left(await turn(4)), '"default";r=6;t=60');
    assertEquals(left(await turn(1)), '"default";r=5;t=60');
    assertEquals(left(await turn(0)), '"default";r=4;t=60');
  });

  it("runs none of more calls than are left, and takes no more than the request for it", async () => {
    const { app, turn, ran } = serve(5);
    const refused = await turn(6);
    assertEquals([refused.status, left(refused), ran.length], [429, '"default";r=4;t=60', 0]);
    assertEquals(refused.headers.get("retry-after"), "60");
    const { detail, retryable } = await problemOf(refused);
    assertEquals([detail, retryable], [
      "None of the 6 calls ran: 4 are allowed in the next 60 s, and 5 in every 60 s",
      // However long it waits.
      false,
    ]);
    assertEquals([(await turn(4)).status, ran.length], [200, 4]);
    const later = await turn(2);
    assertEquals([later.status, (await problemOf(later)).retryable], [429, true]);
    assertEquals((await app.request(`${BASE}/tools`)).status, 429);
  });
});
