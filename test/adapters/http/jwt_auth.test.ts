import { describe, it } from "bun:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { sign } from "hono/jwt";
import {
  type Caller,
  createToolHandler,
  jwtAuth,
  type JwtAuthOptions,
  type NamedKey,
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

/** Authorizes a token. Returns the caller, or the status of the rejection. */
async function ask(token: string, options: Partial<JwtAuthOptions> = {}): Promise<Caller | number> {
  const authorize = jwtAuth({ ...OPTIONS, ...options });
  const answer = await authorize(new Request("http://localhost/", { headers: bearer(token) }));
  return answer instanceof Response ? answer.status : answer;
}

describe("jwtAuth()", () => {
  it("verifies a token only with the key that the token names", async () => {
    const other = await createIssuer("k2");
    const keys = [...other.keys, publicKey];
    assertEquals(typeof await ask(await issuer.token(), { keys }), "object");
    assertEquals(typeof await ask(await other.token(), { keys }), "object");
    const renamed = other.keys.map((key) => ({ ...key, kid: "k1" }));
    assertEquals(await ask(await other.token(), { keys: renamed }), 401);
  });

  it("rejects other encodings of a valid token", async () => {
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

  it("creates a caller from the claims", async () => {
    for (const scope of ["a b  c", ["a", 5, "b", "c"]]) {
      assertEquals(await ask(await issuer.token({ role: "control", scope })), {
        scopes: ["a", "b", "c"],
        role: "control",
        principal: "ann",
        expiresAt: NOW + 60_000,
      });
    }
  });

  it("grants only the role and scopes of the token", async () => {
    for (
      const claims of [{}, { role: 5, scope: 5 }, { role: ["control"] }, { role: "", scope: "" }]
    ) {
      const caller = await ask(await issuer.token(claims)) as Caller;
      assertEquals([caller.scopes, caller.role], [[], undefined]);
    }
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
    for (const wrong of [false, null, "ann"]) {
      const token = await issuer.token();
      await assertRejects(() => ask(token, { toCaller: () => wrong as never }), TypeError);
    }
  });

  it("names the caller by sub, unless toCaller returns a principal", async () => {
    const toCaller = (): Caller => ({ maxRisk: "low" });
    assertEquals((await ask(await issuer.token(), { toCaller }) as Caller).principal, "ann");
    const named = (): Caller => ({ principal: "given" });
    const nameless = await issuer.token({ sub: undefined });
    assertEquals((await ask(nameless, { toCaller: named }) as Caller).principal, "given");
    assertEquals(await ask(nameless, { toCaller }), 401);
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

  it("accepts one common audience of several", async () => {
    const token = await issuer.token({ aud: ["https://x.example", AUDIENCE] });
    assertEquals(typeof await ask(token), "object");
    assertEquals(typeof await ask(token, { audience: ["https://x.example"] }), "object");
  });

  it("accepts tokens of the access token types only", async () => {
    const good = await issuer.token();
    const [, claims = "", signature = ""] = good.split(".");
    assertEquals(typeof await ask(good), "object");
    // The signature is invalid for these headers too, but the type is checked first.
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

  it("rejects changed tokens and texts that are not tokens", async () => {
    const [header, , signature] = (await issuer.token({ role: "impl" })).split(".");
    const [, claims] = (await issuer.token({ role: "control" })).split(".");
    for (
      const token of [
        `${header}.${claims}.${signature}`,
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

  it("accepts any text as a shared secret", async () => {
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
});

describe("jwtAuth({ jwksUrl })", () => {
  const { keys: _, ...rest } = OPTIONS;
  const remote = { ...rest, jwksUrl: `${ISSUER}/jwks` };
  const KEYS = () => Response.json({ keys: issuer.keys });

  /** Runs a test with a clock and the given responses of the issuer. The last one is repeated. */
  async function withIssuer(
    answers: readonly (() => Response | Promise<Response>)[],
    test: (issuer: { readonly count: () => number; pass(ms: number): void }) => Promise<void>,
  ): Promise<void> {
    const { fetch } = globalThis;
    const { now } = Date;
    let passed = 0;
    let count = 0;
    Date.now = () => now() + passed;
    globalThis.fetch =
      (async () =>
        await answers[Math.min(count++, answers.length - 1)]?.()) as unknown as typeof fetch;
    try {
      await test({ count: () => count, pass: (ms) => void (passed += ms) });
    } finally {
      Object.assign(globalThis, { fetch });
      Object.assign(Date, { now });
    }
  }

  function serve(errors: unknown[] = []) {
    const app = createToolHandler(sampleRegistry(), {
      authorize: jwtAuth(remote),
      onError: (error) => void errors.push(error),
    });
    return async (token: string): Promise<Response> =>
      await app.request(`${BASE}/tools`, { headers: bearer(token) });
  }

  it("fetches the keys once, again when they are old, and once for many callers", async () => {
    const token = await issuer.token();
    await withIssuer([KEYS], async ({ count, pass }) => {
      const send = serve();
      const answers = await Promise.all(Array.from({ length: 50 }, () => send(token)));
      assertEquals(new Set(answers.map(({ status }) => status)), new Set([200]));
      // In workerd a request cannot wait for the fetch of another one.
      const begun = IS_WORKERS ? 50 : 1;
      assertEquals(count(), begun);
      pass(600_000);
      assertEquals([(await send(token)).status, count()], [200, begun + 1]);
    });
  });

  it("fetches the keys for an unknown key id, but not for every such token", async () => {
    const other = await createIssuer("k2");
    const both = () => Response.json({ keys: [...issuer.keys, ...other.keys] });
    const [token, unknown] = [await issuer.token(), await other.token()];
    await withIssuer([KEYS, both], async ({ count, pass }) => {
      const send = serve();
      assertEquals((await send(token)).status, 200);
      for (let n = 0; n < 3; n++) assertEquals((await send(unknown)).status, 401);
      assertEquals(count(), 1);
      pass(30_000);
      assertEquals([(await send(unknown)).status, count()], [200, 2]);
    });
  });

  it("uses the old keys while the issuer is down, and does not fetch at every request", async () => {
    const token = await issuer.token();
    await withIssuer([KEYS, () => new Response(null, { status: 503 })], async ({ count, pass }) => {
      const send = serve();
      await send(token);
      pass(600_000);
      for (let n = 0; n < 3; n++) assertEquals((await send(token)).status, 200);
      assertEquals(count(), 2);
      pass(30_000);
      assertEquals([(await send(token)).status, count()], [200, 3]);
    });
  });

  it("answers 503 without keys, logs the reason, and fetches again after a second", async () => {
    const token = await issuer.token();
    for (
      const fail of [
        () => Promise.reject(new Error("no route to host")),
        () => new Response(null, { status: 302, headers: { location: "http://evil.example" } }),
        ...["{}", "[]", '{"keys": 5}', "no", "null"].map((body) => () => new Response(body)),
      ]
    ) {
      await withIssuer([fail, KEYS], async ({ count, pass }) => {
        const errors: unknown[] = [];
        const send = serve(errors);
        const response = await send(token);
        assertEquals([response.status, response.headers.get("retry-after")], [503, "5"]);
        const { code, retryable } = await problemOf(response);
        assertEquals([code, retryable], ["issuer_unavailable", true]);
        assert(errors[0] instanceof Error && errors[0].cause instanceof Error);
        assertEquals([(await send(token)).status, count()], [503, 1]);
        // A malformed token is rejected with any keys.
        assertEquals((await send("sesame")).status, 401);
        pass(1_000);
        assertEquals((await send(token)).status, 200);
      });
    }
  });
});
