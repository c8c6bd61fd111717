/** The source of OAuth, its store of tokens, and its callback, without a server. */

import { memoryCallStore } from "@plue/tools/calls";
import { oauthCallback, oauthCredentials } from "@plue/tools/credentials";
import { assertEquals, assertLess, assertStringIncludes, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { TokenStore } from "../../../src/adapters/credentials/token_store.ts";
import { createSealer } from "../../../src/adapters/http/sealing.ts";

const KEY = "credential.ann.hub";
const sealer = createSealer("test", [new Uint8Array(32)]);

describe("TokenStore", () => {
  it("uses a refreshed token for which the server names no expiry", async () => {
    const tokens = new TokenStore(memoryCallStore(), sealer);
    const old = { token: "old", refresh: "r", requested: [] };
    await tokens.end(KEY, "id", { ...old, staleAt: 0 });
    await tokens.refresh(KEY, () => Promise.resolve({ token: "new" }));
    assertEquals((await tokens.read(KEY)).tokens, { ...old, token: "new" });
  });

  it("keeps the tokens that another call has stored during a refresh or before it", async () => {
    const tokens = new TokenStore(memoryCallStore(), sealer);
    const stored = async () => (await tokens.read(KEY)).tokens;
    const old = { token: "old", refresh: "r", requested: [] };
    const current = { ...old, token: "current" };
    await tokens.end(KEY, "id", { ...old, staleAt: 0 });
    const { record } = await tokens.read(KEY);
    await tokens.refresh(KEY, async () => {
      await tokens.end(KEY, "later", current);
      return { token: "refreshed" };
    });
    assertEquals(await stored(), current);
    await tokens.refresh(KEY, () => Promise.reject(new Error("refreshed again")));
    await tokens.reject(KEY, record?.sealed);
    assertEquals(await stored(), current);
    await tokens.reject(KEY, (await tokens.read(KEY)).record?.sealed);
    assertEquals((await stored())?.staleAt, 0);
  });

  it("stores a refreshed token although the store cannot be read meanwhile", async () => {
    const store = memoryCallStore();
    const { get } = store;
    const tokens = new TokenStore(store, sealer);
    await tokens.end(KEY, "id", { token: "old", refresh: "r", requested: [], staleAt: 0 });
    await tokens.refresh(KEY, () => {
      Object.assign(store, { get: () => Promise.reject(new Error("no connection")) });
      return Promise.resolve({ token: "new" });
    });
    Object.assign(store, { get });
    assertEquals((await tokens.read(KEY)).tokens?.token, "new");
  });

  it("waits for a permission although the store cannot be read for a while", async () => {
    const store = memoryCallStore();
    const tokens = new TokenStore(store, sealer);
    const { get } = store;
    const waiting = tokens.arrived("key", undefined, new AbortController().signal);
    await new Promise<void>((resolve) =>
      Object.assign(store, {
        get() {
          Object.assign(store, { get });
          resolve();
          return Promise.reject(new Error("no connection"));
        },
      })
    );
    await tokens.end("key", "the id of an authorization");
    await waiting;
  });

  it("reads the store once for all calls that wait for the same permission", async () => {
    const store = memoryCallStore();
    let reads = 0;
    const get = (key: string) => (reads++, store.get(key));
    const tokens = new TokenStore({ ...store, get }, sealer);
    const { signal } = new AbortController();
    const waiting = Array.from({ length: 100 }, () => tokens.arrived("key", undefined, signal));
    await tokens.end("key", "the id of an authorization");
    assertEquals((await Promise.all(waiting)).length, 100);
    assertLess(reads, 50);
  });
});

const hub = { clientId: "plue", tokenEndpoint: "https://hub.example/token" };
const authorizationEndpoint = "https://hub.example/authorize";
const redirectUri = "https://tools.example/callback";
const valid = {
  ...{ providers: { hub: { ...hub, authorizationEndpoint } }, redirectUri },
  ...{ store: memoryCallStore(), keys: [new Uint8Array(32)] },
};
const source = oauthCredentials(valid);
const authorize = () => ({ principal: "ann" });

/** Returns the address to which the server sends the browser of ann. */
async function answered(): Promise<string> {
  const about = { principal: "ann", tenant: undefined, scopes: [], context: {}, services: {} };
  const needed = await source.get("hub", { ...about, signal: new AbortController().signal });
  const state = new URL(Object(needed).url).searchParams.get("state") ?? "";
  return `${redirectUri}?${new URLSearchParams({ code: "<c>", state, confirmed: "no" })}`;
}

describe("oauthCredentials()", () => {
  it("rejects options that are unknown, missing or not safe", () => {
    const wrong: readonly [object, string][] = [
      [{ scopes: [] }, "scopes"],
      [{ store: {} }, "store"],
      [{ keys: [] }, "keys"],
      [{ redirectUri: "http://tools.example/callback" }, "redirectUri"],
      [{ providers: { hub } }, 'authorizationEndpoint of "hub"'],
    ];
    for (const [options, message] of wrong) {
      assertThrows(() => oauthCredentials({ ...valid, ...options } as never), TypeError, message);
    }
  });
});

describe("oauthCallback()", () => {
  it("rejects another source, unknown options, and neither or both of authorize and confirm", () => {
    const wrong: readonly [object, string, object?][] = [
      [{}, "set either authorize or confirm"],
      [{ authorize, confirm: true }, "set either authorize or confirm"],
      [{ confirm: "yes" }, "confirm"],
      [{ authorize, onEror: () => {} }, "onEror"],
      [{ authorize }, "the source must be oauthCredentials()", { get: () => {} }],
    ];
    for (const [options, message, other = source] of wrong) {
      assertThrows(() => oauthCallback(other as never, options as never), TypeError, message);
    }
  });

  it("reports an invalid value of authorize, and shows that the request failed", async () => {
    const errors: unknown[] = [];
    const callback = oauthCallback(source, {
      authorize: () => 7 as never,
      onError: (error) => void errors.push(error),
    });
    const response = await callback(new Request(await answered()));
    assertEquals([response.status, errors.length], [502, 1]);
    assertStringIncludes(await response.text(), "<title>Not connected</title>");
  });

  it("shows a confirmation with the escaped fields of the request", async () => {
    const response = await oauthCallback(source, { confirm: true })(new Request(await answered()));
    const text = await response.text();
    assertEquals([response.status, text.match(/<input type="hidden" /g)?.length], [200, 3]);
    assertStringIncludes(text, 'name="code" value="&#60;c&#62;"');
    assertStringIncludes(text, "<title>Connect hub to ann?</title>");
  });
});
