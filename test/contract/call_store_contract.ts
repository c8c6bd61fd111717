/** The contract of every {@linkcode CallStore}. */

import { describe, it } from "bun:test";
import { assert, assertEquals, assertGreater, assertRejects } from "@std/assert";
import * as durable from "../../src/execute/durable/mod.ts";
import type { CallStore } from "../../src/execute/durable/mod.ts";
import { describeStoreUsers } from "./store_users_contract.ts";
import { poll } from "../support/waiting.ts";

export interface StoreTime {
  readonly isReal: boolean;
  timestamp(): number;
  /** Lets time pass, unless the time is real. */
  pass(ms: number): void;
}

/** Returns a time that begins now and passes without waiting. */
export function createTime(): StoreTime {
  let now = Date.now();
  return { isReal: false, timestamp: () => now, pass: (ms) => void (now += ms) };
}

/** The real time, for stores with a clock of their own. */
const REAL_TIME: StoreTime = { isReal: true, timestamp: () => Date.now(), pass() {} };
const LATER = 3_600_000;
let stores = 0;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (value: Uint8Array | undefined): string => new TextDecoder().decode(value);

export interface TestedStore {
  /** Makes an empty store with this time and a unique name. */
  create(time: StoreTime, name: string): CallStore | Promise<CallStore>;
  /** Makes another store with the same content, as another process would. */
  open?(store: CallStore, time: StoreTime, name: string): CallStore | Promise<CallStore>;
  /** The maximum size of a value. */
  readonly maxBytes?: number;
  /** True for a store with a clock of its own. */
  readonly hasClock?: boolean;
}

