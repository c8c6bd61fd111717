import { memoryCallStore } from "@plue/tools/calls";
import { assertEquals, assertLess } from "@std/assert";
import { describe, it } from "bun:test";
import { TokenStore } from "../../../src/adapters/credentials/token_store.ts";
import { createSealer } from "../../../src/adapters/http/sealing.ts";

const sealer = createSealer("test", [new Uint8Array(32)]);

describe("TokenStore", () => {
  it("uses a refreshed token for which the server names no expiry", async () => {
    const tokens = new TokenStore(memoryCallStore(), sealer);
    const [key, old] = ["credential.ann.hub", { token: "old", refresh: "r", requested: [] }];
    await tokens.end(key, "id", { ...old, staleAt: 0 });
    await tokens.refresh(key, () => Promise.resolve({ token: "new" }));
    assertEquals((await tokens.read(key)).tokens, { ...old, token: "new" });
  });

  it("stores a refreshed token although the store cannot be read meanwhile", async () => {
    const store = memoryCallStore();
    const { get } = store;
    const tokens = new TokenStore(store, sealer);
    await tokens.end("credential.a.hub", "id", {
      ...{ token: "old", refresh: "r", requested: [], staleAt: 0 },
    });
    await tokens.refresh("credential.a.hub", () => {
      Object.assign(store, { get: () => Promise.reject(new Error("no connection")) });
      return Promise.resolve({ token: "new" });
    });
    Object.assign(store, { get });
    assertEquals((await tokens.read("credential.a.hub")).tokens?.token, "new");
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
    const counting = {
      ...store,
      get: (key: string) => {
        reads++;
        return store.get(key);
      },
    };
    const tokens = new TokenStore(counting, sealer);
    const { signal } = new AbortController();
    const waiting = Array.from({ length: 100 }, () => tokens.arrived("key", undefined, signal));
    await tokens.end("key", "the id of an authorization");
    assertEquals((await Promise.all(waiting)).length, 100);
    assertLess(reads, 50);
  });
});
