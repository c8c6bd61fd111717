import { describe, it } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import * as hono from "@plue/tools/hono";
import { BASE, handler, problemOf, sampleRegistry } from "../hono/support.ts";
import data from "./rate_limit.json" with { type: "json" };

describe("rateLimit", () => {
  function limited(
    limit: number,
    more: Partial<hono.RateLimitOptions> = {},
    options: hono.ToolHandlerOptions = {},
  ) {
    const app = handler({
      ...options,
      authorize: (request) => {
        const principal = request.headers.get("x-who");
        return principal === null ? {} : { principal };
      },
      rateLimit: { limit, windowMs: 60_000, ...more },
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
    let count = 0;
    const app = hono.createToolHandler(sampleRegistry(), {
      authorize: () => new Response(null, { status: 401 }),
      rateLimit: {
        limit: 1,
        windowMs: 1_000,
        store: { take: () => ({ count: ++count, resetMs: 1 }) },
      },
    });
    await app.request(`${BASE}/tools`);
    await app.request(`${BASE}/healthz`);
    assertEquals(count, 0);
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
});

const ANN = "ann's-token-is-long";

function serveLogins(options: Partial<hono.FailedLoginsOptions> = {}) {
  const clock = { now: 0 };
  const app = hono.createToolHandler(sampleRegistry(), {
    authorize: hono.limitFailedLogins(
      hono.bearerAuth({ tokens: new Map([[ANN, { principal: "ann" }]]) }),
      {
        limit: 2,
        windowMs: 60_000,
        store: new hono.MemoryRateLimitStore({ now: () => clock.now }),
        clientAddress: (_, env) => (env as { address?: string }).address,
        ...options,
      },
    ),
  });
  const ask = async (token: string | undefined, address?: string): Promise<Response> =>
    await app.request(
      `${BASE}/tools`,
      token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } },
      address === undefined ? {} : { address },
    );
  const status = async (token: string | undefined, address?: string): Promise<number> =>
    (await ask(token, address)).status;
  return { ask, status, clock };
}

describe("limitFailedLogins()", () => {
  it("rejects all logins while its store does not respond", async () => {
    const { status } = serveLogins({
      store: { take: () => new Promise(() => {}) },
      storeTimeoutMs: 1,
    });
    assertEquals(await status(ANN, "192.0.2.1"), 503);
  });

  it("does not call authorize for an address that failed too often, until the window ends", async () => {
    const { ask, status, clock } = serveLogins();
    assertEquals([await status("guess-1", "192.0.2.1"), await status("guess-2", "192.0.2.1")], [
      401,
      401,
    ]);
    clock.now = 20_000;
    const refused = await ask("guess-3", "192.0.2.1");
    assertEquals([refused.status, refused.headers.get("retry-after")], [429, "40"]);
    assertEquals((await problemOf(refused)).code, "rate_limited");
    assertEquals(await status(ANN, "192.0.2.1"), 429);
    clock.now = 60_000;
    assertEquals(await status(ANN, "192.0.2.1"), 200);
  });

  it("does not affect other or unknown addresses", async () => {
    const { status } = serveLogins();
    for (let n = 0; n < 5; n++) await status("guess", "192.0.2.1");
    assertEquals(await status(ANN, "192.0.2.2"), 200);
    for (let n = 0; n < 5; n++) assertEquals(await status("guess"), 401);
    assertEquals(await status(ANN), 200);
  });

  it("counts neither valid tokens nor requests without a token", async () => {
    const { status } = serveLogins();
    for (let n = 0; n < 5; n++) {
      assertEquals(await status(ANN, "192.0.2.1"), 200);
      assertEquals(await status(undefined, "192.0.2.1"), 401);
    }
  });

  it("reveals no more failures than its limit to concurrent guesses", async () => {
    const { status } = serveLogins();
    const statuses = await Promise.all(
      Array.from({ length: 10 }, (_, n) => status(`guess-${n}`, "192.0.2.1")),
    );
    assertEquals(statuses.toSorted(), [401, 401, ...Array(8).fill(429)]);
  });

  for (const [first, second, isOne] of data.addresses as [string, string, boolean][]) {
    it(`counts ${first} and ${second} ${isOne ? "together" : "apart"}`, async () => {
      const { status } = serveLogins({ limit: 1 });
      await status("guess", first);
      assertEquals(await status("guess", second), isOne ? 429 : 401);
    });
  }

  it("reads the header of the option", async () => {
    const limited = hono.limitFailedLogins(() => new Response(null, { status: 401 }), {
      limit: 1,
      windowMs: 1_000,
      header: "x-api-key",
      clientAddress: () => "192.0.2.1",
    });
    const ask = async (headers: Record<string, string>): Promise<number> =>
      (await limited(new Request(BASE, { headers })) as Response).status;
    assertEquals([await ask({ "x-api-key": "1" }), await ask({ "x-api-key": "2" })], [401, 429]);
    assertEquals(await ask({ authorization: "Bearer x" }), 401);
  });

  for (
    const [what, clientAddress] of [
      ["throws", (_: Request, env: { readonly remoteAddr: string }) => env.remoteAddr],
      ["answers null", () => null],
      ["answers nothing in a string", () => ""],
      ["answers an object", () => ({ address: "192.0.2.1" })],
    ] as const
  ) {
    it(`rejects all logins, and logs the error, if clientAddress ${what}`, async () => {
      const reports: unknown[] = [];
      const authorize = hono.limitFailedLogins(() => ({}), {
        limit: 1,
        windowMs: 1,
        clientAddress: clientAddress as hono.FailedLoginsOptions["clientAddress"],
      });
      const app = handler({ authorize, onError: (error) => void reports.push(error) });
      const ask = async (headers: Record<string, string>): Promise<number> =>
        (await app.request(`${BASE}/tools`, { headers }, undefined)).status;
      assertEquals(await ask({ authorization: "Bearer x" }), 500);
      assertStringIncludes(String(reports[0]), "Cannot limit failed logins: ");
      assertStringIncludes(String(reports[0]), "clientAddress");
      assertEquals(await ask({}), 200);
    });
  }

  it("limits a site with a whole /48 to the failures of 16 clients", async () => {
    const { status } = serveLogins({
      store: new hono.MemoryRateLimitStore({ maxKeys: 100, now: () => 0 }),
    });
    assertEquals([await status("guess", "2001:db8:1::1"), await status("guess", "2001:db8:1::1")], [
      401,
      401,
    ]);
    const answers = [];
    for (let subnet = 1; subnet <= 200; subnet++) {
      answers.push(await status("guess", `2001:db8:1:${subnet.toString(16)}::1`));
    }
    assertEquals(answers.filter((answer) => answer === 401).length, 30);
    // The first subnet's count is still stored, and another site is not limited.
    assertEquals(await status("guess", "2001:db8:1::1"), 429);
    assertEquals(await status(ANN, "2001:db8:2::1"), 200);
  });
});
