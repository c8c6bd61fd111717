import { assert, assertEquals, assertFalse } from "@std/assert";
import { describe, it } from "bun:test";
import { exchangeTokens } from "../../../src/adapters/credentials/mod.ts";
import * as oauth from "../../../src/adapters/credentials/provider.ts";
import { serve } from "../../runtime/serve.ts";

/** Returns the tokens, or the error, of a server that sends this JSON, or answers like this. */
async function tokensFrom(
  answer: string | ((request: Request) => Response | Promise<Response>),
  options: Partial<oauth.OAuthProvider> = {},
  scopes?: readonly string[],
): Promise<Partial<oauth.Tokens & Error & { isRefused: boolean }>> {
  const served = await serve(typeof answer === "string" ? () => new Response(answer) : answer);
  const about = { tokenEndpoint: served.url, clientId: "plue", ...options };
  const client = new oauth.ProviderClient("test", "hub", about);
  const tokens = await client.grant("refresh_token", {}, scopes).catch((error: Error) => error);
  await served.stop();
  return tokens;
}

describe("ProviderClient", () => {
  it("asks a person again only if the server refuses the grant, whatever the status of its answer", async () => {
    const answers = [
      [400, "invalid_grant", true],
      [400, { errors: ["a name in another member"] }, true],
      [404, { errors: ["a name in another member"] }, false],
      [200, "bad_refresh_token", true],
      [403, "unauthorized_client", true],
      [401, "unauthorized_client", false],
      [400, "invalid_client", false],
      [200, "incorrect_client_credentials", false],
      [400, "server_error", false],
      [400, "unknown_error", false],
      [200, "internal_error", false],
      [200, "ratelimited", false],
      [429, "too_many_requests", false],
      [403, "Forbidden", false],
      [401, "Unauthorized", false],
    ] as const;
    // As GitLab, and other servers with Doorkeeper, describe every error.
    const headers = { "www-authenticate": 'Bearer realm="Doorkeeper", error="invalid_grant"' };
    for (const [status, error, wanted] of answers) {
      const { isRefused } = await tokensFrom(() => Response.json({ error }, { status, headers }));
      assertEquals(isRefused, wanted, String(error));
    }
    const page = await tokensFrom(() => new Response("<h1>400 Bad Request</h1>", { status: 400 }));
    assertFalse(page.isRefused);
  });

  it("rejects a response that does not end in time, even if fetch ignores its signal", async () => {
    const { fetch, AbortSignal: { timeout } } = globalThis;
    const late = new AbortController();
    const about = { tokenEndpoint: "https://example.com/token", clientId: "plue" };
    const client = new oauth.ProviderClient("test", "hub", about);
    const message = await new Promise((resolve) => {
      AbortSignal.timeout = () => late.signal;
      globalThis.fetch = Object.assign(() => {
        setTimeout(() => late.abort());
        setTimeout(() => setTimeout(resolve, 0, "it waits"));
        return Promise.resolve(new Response(new ReadableStream()));
      }, fetch);
      client.refresh("token").catch((error) => resolve(error.message));
    }).finally(() => {
      Object.assign(globalThis, { fetch });
      AbortSignal.timeout = timeout;
    });
    assertEquals(message, 'Cannot get a token of "hub": no answer');
  });

  it("sends a client and its secret so that a server need not decode them, if they have no reserved characters", async () => {
    const sent: (string | null)[] = [];
    for (const clientSecret of ["a-b_c.~27", "a b:%"]) {
      await tokensFrom(({ headers }) => {
        sent.push(headers.get("authorization"));
        return Response.json({});
      }, { clientId: "Iv1.a-b", clientSecret });
    }
    const pairs = ["Iv1.a-b:a-b_c.~27", "Iv1.a-b:a%20b%3A%25"];
    assertEquals(sent, pairs.map((pair) => `Basic ${btoa(pair)}`));
  });

  it("sends a client in the body with the option post or without a secret, and scopes if there are some", async () => {
    const sent: unknown[] = [];
    const clients = [{}, { clientSecret: "s", clientAuthentication: "post" }] as const;
    for (const client of clients) {
      for (const scopes of [[], ["a", "b"]]) {
        await tokensFrom(
          async (request) => {
            const fields = new URLSearchParams(await request.text());
            fields.delete("grant_type");
            sent.push([request.headers.get("authorization"), Object.fromEntries(fields)]);
            return Response.json({});
          },
          client,
          scopes,
        );
      }
    }
    const [open, secret] = [{ client_id: "plue" }, { client_id: "plue", client_secret: "s" }];
    const bodies = [open, { ...open, scope: "a b" }, secret, { ...secret, scope: "a b" }];
    assertEquals(sent, bodies.map((body) => [null, body]));
  });

  it("names the resource in each request, but no other parameter of the authorization", async () => {
    const sent: (string | null)[] = [];
    const served = await serve(async (request) => {
      const fields = new URLSearchParams(await request.text());
      sent.push(fields.get("resource"), fields.get("prompt"));
      return Response.json({ access_token: "token" });
    });
    const parameters = { resource: "https://mcp.example.com/", prompt: "consent" };
    const about = { tokenEndpoint: served.url, clientId: "plue", parameters };
    const client = new oauth.ProviderClient("test", "hub", about);
    const callback = new URLSearchParams({ code: "c", state: "s" });
    await client.exchangeCode(callback, "http://127.0.0.1/callback", "verifier");
    await client.refresh("token");
    assertEquals(sent, [parameters.resource, null, parameters.resource, null]);
    await served.stop();
  });

  it("uses a token with the lifetime 0 until a service rejects it", async () => {
    const json = '{ "access_token": "token", "token_type": "bearer", "expires_in": 0 }';
    assertEquals((await tokensFrom(json)).staleAt, undefined);
  });

  it("takes a token of any type, with status 201, a list of scopes, null, and any ID token", async () => {
    const claims = btoa(JSON.stringify({ iss: "https://accounts.example.com", aud: "plue" }));
    const input = { access_token: "token", expires_in: null, refresh_token: null, scope: ["repo"] };
    for (const token_type of [undefined, "bot", "User Access Token"]) {
      const json = JSON.stringify({ ...input, token_type, id_token: `e30.${claims}.x` });
      assertEquals((await tokensFrom(() => new Response(json, { status: 201 }))).token, "token");
    }
  });

  it("takes a token with empty texts and a lifetime below 0, as if they were absent", async () => {
    for (const expires_in of [-1, "-1", ""]) {
      const json = JSON.stringify({
        access_token: "token",
        expires_in,
        refresh_token: "",
        scope: "",
      });
      const { token, refresh, expiresAt } = await tokensFrom(json);
      assertEquals([token, refresh, expiresAt], ["token", undefined, undefined]);
    }
  });

  it("replaces a token half a minute before its expiry, or after half of a short lifetime", async () => {
    for (const [expires_in, stale] of [[3_600, 3_570], [40, 20], [0.5, 0.5]]) {
      const start = Date.now();
      const json = JSON.stringify({ access_token: "token", expires_in });
      const { expiresAt = 0, staleAt = 0 } = await tokensFrom(json);
      const end = Date.now();
      const lifetime = Math.max(Number(expires_in), 1) * 1_000;
      assert(start + lifetime <= expiresAt && expiresAt <= end + lifetime);
      assertEquals(expiresAt - staleAt, lifetime - Number(stale) * 1_000);
    }
  });

  it("does not refresh a token at once, however short or long its lifetime is", async () => {
    for (const lifetime of ["1e-9", "1e308"]) {
      const json = `{ "access_token": "token", "token_type": "bearer", "expires_in": ${lifetime} }`;
      const stored = JSON.parse(JSON.stringify(await tokensFrom(json)));
      assertFalse(oauth.isStale(stored), lifetime);
    }
  });

  it("rejects a token that does not fit into a header, without the token in the error", async () => {
    const json = JSON.stringify({ access_token: "secret token", token_type: "bearer" });
    const { message } = await tokensFrom(json);
    assertEquals(message, 'Cannot get a token of "hub": its token is invalid');
  });

  it("does not repeat a token that the server sends as the name of an error", async () => {
    const { message } = await tokensFrom('{ "error": "secret-token-1" }');
    assertEquals(message, 'Cannot get a token of "hub": an error without a name');
  });
});

describe("exchangeTokens()", () => {
  it("exchanges the caller's access token again shortly before the new token expires", async () => {
    const sent: (string | null)[] = [];
    const served = await serve(async (request) => {
      sent.push(new URLSearchParams(await request.text()).get("subject_token_type"));
      return Response.json({ access_token: `token${sent.length}`, expires_in: 60 });
    });
    const providers = { hub: { tokenEndpoint: served.url, clientId: "plue" } };
    const source = exchangeTokens({ providers, subjectToken: () => "token of ann" });
    const signal = new AbortController().signal;
    const about = { principal: "ann", tenant: undefined, scopes: [], context: {}, services: {} };
    const token = async () => Object(await source.get("hub", { ...about, signal })).token;
    assertEquals([await token(), await token()], ["token1", "token1"]);
    const { now } = Date;
    try {
      Date.now = () => now() + 31_000;
      assertEquals([await token(), await token()], ["token2", "token2"]);
    } finally {
      Date.now = now;
    }
    const type = "urn:ietf:params:oauth:token-type:access_token";
    assertEquals(sent, [type, type]);
    await served.stop();
  });
});
