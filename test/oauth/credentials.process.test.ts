/** Credentials from a real authorization server, for several callers. */

import { isSuspended } from "@plue/tools";
import { memoryCallStore } from "@plue/tools/calls";
import { oauthCallback } from "@plue/tools/credentials";
import { createToolHandler } from "@plue/tools/hono";
import { assert, assertEquals, assertFalse, assertStringIncludes, assertThrows } from "@std/assert";
import { afterAll, describe, it } from "bun:test";
import { digestOf, encodeJson } from "../../src/execute/durable/mod.ts";
import { createSealer } from "../../src/adapters/http/sealing.ts";
import { serve } from "../runtime/serve.ts";
import { type OAuthServer, startOAuthServer } from "./server.ts";
import * as helpers from "./world.ts";
import { callbackOf, contentOf, KEY, pressedOn, urlIn, type World, worldOf } from "./world.ts";

const server: OAuthServer = await startOAuthServer();
afterAll(async () => await server[Symbol.asyncDispose]());

/** Invalidates the last token that the API has received. The next call notices that. */
async function rejectToken(world: World | undefined, at: OAuthServer = server): Promise<void> {
  await at.invalidate(at.api.at(-1)?.token ?? "");
  assertEquals(await world?.call("ann"), "nobody");
}

/** Returns the keys of the records of principals. */
function keysOf(...principals: readonly string[]): Promise<string[]> {
  return Promise.all(
    principals.map(async (principal) =>
      `credential.${await digestOf(JSON.stringify([null, principal]))}.hub`
    ),
  );
}

const grantsOf = (type: string): number => server.grants.get(type) ?? 0;