/** Declares the tests of the contract. */
export function describeCallStore(
  name: string,
  { create, open, maxBytes = durable.MAX_STORED_BYTES, hasClock = false }: TestedStore,
): void {
  const another = (store: CallStore, time: StoreTime) => open?.(store, time, `s${stores}`) ?? store;
  const newTime = (): StoreTime => hasClock ? REAL_TIME : createTime();
  const made = async (time = newTime()): Promise<CallStore> => await create(time, `s${++stores}`);
  const keysOf = async (
    store: CallStore,
    prefix: string,
    after?: string,
  ): Promise<readonly string[]> => {
    const keys: string[] = [];
    for await (const { key } of store.list(prefix, after)) keys.push(key);
    return keys;
  };
  const written = async (write: Promise<number | undefined>): Promise<number> => {
    const revision = await write;
    assert(revision !== undefined, "nothing was written");
    return revision;
  };

  /** Lets time pass until an entry has expired. */
  const expires = async (store: CallStore, key: string, time: StoreTime, ms: number) => {
    time.pass(ms);
    await poll(async () => !time.isReal || await store.get(key) === undefined);
    assertEquals(await store.get(key), undefined);
  };

  describeStoreUsers(name, newTime, async (time) => {
    const store = await made(time);
    return [store, await another(store, time)];
  });

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

    it("updates only a value with the revision", async () => {
      const store = await made();
      const first = await written(store.create("a", bytes("one")));
      const second = await written(store.update("a", bytes("two"), first));
      assertGreater(second, first);
      assertEquals(await store.update("a", bytes("three"), first), undefined);
      assertEquals(await store.update("b", bytes("three"), second), undefined);
      assertEquals(text((await store.get("a"))?.value), "two");
      assertEquals(await store.get("b"), undefined);
    });

    it("deletes only a value with the revision", async () => {
      const store = await made();
      const first = await written(store.create("a", bytes("one")));
      const second = await written(store.update("a", bytes("two"), first));
      assertEquals(await store.delete("a", first), false);
      assertEquals(await store.delete("a", second), true);
      assertEquals(await store.delete("a", second), false);
      assertEquals(await store.get("a"), undefined);
    });

    it("raises the revision of a key that was deleted and created again", async () => {
      const store = await made();
      const first = await written(store.create("a", bytes("one")));
      await store.delete("a", first);
      const second = await written(store.create("a", bytes("two")));
      assertGreater(second, first);
      assertEquals(await store.update("a", bytes("three"), first), undefined);
      assertEquals(await store.delete("a", first), false);
    });

    it("accepts one of many concurrent creations", async () => {
      const store = await made();
      const tries = Array.from({ length: 32 }, (_, index) => store.create("a", bytes(`${index}`)));
      const revisions = await Promise.all(tries);
      const winner = revisions.findIndex((revision) => revision !== undefined);
      assertEquals(revisions.filter((revision) => revision !== undefined).length, 1);
      assertEquals(text((await store.get("a"))?.value), `${winner}`);
    });

    it("accepts one of many concurrent updates of a revision", async () => {
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

    it("does not return expired entries", async () => {
      const time = newTime();
      const store = await made(time);
      const now = time.timestamp();
      await store.create("t.a.x", bytes("one"), { expiresAt: now + LATER });
      await store.create("t.a.y", bytes("stays"));
      assertEquals((await store.get("t.a.x"))?.expiresAt, now + LATER);
      const revision = await written(
        store.create("t.a.z", bytes("one"), { expiresAt: now + 50, dueAt: now }),
      );
      await expires(store, "t.a.z", time, 50);
      assertEquals(await keysOf(store, "t.a"), ["t.a.x", "t.a.y"]);
      assertEquals(await store.due("t", now + LATER, 10), []);
      assertEquals(await store.update("t.a.z", bytes("two"), revision), undefined);
      assertEquals(await store.delete("t.a.z", revision), false);
      assertGreater(await written(store.create("t.a.z", bytes("new"))), revision);
    });

    it("accepts a fractional expiry and an infinite one", async () => {
      const time = newTime();
      const store = await made(time);
      const now = time.timestamp();
      await store.create("a", bytes("one"), { expiresAt: now + 40.5 });
      await store.create("b", bytes("one"), { expiresAt: Infinity });
      assertEquals(text((await store.get("b"))?.value), "one");
      await expires(store, "a", time, 41);
      assertEquals(text((await store.get("b"))?.value), "one");
    });

    it("sets the expiry with each update", async () => {
      const time = newTime();
      const store = await made(time);
      const now = time.timestamp();
      const first = await written(store.create("a", bytes("one"), { expiresAt: now + LATER }));
      const second = await written(
        store.update("a", bytes("two"), first, { expiresAt: now + 2 * LATER }),
      );
      assertEquals((await store.get("a"))?.expiresAt, now + 2 * LATER);
      const third = await written(store.update("a", bytes("three"), second));
      assertEquals("expiresAt" in (await store.get("a") ?? {}), false);
      await written(store.update("a", bytes("four"), third, { expiresAt: now + 50 }));
      await expires(store, "a", time, 50);
    });

    it("returns due entries, the earliest first", async () => {
      const store = await made();
      const now = Date.now();
      for (const [key, dueAt] of [["t.a.1", 3], ["t.b.2", 1.5], ["t.c.3", 2], ["u.a.1", 1]]) {
        await store.create(`${key}`, bytes(`${key}`), { dueAt: now + Number(dueAt) });
      }
      await store.create("t.d.4", bytes("never"));
      const due = async (kind: string, before: number, limit = 9): Promise<readonly string[]> =>
        (await store.due(kind, now + before, limit)).map(({ key }) => key);
      assertEquals(await due("t", 2), ["t.b.2", "t.c.3"]);
      assertEquals(await due("t", 9), ["t.b.2", "t.c.3", "t.a.1"]);
      assertEquals(await due("t", 9, 2), ["t.b.2", "t.c.3"]);
      assertEquals([await due("u", 9), await due("v", 9)], [["u.a.1"], []]);
      const [first] = await store.due("t", now + 9, 1);
      assert(first !== undefined);
      assertEquals([text(first.value), first.revision], [
        "t.b.2",
        (await store.get("t.b.2"))?.revision,
      ]);
      await written(store.update("t.b.2", bytes("x"), first.revision, { dueAt: now + 8 }));
      assertEquals(await due("t", 9), ["t.c.3", "t.a.1", "t.b.2"]);
      const last = await store.get("t.b.2");
      await written(store.update("t.b.2", bytes("x"), last?.revision ?? 0));
      assertEquals(await due("t", 9), ["t.c.3", "t.a.1"]);
    });

    it("continues after an entry that was due, in the order of times and keys", async () => {
      const store = await made();
      const now = Date.now();
      const order = ["t.b.0", "t.c.1", "t.a.B", "t.a._", "t.a.a", "t.b.1", "t.d.0"];
      const times = [0.5, 1, 2, 2, 2, 2, 3];
      for (const index of [6, 3, 1, 5, 0, 4, 2]) {
        await store.create(`${order[index]}`, bytes("x"), { dueAt: now + (times[index] ?? 0) });
      }
      await store.create("u.a.0", bytes("x"), { dueAt: now + 2 });
      const found: string[] = [];
      let last: durable.DueEntry | undefined;
      for (;;) {
        const page = await store.due("t", now + 2, 2, last);
        found.push(...page.map(({ key, dueAt }) => `${key} ${dueAt - now}`));
        last = page.at(-1);
        if (last === undefined) break;
        assertEquals(await store.delete(last.key, last.revision), true);
      }
      assertEquals(found, order.slice(0, -1).map((key, index) => `${key} ${times[index]}`));
    });

    it("lists by whole words, and by at least two", async () => {
      const store = await made();
      const keys = ["t.ann.1", "t.ann.2", "t.anna.1", "t.Ann.1", "t.bob.1", "t-u.ann", "t"];
      for (const key of keys) await store.create(key, bytes(key));
      assertEquals(await keysOf(store, "t.ann"), ["t.ann.1", "t.ann.2"]);
      assertEquals(await keysOf(store, "t.ann.2"), ["t.ann.2"]);
      assertEquals(await keysOf(store, "t.an"), []);
      for (const prefix of ["", "t"]) await assertRejects(() => keysOf(store, prefix), TypeError);
      for await (const { key, value, revision } of store.list("t.ann")) {
        assertEquals(text(value), key);
        assertEquals((await store.get(key))?.revision, revision);
      }
    });

    it("lists in the order of the keys, from any of them on", async () => {
      const store = await made();
      const words = ["0", "1", "10", "A", "B", "_", "a", "a.b", "b"];
      for (const index of [3, 8, 0, 5, 1, 7, 2, 6, 4]) {
        await store.create(`t.a.${words[index]}`, bytes(""));
      }
      await store.create("t.b.0", bytes(""));
      const keys = words.map((word) => `t.a.${word}`);
      assertEquals(await keysOf(store, "t.a"), keys);
      assertEquals(await keysOf(store, "t.a", "t.a.B"), keys.slice(5));
      assertEquals(await keysOf(store, "t.a", "t.a.C"), keys.slice(5));
      assertEquals(await keysOf(store, "t.a", "t.a.b"), []);
      assertEquals(await keysOf(store, "t.b", "t.a.b"), ["t.b.0"]);
    });

    it("may be changed while it is listed", async () => {
      const store = await made();
      for (let index = 0; index < 20; index++) await store.create(`t.a.${index}`, bytes("x"));
      for await (const { key, revision } of store.list("t.a")) {
        assertEquals(await store.delete(key, revision), true);
      }
      assertEquals(await keysOf(store, "t.a"), []);
    });

    it("does not share memory with its callers", async () => {
      const store = await made();
      const input = bytes("one");
      await store.create("a", input);
      input[0] = 0;
      const kept = await store.get("a");
      assertEquals(text(kept?.value), "one");
      kept?.value.fill(0);
      assertEquals(text((await store.get("a"))?.value), "one");
    });

    it("stores empty values and any bytes", async () => {
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
        `${durable.MAX_STORED_BYTES + 1} bytes`,
      );
      await assertRejects(() => store.update("large", larger, revision), RangeError);
      assertEquals((await store.get("large"))?.value[0], 7);
    });

    it("accepts the longest key, and rejects invalid keys", async () => {
      const store = await made();
      const longest = `a.${"b".repeat(254)}`;
      await store.create(longest, bytes("x"));
      assertEquals(await keysOf(store, longest), [longest]);
      for (const key of ["", ".", "a.", ".a", "a..b", "a b", "a*", "a.>", "ä", `${longest}c`]) {
        await assertRejects(() => store.get(key), TypeError, "Cannot use a key of a store");
        await assertRejects(() => store.create(key, bytes("x")), TypeError);
      }
    });

    it("distinguishes keys that differ in case only", async () => {
      const store = await made();
      await store.create("a.B", bytes("large"));
      await store.create("a.b", bytes("small"));
      assertEquals(text((await store.get("a.B"))?.value), "large");
    });

    if (open === undefined) return;

    it("shares its values with other processes", async () => {
      const time = newTime();
      const store = await made(time);
      const first = await written(store.create("a", bytes("one")));
      const other = await another(store, time);
      assertEquals(text((await other.get("a"))?.value), "one");
      await written(other.update("a", bytes("two"), first));
      assertEquals(text((await store.get("a"))?.value), "two");
      assertEquals(await store.update("a", bytes("three"), first), undefined);
    });

    it("accepts a write of one of two processes", async () => {
      const time = newTime();
      const store = await made(time);
      const other = await another(store, time);
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
  it("has space for others when one principal has exhausted its quota", async () => {
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

/** Declares the tests of a store whose quotas of principals are exact. */
export function itCountsExactly(open: Parameters<typeof itSharesItsSpace>[0]): void {
  itSharesItsSpace(open);

  it("stores 10 of 64 concurrent values of a principal whose quota is 10 values", async () => {
    const store = await open({ maxOwnerBytes: 10 * durable.entryWeight("t.a.00", 1_000) });
    const keys = Array.from({ length: 64 }, (_, index) => `t.a.${index + 10}`);
    const writes = await Promise.allSettled(
      keys.map((key) => store.create(key, new Uint8Array(1_000))),
    );
    const rejected = writes.filter(({ status }) => status === "rejected");
    assertEquals(rejected.length, 54);
    for (const write of rejected) {
      assert((write as PromiseRejectedResult).reason instanceof RangeError);
    }
    const stored = await Promise.all(keys.map((key) => store.get(key)));
    assertEquals(stored.filter((entry) => entry !== undefined).length, 10);
  });
}

/** A store on a server that the test kills. */
export interface KilledStore {
  open(): CallStore | Promise<CallStore>;
  /** Kills the server, as `kill -9` does. */
  kill(): Promise<unknown>;
  start(): Promise<unknown>;
}

/** Declares the tests of a store whose server is killed, and started again. */
export function describeOutages(name: string, { open, kill, start }: KilledStore): void {
  const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

  describe(`${name} whose server is killed`, () => {
    it("has all confirmed writes, and continues when the server is back", async () => {
      const store = new durable.SettledStore(await open());
      const confirmed: string[] = [];
      let isOver = false;
      async function write(writer: number): Promise<void> {
        for (let count = 0; !isOver; count++) {
          const key = `t.w${writer}.${count}`;
          const revision = await store.create(key, bytes(key)).catch(turn);
          if (revision !== undefined) confirmed.push(key);
        }
      }
      const writers = [0, 1, 2, 3].map(write);
      for (const wanted of [50, 100]) {
        while (confirmed.length < wanted) await turn();
        await kill();
        await start();
      }
      const before = confirmed.length;
      while (confirmed.length < before + 50) await turn();
      isOver = true;
      await Promise.all(writers);
      for (const key of confirmed) assertEquals(text((await store.get(key))?.value), key);
    }, 60_000);

    it("rejects while the server is unreachable", async () => {
      const store = await open();
      await store.create("t.away.1", bytes("x"));
      await kill();
      await assertRejects(() => store.get("t.away.1"), Error, "Cannot use the store of calls");
      await assertRejects(() => store.create("t.away.2", bytes("x")), Error);
      await start();
      while (await store.get("t.away.1").catch(() => undefined) === undefined) await turn();
    }, 60_000);
  });
}
