import { describe, it } from "bun:test";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { memoryCallStore } from "../../../../src/execute/durable/mod.ts";
import { describeCallStore, itSharesItsSpace } from "../../../contract/call_store_contract.ts";

describeCallStore("memoryCallStore()", { create: (clock) => memoryCallStore({ clock }) });

describe("memoryCallStore()", () => {
  itSharesItsSpace(memoryCallStore);

  const value = new Uint8Array(1_000);

  it("rejects writes when it is full, and retains its entries", async () => {
    const store = memoryCallStore({ maxBytes: 5_000, maxOwnerBytes: 5_000 });
    for (const key of ["t.a.1", "t.b.1", "t.c.1", "t.d.1"]) await store.create(key, value);
    await assertRejects(() => store.create("t.e.1", value), RangeError, "the store is full");
    const first = await store.get("t.a.1");
    assertEquals(await store.delete("t.a.1", first?.revision ?? 0), true);
    assertEquals(typeof await store.create("t.e.1", value), "number");
  });

  it("accepts writes again when an entry has expired", async () => {
    const clock = { now: 1, timestamp: () => clock.now };
    const store = memoryCallStore({ maxBytes: 1_500, maxOwnerBytes: 1_500, clock });
    await store.create("t.a.1", value, { expiresAt: 5 });
    await assertRejects(() => store.create("t.a.2", value), RangeError);
    clock.now = 5;
    assertEquals(typeof await store.create("t.a.2", value), "number");
  });

  it("does not scan all entries each time one expires", async () => {
    const clock = { now: 1, timestamp: () => clock.now };
    const store = memoryCallStore({ clock });
    const keys = Array.from({ length: 100 }, (_, index) => `t.a.${index}`);
    for (const [index, key] of keys.entries()) {
      await store.create(key, value, { expiresAt: 2 + index });
    }
    const walk = Map.prototype[Symbol.iterator];
    let walks = 0;
    Map.prototype[Symbol.iterator] = function () {
      walks++;
      return walk.call(this);
    };
    try {
      for (const key of keys) {
        clock.now++;
        assertEquals(await store.get(key), undefined);
      }
    } finally {
      Map.prototype[Symbol.iterator] = walk;
    }
    assertEquals(walks, 1);
  });

  it("counts an update by the bytes that it adds", async () => {
    const store = memoryCallStore({ maxBytes: 1_500, maxOwnerBytes: 1_500 });
    const revision = await store.create("t.a.1", value) ?? 0;
    assertEquals(typeof await store.update("t.a.1", value, revision), "number");
  });

  it("rejects invalid options", () => {
    assertThrows(() => memoryCallStore({ maxByte: 1 } as never), TypeError, '"/maxByte"');
    assertThrows(() => memoryCallStore({ maxBytes: 0 }), RangeError, "maxBytes");
  });
});