describe("oauthCredentials()", () => {
  it("asks a caller once, and then acts as the person who has given permission", async () => {
    const world = worldOf(server);
    assertEquals(await world.permit("ann"), "ann");
    assertEquals(await world.permit("bob", "bob-at-the-hub"), "bob-at-the-hub");
    assertEquals(await world.call("ann"), "ann");
    assertEquals(await world.call("bob"), "bob-at-the-hub");
    assertEquals(await world.call("eve"), "input_required");
    assertEquals(world.reports, []);
  });

  it("continues a waiting call by itself, even if another process has stored the tokens", async () => {
    const store = memoryCallStore();
    const [here, there] = [worldOf(server, { store }), worldOf(server, { store })];
    const callback = oauthCallback(there.source, { confirm: true });
    const result = await here.dispatcher.dispatch({ name: "whoami" }, {
      principal: "ann",
      async onQuestion({ url = "" }) {
        // The person finishes while the call waits.
        const link = await server.open(url, "ann");
        void callback(await pressedOn(await callback(new Request(link)), link));
        return { action: "accept" };
      },
    });
    assertEquals(contentOf(result), "ann");
  });

  it("denies callers without a principal, unless they share one credential on purpose", async () => {
    assertEquals(await worldOf(server).call(), "denied");
    assertEquals(await worldOf(server, { allowAnonymous: true }).call(), "input_required");
  });

  it("asks again for further scopes", async () => {
    const store = memoryCallStore();
    await worldOf(server, { store }).permit("ann");
    const wider = worldOf(server, { store, scopes: ["repo", "user"] });
    const waiting = await wider.dispatcher.dispatch({ name: "whoami" }, { principal: "ann" });
    assertEquals(new URL(urlIn(waiting)).searchParams.get("scope"), "repo user");
    assertStringIncludes(urlIn(waiting), "repo%20user");
  });

  it("refreshes a token once for concurrent calls of two processes, and keeps the new refresh token", async () => {
    const store = memoryCallStore();
    const worlds = [worldOf(server, { store }), worldOf(server, { store })];
    await worlds[0]?.permit("ann");
    for (const round of [1, 2]) {
      await rejectToken(worlds[0]);
      const before = grantsOf("refresh_token");
      const calls = worlds.flatMap((world) => Array.from({ length: 25 }, () => world.call("ann")));
      assertEquals([...new Set(await Promise.all(calls))], ["ann"]);
      assertEquals(grantsOf("refresh_token") - before, 1, `round ${round}`);
    }
  });

  it("asks again at the next call after the tokens were revoked", async () => {
    const world = worldOf(server);
    await world.permit("ann");
    assertEquals(await world.source.revoke("hub", { principal: "ann" }), true);
    assertEquals(await world.source.revoke("hub", { principal: "ann" }), false);
    assertEquals(await world.call("ann"), "input_required");
  });

  it("connects and revokes a caller of a tenant over HTTP", async () => {
    const world = worldOf(server);
    const { registry, dispatcher } = world;
    const ann = { principal: "ann", tenant: "acme" };
    const authorize = () => ann;
    const app = createToolHandler(registry, { authorize, dispatcher });
    const call = async () =>
      await (await app.request("http://localhost/tools/whoami/execute", {
        ...{ method: "POST", body: "{}", headers: { "content-type": "application/json" } },
      })).json();
    const link = await server.open(urlIn(await call()), "ann");
    const callback = oauthCallback(world.source, { authorize });
    assertEquals((await callback(new Request(link))).status, 200);
    assertEquals((await call()).content, "ann");
    assertEquals(await world.source.revoke("hub", ann), true);
    assertEquals((await call()).status, "input_required");
  });

  it("uses the tokens of a tenant only for its callers", async () => {
    const world = worldOf(server);
    await world.permit("ann");
    const call = (context: unknown) =>
      world.dispatcher.dispatch({ name: "whoami" }, { principal: "ann", context });
    assertEquals(contentOf(await call({ tenant: "acme" })), "input_required");
    assertEquals(contentOf(await call({ tenant: null })), "ann");
  });

  it("stores tokens encrypted, and rejects the record of another caller", async () => {
    const store = memoryCallStore();
    const world = worldOf(server, { store });
    await world.permit("ann");
    const [used] = server.api.slice(-1);
    const keys = await keysOf("ann", "bob");
    const stored = await store.get(keys[0] ?? "");
    assert(stored !== undefined);
    assertFalse(new TextDecoder().decode(stored.value).includes(used?.token ?? "?"));
    await store.create(keys[1] ?? "", stored.value);
    assertEquals(await world.call("bob"), "input_required");
  });

  it("reads tokens of an older key, and asks again without that key", async () => {
    const store = memoryCallStore();
    await worldOf(server, { store }).permit("ann");
    const newer = new Uint8Array(32).fill(9);
    assertEquals(await worldOf(server, { store, keys: [newer, KEY] }).call("ann"), "ann");
    assertEquals(await worldOf(server, { store, keys: [newer] }).call("ann"), "input_required");
  });

  it("fails a call while the server cannot be reached, without a token in the report", async () => {
    const away = await startOAuthServer();
    const world = worldOf(away);
    await world.permit("ann");
    await rejectToken(world, away);
    await away[Symbol.asyncDispose]();
    assertEquals(await world.call("ann"), "unavailable");
    assertEquals(world.reports.map(({ phase }) => phase), ["credential"]);
  });
});

