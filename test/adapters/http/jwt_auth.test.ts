import { describe, it } from "bun:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { sign } from "hono/jwt";
import {
  type Caller,
  createToolHandler,
  jwtAuth,
  type JwtAuthOptions,
  type NamedKey,
  remoteKeys,
} from "@plue/tools/hono";
import { BASE, problemOf, sampleRegistry } from "../hono/support.ts";
import { IS_WORKERS } from "../../../src/adapters/http/runtime.ts";
import { AUDIENCE, bearer, createIssuer, forge, ISSUER, NOW, SECONDS } from "./tokens.ts";

const issuer = await createIssuer();
const [publicKey] = issuer.keys as [NamedKey];
const OPTIONS: JwtAuthOptions = {
  keys: issuer.keys,
  issuer: ISSUER,
  audience: AUDIENCE,
  now: () => NOW,
};

/** The caller, or the status of the answer. */
async function ask(token: string, options: Partial<JwtAuthOptions> = {}): Promise<Caller | number> {
  const authorize = jwtAuth({ ...OPTIONS, ...options });
  const answer = await authorize(new Request("http://localhost/", { headers: bearer(token) }));
  return answer instanceof Response ? answer.status : answer;
}

describe("jwtAuth()", () => {
  it("prefers the key that a token names to one without a name", async () => {
    const other = await createIssuer("k2");
    const { kid: _, ...nameless } = other.keys[0] as NamedKey;
    const keys = [nameless, publicKey];
    assertEquals(typeof await ask(await issuer.token(), { keys }), "object");
    assertEquals(typeof await ask(await other.token(), { keys }), "object");
    assertEquals(await ask(await other.token(), { keys: [{ ...nameless, kid: "k1" }] }), 401);
  });

  it("takes a token in the one way to write it", async () => {
    const token = await issuer.token();
    const [head, claims, signature = ""] = token.split(".");
    assertEquals(typeof await ask(token), "object");
    const last = signature.at(-1) ?? "";
    // 86 characters have four bits more than the 64 bytes of the signature.
    const next = String.fromCharCode(last.charCodeAt(0) + 1);
    for (const other of [`${signature}==`, `${signature}=`, signature.slice(0, -1) + next]) {
      assertEquals(await ask(`${head}.${claims}.${other}`), 401);
    }
  });

  it("makes a caller of the claims", async () => {
    assertEquals(await ask(await issuer.token({ role: "control", scope: "a b  c" })), {
      scopes: ["a", "b", "c"],
      role: "control",
      principal: "ann",
      expiresAt: NOW + 60_000,
    });
  });

  it("reads the configured claims, and lists of scopes", async () => {
    const token = await issuer.token({ scp: ["a", 5, "b"], job: "impl", scope: "no" });
    const caller = await ask(token, { scopeClaim: "scp", roleClaim: "job" }) as Caller;
    assertEquals([caller.scopes, caller.role], [["a", "b"], "impl"]);
  });

  it("gives callers no role or scopes that the token does not have", async () => {
    for (
      const claims of [{}, { role: 5, scope: 5 }, { role: ["control"] }, { role: "", scope: "" }]
    ) {
      const caller = await ask(await issuer.token(claims)) as Caller;
      assertEquals([caller.scopes, caller.role], [[], undefined]);
    }
    const inherited = await ask(await issuer.token(), { roleClaim: "constructor" }) as Caller;
    assertEquals(inherited.role, undefined);
  });

  it("uses the caller that toCaller returns, or rejects the token", async () => {
    const toCaller: NonNullable<JwtAuthOptions["toCaller"]> = ({ sub, team }) =>
      team === "ops" ? { principal: `ops/${sub}`, maxRisk: "low" } : undefined;
    assertEquals(await ask(await issuer.token({ team: "ops" }), { toCaller }), {
      principal: "ops/ann",
      maxRisk: "low",
      expiresAt: NOW + 60_000,
    });
    assertEquals(await ask(await issuer.token({ team: "dev" }), { toCaller }), 401);
  });

  it("reads the principal from the configured claim, even if toCaller returns none", async () => {
    const token = await issuer.token({ client_id: "cron" });
    const by = { principalClaim: "client_id" };
    assertEquals((await ask(token, by) as Caller).principal, "cron");
    const toCaller = (): Caller => ({ maxRisk: "low" });
    assertEquals((await ask(token, { ...by, toCaller }) as Caller).principal, "cron");
    assertEquals((await ask(token, { toCaller }) as Caller).principal, "ann");
    const named = (): Caller => ({ principal: "given" });
    const nameless = await issuer.token({ sub: undefined });
    assertEquals((await ask(nameless, { toCaller: named }) as Caller).principal, "given");
    assertEquals(await ask(nameless, { toCaller }), 401);
  });

  it("lets the handler return 503 while the issuer's keys cannot be fetched, and logs the reason", async () => {
    const errors: unknown[] = [];
    const app = createToolHandler(sampleRegistry(), {
      authorize: jwtAuth({
        ...OPTIONS,
        keys: remoteKeys(`${ISSUER}/jwks`, {
          fetch: () => Promise.reject(new Error("no route to host")),
        }),
      }),
      onError: (error) => void errors.push(error),
    });
    const headers = bearer(await issuer.token());
    const response = await app.request(`${BASE}/tools`, { headers });
    assertEquals([response.status, response.headers.get("retry-after")], [503, "5"]);
    const { code, retryable } = await problemOf(response);
    assertEquals([code, retryable], ["issuer_unavailable", true]);
    const [error] = errors;
    assert(error instanceof Error && error.cause instanceof Error);
    assertEquals(error.cause.message, "no route to host");
    // A malformed token is rejected with any keys.
    assertEquals((await app.request(`${BASE}/tools`, { headers: bearer("sesame") })).status, 401);
  });

  for (
    const [what, claims] of [
      ["says no end", { exp: undefined }],
      ["has ended", { exp: SECONDS - 6 }],
      ["ends at a word", { exp: "tomorrow" }],
      ["does not begin yet", { nbf: SECONDS + 6 }],
      ["was made in the future", { iat: SECONDS + 6 }],
      ["names nobody", { sub: undefined }],
      ["has an empty name", { sub: "" }],
      ["has a number for a name", { sub: 5 }],
      ["is another issuer's", { iss: "https://other.example" }],
      ["names no issuer", { iss: undefined }],
      ["is for nobody", { aud: undefined }],
      ["is for others", { aud: ["https://a.example", "https://b.example"] }],
      ["is for a longer name", { aud: `${AUDIENCE}/mcp` }],
    ] as const
  ) {
    it(`rejects a token that ${what}`, async () => {
      assertEquals(await ask(await issuer.token(claims)), 401);
    });
  }

  it("tolerates clocks that differ by a few seconds, or by the configured tolerance", async () => {
    const late = await issuer.token({ exp: SECONDS - 4 });
    assertEquals(typeof await ask(late), "object");
    assertEquals(await ask(late, { clockToleranceS: 0 }), 401);
  });

  it("takes one of several audiences, on either side", async () => {
    const token = await issuer.token({ aud: ["https://x.example", AUDIENCE] });
    assertEquals(typeof await ask(token), "object");
    assertEquals(typeof await ask(token, { audience: ["https://x.example"] }), "object");
  });

  it("takes access tokens by their type, and no token of another type", async () => {
    const good = await issuer.token();
    const [, claims = "", signature = ""] = good.split(".");
    assertEquals(typeof await ask(good), "object");
    // The signature does not fit these headers either; the type is looked at first.
    const typed = forge({ alg: "ES256", typ: "secevent+jwt", kid: "k1" }, {}).split(".")[0];
    assertEquals(await ask(`${typed}.${claims}.${signature}`), 401);
  });

  it("rejects a token without a signature, or signed with the public key as a secret", async () => {
    const claims = { iss: ISSUER, aud: AUDIENCE, exp: SECONDS + 60, role: "control" };
    assertEquals(await ask(forge({ alg: "none", typ: "JWT" }, claims)), 401);
    assertEquals(await ask(forge({ alg: "ES256", typ: "JWT", kid: "k1" }, claims)), 401);
    const confused = await sign(claims, JSON.stringify(publicKey), "HS256");
    assertEquals(await ask(confused), 401);
    assertEquals(await ask(confused, { algorithms: ["ES256"] }), 401);
  });

  it("rejects texts that are not tokens, and does not echo them", async () => {
    for (
      const token of [
        "a",
        "a.b",
        "a.b.c",
        "..",
        "a.b.c.d",
        forge(null, null),
        forge([], 5, "AA"),
        forge({ alg: "ES256", kid: 5 }, {}),
        forge({ alg: "constructor" }, {}),
        `${"a".repeat(9_000)}.b.c`,
      ]
    ) assertEquals(await ask(token), 401, token.slice(0, 40));
  });

  it("rejects a changed token", async () => {
    const [header, , signature] = (await issuer.token({ role: "impl" })).split(".");
    const [, claims] = (await issuer.token({ role: "control" })).split(".");
    assertEquals(await ask(`${header}.${claims}.${signature}`), 401);
  });

  it("requires the scopes of requiredScopes", async () => {
    const authorize = jwtAuth({ ...OPTIONS, requiredScopes: ["tools", "more"] });
    const answer = await authorize(
      new Request("http://localhost/", { headers: bearer(await issuer.token({ scope: "tools" })) }),
    );
    assert(answer instanceof Response);
    assertEquals([answer.status, answer.headers.get("www-authenticate")], [
      403,
      'Bearer error="insufficient_scope", scope="tools more"',
    ]);
  });

  it("takes a shared secret, whatever words are in it", async () => {
    const secret = "PUBLIC or PRIVATE, a secret is one.";
    const claims = { aud: AUDIENCE, exp: SECONDS + 60, sub: "ann" };
    const shared: JwtAuthOptions = { secret, audience: AUDIENCE, now: () => NOW };
    const headers = bearer(
      await sign(claims, {
        kty: "oct",
        k: btoa(secret).replaceAll("=", "").replaceAll("+", "-").replaceAll("/", "_"),
        alg: "HS256",
      } as never),
    );
    const answer = await jwtAuth(shared)(new Request("http://localhost/", { headers })) as Caller;
    assertEquals(answer.principal, "ann");
    const other = await jwtAuth({ ...shared, secret: `${secret}.` })(
      new Request("http://localhost/", { headers }),
    ) as Response;
    assertEquals(other.status, 401);
  });

  for (
    const [what, options] of [
      ["no keys", { keys: undefined }],
      ["an empty list of keys", { keys: [] }],
      ["keys and a secret", { secret: "x".repeat(32) }],
      ["a shared secret among the keys", { keys: [{ kty: "oct", k: "AA" }] }],
      ["a short secret", { keys: undefined, secret: "short" }],
      ["no issuer", { issuer: undefined }],
      ["no audience", { audience: undefined }],
      ["an empty audience", { audience: "" }],
      ["no audiences", { audience: [] }],
      ["HS256 with public keys", { algorithms: ["HS256"] }],
      ["no algorithms", { algorithms: [] }],
      ["none", { algorithms: ["none"] }],
      ["a tolerance without end", { clockToleranceS: Infinity }],
      ["keys over http", { keys: undefined, jwksUrl: "http://issuer.example/jwks" }],
      ["a resource that is no URL", { resource: "tools" }],
    ] as const
  ) {
    it(`rejects ${what}`, () => {
      assertThrows(() => jwtAuth({ ...OPTIONS, ...options } as JwtAuthOptions), Error, "Cannot ");
    });
  }
});

