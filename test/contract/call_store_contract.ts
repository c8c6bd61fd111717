/** The contract of every {@linkcode CallStore}. */

import { describe, it } from "bun:test";
import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import { type CallStore, MAX_STORED_BYTES } from "../../src/execute/durable/mod.ts";

/** A time that a test sets, in milliseconds since 1970. */
export interface SetTime {
  now: number;
  timestamp(): number;
}

const START = 1_700_000_000_000;

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (value: Uint8Array | undefined): string => new TextDecoder().decode(value);

/**
 * Declares the contract's tests.
 *
 * @param create Makes an empty store that uses the given clock.
 * @param open Makes another store with the same content, as another process would; absent where
 * nothing is shared.
 * @param maxBytes The maximum size of a value.
 */
export function describeCallStore(
  name: string,
  create: (time: SetTime) => CallStore | Promise<CallStore>,
  open?: (store: CallStore, time: SetTime) => CallStore | Promise<CallStore>,
  maxBytes: number = MAX_STORED_BYTES,
): void {
  const at = (now = START): SetTime => ({
    now,
    timestamp() {
      return this.now;
    },
  });
  const made = async (time = at()): Promise<CallStore> => await create(time);
  const keysOf = async (store: CallStore, prefix: string): Promise<readonly string[]> => {
    const keys: string[] = [];
    for await (const { key } of store.list(prefix)) keys.push(key);
    return keys.sort();
  };
  const written = async (write: Promise<number | undefined>): Promise<number> => {
    const revision = await write;
    assert(revision !== undefined, "nothing was written");
    return revision;
  };

  describe(`${name} as a CallStore`, () => {
    it("returns the stored value", async () => {
      const store = await made();
      assertEquals(await store.get("a.b.c"), undefined);
      const revision = await written(store.create("a.b.c", bytes("one")));
      const kept = await store.get("a.b.c");
      assertEquals([text(kept?.value), kept?.revision], ["one", revision]);
      assertEquals(kept !== undefined && "expiresAt" in kept, false);
    });

    it("creates a key once", async () => {
      const store = await made();
      await store.create("a", bytes("one"));
      assertEquals(await store.create("a", bytes("two")), undefined);
      assertEquals(text((await store.get("a"))?.value), "one");
    });

    it("updates only what has the revision", async () => {
      const store = await made();
      const first = await written(store.create("a", bytes("one")));
      const second = await written(store.update("a", bytes("two"), first));
      assertGreater(second, first);
      assertEquals(await store.update("a", bytes("three"), first), undefined);
      assertEquals(await store.update("b", bytes("three"), second), undefined);
      assertEquals(text((await store.get("a"))?.value), "two");
      assertEquals(await store.get("b"), undefined);
    });

    it("deletes only what has the revision", async () => {
      const store = await made();
      const first = await written(store.create("a", bytes("one")));
      const second = await written(store.update("a", bytes("two"), first));
      assertEquals(await store.delete("a", first), false);
      assertEquals(await store.delete("a", second), true);
      assertEquals(await store.delete("a", second), false);
      assertEquals(await store.get("a"), undefined);
    });

    it("raises the revision of a key that was deleted and comes back", async () => {
      const store = await made();
      const first = await written(store.create("a", bytes("one")));
      await store.delete("a", first);
      const second = await written(store.create("a", bytes("two")));
      assertGreater(second, first);
      assertEquals(await store.update("a", bytes("three"), first), undefined);
      assertEquals(await store.delete("a", first), false);
    });

    it("lets one of many creations win", async () => {
      const store = await made();
      const tries = Array.from({ length: 32 }, (_, index) => store.create("a", bytes(`${index}`)));
      const revisions = await Promise.all(tries);
      const winner = revisions.findIndex((revision) => revision !== undefined);
      assertEquals(revisions.filter((revision) => revision !== undefined).length, 1);
      assertEquals(text((await store.get("a"))?.value), `${winner}`);
    });

    it("lets one of many updates of a revision win", async () => {
      const store = await made();
      const first = await written(store.create("a", bytes("one")));
      const tries = Array.from(
        { length: 32 },
        (_, index) =>
          index % 4 === 0 ? store.delete("a", first) : store.update("a", bytes(`${index}`), first),
      );
      const answers = await Promise.all(tries);
      assertEquals(answers.filter((answer) => answer !== undefined && answer !== false).length, 1);
    });

    it("counts to 20 with five concurrent counters", async () => {
      const store = await made();
      await store.create("count", bytes("0"));
      async function addFour(): Promise<void> {
        for (let added = 0; added < 4;) {
          const kept = await store.get("count");
          assert(kept !== undefined);
          const next = bytes(`${Number(text(kept.value)) + 1}`);
          if (await store.update("count", next, kept.revision) !== undefined) added++;
        }
      }
      await Promise.all(Array.from({ length: 5 }, addFour));
      assertEquals(text((await store.get("count"))?.value), "20");
    });

    it("forgets what has expired", async () => {
      const time = at();
      const store = await made(time);
      const revision = await written(store.create("a.x", bytes("one"), { expiresAt: START + 10 }));
      await store.create("a.y", bytes("stays"));
      time.now = START + 9;
      assertEquals((await store.get("a.x"))?.expiresAt, START + 10);
      assertEquals(await keysOf(store, "a"), ["a.x", "a.y"]);
      time.now = START + 10;
      assertEquals(await store.get("a.x"), undefined);
      assertEquals(await keysOf(store, "a"), ["a.y"]);
      assertEquals(await store.update("a.x", bytes("two"), revision), undefined);
      assertEquals(await store.delete("a.x", revision), false);
      assertGreater(await written(store.create("a.x", bytes("new"))), revision);
    });

    it("takes an expiry between two milliseconds, and an infinite one", async () => {
      const time = at();
      const store = await made(time);
      await store.create("a", bytes("one"), { expiresAt: START + 0.5 });
      await store.create("b", bytes("one"), { expiresAt: Infinity });
      assertEquals(text((await store.get("b"))?.value), "one");
      assertEquals(text((await store.get("a"))?.value), "one");
      time.now = START + 1;
      assertEquals(await store.get("a"), undefined);
    });

    it("sets the expiry with each update", async () => {
      const time = at();
      const store = await made(time);
      const first = await written(store.create("a", bytes("one"), { expiresAt: START + 10 }));
      const second = await written(
        store.update("a", bytes("two"), first, { expiresAt: START + 20 }),
      );
      time.now = START + 15;
      assertEquals((await store.get("a"))?.expiresAt, START + 20);
      await written(store.update("a", bytes("three"), second));
      time.now = START + 1_000_000;
      assertEquals(text((await store.get("a"))?.value), "three");
    });

    it("lists by whole words", async () => {
      const store = await made();
      for (const key of ["t.ann.1", "t.ann.2", "t.anna.1", "t.Ann.1", "t.bob.1", "t-u.ann", "t"]) {
        await store.create(key, bytes(key));
      }
      assertEquals(await keysOf(store, "t.ann"), ["t.ann.1", "t.ann.2"]);
      assertEquals(await keysOf(store, "t.ann.2"), ["t.ann.2"]);
      assertEquals(await keysOf(store, "t.an"), []);
      assertEquals((await keysOf(store, "t")).length, 6);
      assertEquals((await keysOf(store, "")).length, 7);
      for await (const { key, value, revision } of store.list("t.ann")) {
        assertEquals(text(value), key);
        assertEquals((await store.get(key))?.revision, revision);
      }
    });

    it("lists in the order of the keys, from any of them on", async () => {
      const store = await made();
      const keys = ["a.0", "a.1", "a.10", "a.A", "a.B", "a._", "a.a", "a.a.b", "a.b", "b.0"];
      for (const index of [3, 8, 0, 5, 9, 1, 7, 2, 6, 4]) {
        await store.create(keys[index] as string, bytes(""));
      }
      const listed = async (prefix: string, after?: string): Promise<readonly string[]> => {
        const found: string[] = [];
        for await (const { key } of store.list(prefix, after)) found.push(key);
        return found;
      };
      assertEquals(await listed(""), keys);
      assertEquals(await listed("a"), keys.slice(0, 9));
      assertEquals(await listed("a", "a.B"), keys.slice(5, 9));
      assertEquals(await listed("a", "a.C"), keys.slice(5, 9));
      assertEquals(await listed("a", "a.b"), []);
      assertEquals(await listed("b", "a.b"), ["b.0"]);
    });

    it("may be changed while it is listed", async () => {
      const store = await made();
      for (let index = 0; index < 20; index++) await store.create(`a.${index}`, bytes("x"));
      for await (const { key, revision } of store.list("a")) {
        assertEquals(await store.delete(key, revision), true);
      }
      assertEquals(await keysOf(store, "a"), []);
    });

    it("does not share memory with its callers", async () => {
      const store = await made();
      const given = bytes("one");
      await store.create("a", given);
      given[0] = 0;
      const kept = await store.get("a");
      assertEquals(text(kept?.value), "one");
      kept?.value.fill(0);
      assertEquals(text((await store.get("a"))?.value), "one");
    });

    it("keeps no bytes and any bytes", async () => {
      const store = await made();
      await store.create("none", new Uint8Array());
      assertEquals((await store.get("none"))?.value.byteLength, 0);
      const all = Uint8Array.from({ length: 256 }, (_, index) => index);
      await store.create("all", all);
      assertEquals([...(await store.get("all"))?.value ?? []], [...all]);
    });

    it("stores a value of the maximum size, and rejects a larger one", async () => {
      const store = await made();
      const large = new Uint8Array(maxBytes).fill(7);
      const revision = await written(store.create("large", large));
      assertEquals((await store.get("large"))?.value.byteLength, maxBytes);
      const larger = new Uint8Array(maxBytes + 1);
      await assertRejects(
        () => store.create("larger", larger),
        RangeError,
        `${MAX_STORED_BYTES + 1} bytes`,
      );
      await assertRejects(() => store.update("large", larger, revision), RangeError);
      assertEquals((await store.get("large"))?.value[0], 7);
    });

    it("accepts the longest key, and rejects invalid keys", async () => {
      const store = await made();
      const longest = `a.${"b".repeat(254)}`;
      await store.create(longest, bytes("x"));
      assertEquals(await keysOf(store, ""), [longest]);
      for (const key of ["", ".", "a.", ".a", "a..b", "a b", "a*", "a.>", "ä", `${longest}c`]) {
        await assertRejects(() => store.get(key), TypeError, "Cannot use a key of a store");
        await assertRejects(() => store.create(key, bytes("x")), TypeError);
      }
    });

    it("keeps apart keys that differ in case only", async () => {
      const store = await made();
      await store.create("a.B", bytes("large"));
      await store.create("a.b", bytes("small"));
      assertEquals(text((await store.get("a.B"))?.value), "large");
    });

    if (open === undefined) return;

    it("shares its values with other processes", async () => {
      const time = at();
      const store = await made(time);
      const first = await written(store.create("a", bytes("one")));
      const other = await open(store, time);
      assertEquals(text((await other.get("a"))?.value), "one");
      await written(other.update("a", bytes("two"), first));
      assertEquals(text((await store.get("a"))?.value), "two");
      assertEquals(await store.update("a", bytes("three"), first), undefined);
    });

    it("lets one of two processes win", async () => {
      const time = at();
      const store = await made(time);
      const other = await open(store, time);
      const tries = Array.from(
        { length: 16 },
        (_, index) => (index % 2 === 0 ? store : other).create("a", bytes(`${index}`)),
      );
      const revisions = await Promise.all(tries);
      assertEquals(revisions.filter((revision) => revision !== undefined).length, 1);
    });
  });
}

/** Declares the test that a principal's quota does not limit other principals. */
export function itSharesItsSpace(
  open: (options: { readonly maxOwnerBytes: number }) => CallStore | Promise<CallStore>,
): void {
  it("leaves space for others when one principal has exhausted its quota", async () => {
    const store = await open({ maxOwnerBytes: 3_000 });
    const add = (key: string): Promise<unknown> => store.create(key, new Uint8Array(1_000));
    await add("t.a.1");
    await add("key.a.1");
    await assertRejects(() => add("t.a.2"), RangeError, "the quota of its principal is exhausted");
    assertEquals(await store.get("t.a.2"), undefined);
    assertEquals(typeof await add("t.b.1"), "number");
    await store.delete("t.a.1", (await store.get("t.a.1"))?.revision ?? 0);
    assertEquals(typeof await add("t.a.2"), "number");
  });
}