describe("oauthCallback()", () => {
  /** A link that the server has sent to the browser of ann. */
  async function linkFor(world = worldOf(server), choice?: "deny") {
    const waiting = await world.dispatcher.dispatch({ name: "whoami" }, { principal: "ann" });
    const link = await server.open(urlIn(waiting), "ann", choice);
    return { world, waiting, link, callback: callbackOf(world.source) };
  }

  it("accepts each state once, even in concurrent requests", async () => {
    const { world, link, callback } = await linkFor();
    const pages = await Promise.all([link, link].map((url) => callback(new Request(url))));
    assertEquals(pages.map(({ status }) => status).sort(), [200, 400]);
    assertEquals((await callback(new Request(link))).status, 400);
    assertEquals(await world.call("ann"), "ann");
  });

  it("rejects the state of another principal or tenant, which stays valid for its own", async () => {
    const { world, link, callback } = await linkFor();
    const tenant = { principal: "ann", callContext: { tenant: "t" } };
    for (const caller of [{ principal: "bob" }, {}, tenant]) {
      const other = oauthCallback(world.source, { authorize: () => caller });
      assertEquals((await other(new Request(link))).status, 403);
    }
    const authorize = () => new Response(null, { status: 401 });
    const refusing = oauthCallback(world.source, { authorize });
    assertEquals((await refusing(new Request(link))).status, 401);
    assertEquals((await callback(new Request(link))).status, 200);
  });

  it("rejects a state that was changed, has expired, or was sealed for something else", async () => {
    const { link, callback } = await linkFor();
    const sealed = new URL(link).searchParams.get("state") ?? "";
    const sealer = createSealer("test", [KEY]);
    const state = { id: "x".repeat(22), name: "hub", principal: "ann", tenant: null, scopes: [] };
    const old = { authorization: { ...state, verifier: "v", expiresAt: Date.now() - 1 } };
    const states = [
      "",
      "x".repeat(10_000),
      // Each bit of this character counts.
      sealed.replace(/.(?=.{9}$)/, (letter) => letter === "A" ? "B" : "A"),
      await sealer.seal(encodeJson(old)),
      await sealer.seal(encodeJson({ key: "k", tokens: {} })),
    ];
    for (const state of states) {
      const url = new URL(link);
      url.searchParams.set("state", state);
      assertEquals((await callback(new Request(url))).status, 400, state);
    }
  });

  it("sends a code only to the server that has issued it", async () => {
    let sent = 0;
    const served = await serve(() => Response.json({ sent: ++sent }, { status: 500 }));
    const { url } = served;
    const sourceWith = (issuer?: string) => {
      const own = { authorizationEndpoint: `${url}/auth`, clientId: "plue", issuer };
      const hub = { ...own, tokenEndpoint: `${url}/token` };
      return helpers.sourceFor(server, {
        providers: { hub, other: { ...hub, tokenEndpoint: url } },
      });
    };
    assertThrows(() => sourceWith(), TypeError, "or set issuer if they send iss");
    const source = sourceWith(url);
    const errors: string[] = [];
    const onError = (error: unknown): void => void errors.push(String(error));
    const callback = oauthCallback(source, { authorize: () => ({ principal: "ann" }), onError });
    for (const [iss, status] of [["", 502], [`&iss=${server.url}`, 502], [`&iss=${url}`, 502]]) {
      const { signal } = new AbortController();
      const request = { principal: "ann", tenant: undefined, scopes: [], signal, context: {} };
      const needed = await source.get("hub", { ...request, services: {} });
      const state = new URL((needed as { url: string }).url).searchParams.get("state");
      const page = await callback(new Request(`${server.redirectUri}?code=c&state=${state}${iss}`));
      assertEquals([page.status, sent], [status, iss === `&iss=${url}` ? 1 : 0]);
    }
    assertStringIncludes(
      errors[0] ?? "",
      'a token of "hub": response parameter "iss" (issuer) missing',
    );
    assertStringIncludes(errors[1] ?? "", 'unexpected "iss" (issuer) response parameter value');
    await served.stop();
  });

  it("accepts a callback that names an unknown issuer, as Google does, if the source has no issuers", async () => {
    const { world, link, callback } = await linkFor();
    const url = new URL(link);
    url.searchParams.set("iss", "https://accounts.example.com");
    const page = await callback(new Request(url));
    assertEquals([page.status, await world.call("ann")], [200, "ann"]);
  });

  it("keeps the tokens and the links of a server from another one with its name", async () => {
    const { world: { store }, link } = await linkFor();
    await using away = await startOAuthServer();
    const successor = worldOf(away, { store });
    assertEquals((await callbackOf(successor.source)(new Request(link))).status, 400);
    await worldOf(server, { store }).permit("ann");
    assertEquals(await successor.call("ann"), "input_required");
    assertEquals([away.api.length, away.grants.size], [0, 0]);
  });

  it("does not use a link up for a request that is not GET, or has no answer", async () => {
    const { link, callback } = await linkFor();
    const bare = new URL(link);
    bare.searchParams.delete("code");
    for (const request of [new Request(link, { method: "HEAD" }), new Request(bare)]) {
      assertEquals((await callback(request)).status, 400);
    }
    assertEquals((await callback(new Request(link))).status, 200);
  });

  it("shows the person that there is no permission, and the call requests it again", async () => {
    await using away = await startOAuthServer();
    const refused = await linkFor(worldOf(server), "deny");
    const lost = await linkFor(worldOf(away));
    await away[Symbol.asyncDispose]();
    for (const { world, waiting, link, callback } of [refused, lost]) {
      const page = await callback(new Request(link));
      assertEquals(page.status, world === lost.world ? 502 : 403);
      assertStringIncludes(await page.text(), world === lost.world ? "no token" : "refused");
      assertEquals(await world.call("ann"), "input_required");
      // The call that sent the link is not resumed by it, but sends a new question.
      assert(isSuspended(waiting));
      const answers = { "credential.hub.1": { action: "accept" } } as const;
      const again = await world.dispatcher.resume(waiting.ticket, answers, { principal: "ann" });
      assert(isSuspended(again));
      assertEquals(again.questions.map(({ key }) => key), ["credential.hub.2"]);
    }
  });

  it("shows no confirmation to a person who denied the permission", async () => {
    const { world, link } = await linkFor(worldOf(server), "deny");
    const page = await oauthCallback(world.source, { confirm: true })(new Request(link));
    assertEquals([page.status, (await page.text()).includes("<form>")], [403, false]);
  });

  it("asks a person whom it cannot identify to confirm the caller, in a page without scripts", async () => {
    const world = worldOf(server);
    const name = '<script>alert("ann")</script>';
    const waiting = await world.dispatcher.dispatch({ name: "whoami" }, { principal: name });
    const callback = oauthCallback(world.source, { confirm: true });
    const link = await server.open(urlIn(waiting), "ann");
    const page = await callback(new Request(link));
    const html = await page.clone().text();
    assertStringIncludes(html, "&#60;script&#62;");
    assertFalse(html.includes("<script"));
    const policy = page.headers.get("content-security-policy") ?? "";
    assertStringIncludes(policy, "frame-ancestors 'none'");
    assertEquals(page.headers.get("referrer-policy"), "no-referrer");
    assertEquals(await world.call(name), "input_required");
    // A link cannot press the button: its sender does not know the code.
    for (const known of ["1", await digestOf("")]) {
      const forged = await callback(new Request(`${link}&confirmed=${known}`));
      assertStringIncludes(await forged.text(), "<form>");
    }
    assertEquals((await callback(await pressedOn(page, link))).status, 200);
    assertEquals(await world.call(name), "ann");
  });

  it("stores the tokens although the store cannot be read after the exchange of the code", async () => {
    const { world, link, callback } = await linkFor();
    const { create, get } = world.store;
    Object.assign(world.store, {
      create(...entry: Parameters<typeof create>) {
        Object.assign(world.store, { create, get: () => Promise.reject(new Error("down")) });
        return create(...entry);
      },
    });
    const page = await callback(new Request(link));
    Object.assign(world.store, { get });
    assertEquals([page.status, await world.call("ann")], [200, "ann"]);
  });

  it("reports an error of the store, and shows a page without it", async () => {
    const broken = Object.assign(memoryCallStore(), {
      create: () => Promise.reject(new RangeError("the store is full of secrets")),
    });
    const errors: unknown[] = [];
    const { link } = await linkFor();
    const source = helpers.sourceFor(server, { store: broken });
    const callback = oauthCallback(source, {
      authorize: () => ({ principal: "ann" }),
      onError: (error) => errors.push(error),
    });
    const page = await callback(new Request(link));
    assertEquals(page.status, 502);
    assertFalse((await page.text()).includes("secrets"));
    assertEquals(errors.length, 1);
  });
});