describe("remoteKeys()", () => {
  const URL = "https://issuer.example/jwks";

  function fakeIssuer(answers: (() => Response)[]) {
    let now = 0;
    const asked: string[] = [];
    const source = remoteKeys(URL, {
      now: () => now,
      fetch: (url) => {
        asked.push(url);
        const answer = answers[Math.min(asked.length, answers.length) - 1];
        return Promise.resolve(answer?.() ?? new Response(null, { status: 500 }));
      },
    });
    return { source, asked, pass: (ms: number) => void (now += ms) };
  }
  const keys = (...kids: string[]) => () =>
    Response.json({ keys: kids.map((kid) => ({ kty: "EC", kid })) });
  const kidsOf = (list: readonly NamedKey[]) => list.map(({ kid }) => kid);

  it("fetches once, and again when the keys are old", async () => {
    const { source, asked, pass } = fakeIssuer([keys("a"), keys("b")]);
    assertEquals(kidsOf(await source("a")), ["a"]);
    await source("a");
    assertEquals(asked.length, 1);
    pass(600_000);
    assertEquals(kidsOf(await source("a")), ["b"]);
  });

  for (const hangs of [false, true]) {
    it(`fetches once for many callers, while the issuer ${hangs ? "hangs" : "answers"}`, async () => {
      // In workerd a request cannot wait for the fetch of another one.
      const [fetches, turnedAway] = IS_WORKERS ? [4, 196] : [1, 0];
      let asked = 0;
      let settled = 0;
      const gate = Promise.withResolvers<void>();
      const authorize = jwtAuth({
        ...OPTIONS,
        keys: remoteKeys(URL, {
          timeoutMs: hangs ? 1_000 : 60_000,
          fetch: async () => {
            asked++;
            await gate.promise;
            return Response.json({ keys: issuer.keys });
          },
        }),
      });
      const token = await issuer.token();
      const app = createToolHandler(sampleRegistry(), { authorize });
      const answers = Array.from({ length: 200 }, async () => {
        const response = await app.request(`${BASE}/tools`, { headers: bearer(token) });
        settled++;
        return response;
      });
      while (asked < fetches || settled < turnedAway) {
        await new Promise((turn) => setTimeout(turn));
      }
      if (!hangs) gate.resolve();
      const got = await Promise.all(answers);
      assertEquals(asked, fetches);
      const late = got.filter(({ headers }) => headers.get("retry-after") === "1");
      assertEquals(late.map(({ status }) => status), Array(turnedAway).fill(503));
      const rest = got.filter((response) => !late.includes(response));
      assertEquals(rest.every(({ status }) => status === (hangs ? 503 : 200)), true);
    });
  }

  it("measures time with a clock that does not go back", async () => {
    const { now } = Date;
    Date.now = () => {
      throw new Error("The time of day was read");
    };
    try {
      const source = remoteKeys(URL, { fetch: () => Promise.resolve(keys("k1")()) });
      assertEquals(kidsOf(await source("k1")), ["k1"]);
      assertEquals(kidsOf(await source("k1")), ["k1"]);
    } finally {
      Date.now = now;
    }
  });

  it("fetches for a key that it does not know, but not for every token with one", async () => {
    const { source, asked, pass } = fakeIssuer([keys("a"), keys("a"), keys("a", "b")]);
    await source("a");
    for (let n = 0; n < 10; n++) await source(`made-up-${n}`);
    assertEquals(asked.length, 1);
    pass(30_000);
    await source("b");
    assertEquals(asked.length, 2);
    pass(30_000);
    assertEquals(kidsOf(await source("b")), ["a", "b"]);
  });

  it("keeps old keys while the issuer is down", async () => {
    const { source, pass } = fakeIssuer([keys("a"), () => new Response(null, { status: 503 })]);
    await source("a");
    pass(600_000);
    assertEquals(kidsOf(await source("a")), ["a"]);
  });

  it("does not ask an issuer that is down with every request", async () => {
    const { source, asked, pass } = fakeIssuer([
      () => new Response(null, { status: 302, headers: { location: "http://evil.example" } }),
      keys("a"),
    ]);
    await assertRejects(() => source("a"), Error, "answered 302");
    await assertRejects(() => source("a"), Error, "answered 302");
    assertEquals(asked.length, 1);
    pass(1_000);
    assertEquals(kidsOf(await source("a")), ["a"]);
  });

  it("rejects documents that are not sets of keys, and large ones", async () => {
    for (const body of ["{}", "[]", '{"keys": 5}', "no", "null"]) {
      const { source } = fakeIssuer([() => new Response(body)]);
      await assertRejects(() => source("a"), Error);
    }
    const { source } = fakeIssuer([() => new Response(`{"keys":["${"x".repeat(300_000)}"]}`)]);
    await assertRejects(() => source("a"), Error, "more than 262144 bytes");
  });
});
