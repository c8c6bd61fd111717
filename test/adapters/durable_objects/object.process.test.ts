import { describe, it } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import type { CallStore } from "@plue/tools/calls";
import {
  callStoreObject,
  type CallStoreObjectOptions,
  durableObjectStore,
} from "@plue/tools/durable-objects";

const HOUR = 3_600_000;
const value = new TextEncoder().encode("one");

/** The platform's storage of an object, with `node:sqlite`. */
class State {
  readonly #db = new DatabaseSync(":memory:");
  readonly alarms: number[] = [];
  readonly pending: Promise<unknown>[] = [];
  readonly storage = {
    sql: {
      exec: (query: string, ...values: readonly (string | number | null | ArrayBuffer)[]) => {
        if (values.length === 0 && query.includes(";")) return void this.#db.exec(query), [];
        const bound = values.map((one) => one instanceof ArrayBuffer ? new Uint8Array(one) : one);
        return this.#db.prepare(query).all(...bound).map((row) =>
          row["value"] instanceof Uint8Array ? { ...row, value: row["value"].slice().buffer } : row
        );
      },
    },
    transactionSync: <T>(work: () => T): T => work(),
    setAlarm: (at: number): Promise<void> => Promise.resolve(void this.alarms.push(at)),
  };

  waitUntil(promise: Promise<unknown>): void {
    this.pending.push(promise);
  }
}

function fail(message: string): never {
  throw new Error(message);
}

/** A store with one object, in this process. */
function createStore(options: Partial<CallStoreObjectOptions<unknown>> = {}) {
  const state = new State();
  const Calls = callStoreObject(Object as unknown as new (...args: unknown[]) => object, options);
  const object = new Calls(state, {});
  const store: CallStore = durableObjectStore(
    { idFromName: (name) => name, get: () => object },
    { shards: 1 },
  );
  return { state, object, store, ...state };
}

describe("callStoreObject()", () => {
  it("sets an alarm ten seconds after the first expiry", async () => {
    const { store, alarms } = createStore();
    const now = Date.now();
    await store.create("t.a.1", value);
    assertEquals(alarms, []);
    await store.create("t.a.2", value, { expiresAt: now + HOUR });
    await store.create("t.a.3", value, { expiresAt: now + 2 * HOUR });
    await store.create("t.a.4", value, { expiresAt: now + HOUR / 2 + 0.5 });
    assertEquals(alarms, [now + HOUR + 10_000, now + HOUR / 2 + 10_001]);
  });

  it("sets no alarm that a date cannot represent", async () => {
    const { store, alarms } = createStore();
    const now = Date.now();
    await store.create("t.a.1", value, { expiresAt: Number.MAX_VALUE });
    assertEquals(alarms.map((at) => at >= now + 2 ** 31 && at < now + 2 ** 31 + HOUR), [true]);
  });

  it("deletes expired entries, and sets the next alarm", async () => {
    const { store, state, object, alarms } = createStore();
    const now = Date.now();
    await store.create("t.a.1", value, { expiresAt: now - 1 });
    await store.create("t.a.2", value, { expiresAt: now + HOUR });
    await object.alarm();
    assertEquals(alarms, [now + 9_999, now + HOUR + 10_000]);
    const rows = state.storage.sql.exec("select key from entries where key > ?", "");
    assertEquals(rows.map((row) => ({ ...row })), [{ key: "t.a.2" }]);
    assertEquals(state.storage.sql.exec("select bytes from owners where owner = ?", "a").length, 1);
  });

  it("resumes due tasks, and checks again after ten seconds", async () => {
    const seen: unknown[] = [];
    const { store, state, object, alarms } = createStore({
      store: () => store,
      async recover(own, env) {
        const [entry] = await own.due("task", Date.now(), 9);
        seen.push(entry?.key, (await own.get("task.a.1"))?.value, env);
      },
    });
    const now = Date.now();
    await store.create("task.a.1", value, { dueAt: now + HOUR });
    await object.alarm();
    assertEquals([state.pending.length, alarms], [0, [now + HOUR, now + HOUR]]);
    await store.create("task.a.2", value, { dueAt: now });
    await object.alarm();
    await Promise.all(state.pending);
    assertEquals(seen, ["task.a.2", value, {}]);
    assertEquals(alarms.length, 4);
    assertEquals([alarms[2], (alarms[3] ?? 0) >= now + 10_000], [now, true]);
    // A task that is due earlier moves the alarm forward.
    await store.create("task.a.3", value, { dueAt: now + 9_000 });
    assertEquals(alarms.slice(4), [now + 9_000]);
  });

  it("sets the next alarm if the hooks fail", async () => {
    const failures = [
      { store: () => fail("no store"), recover() {} },
      { store: () => createStore().store, recover: () => fail("no recovery") },
      { store: () => createStore().store, recover: () => Promise.reject(new Error("late")) },
    ];
    for (const options of failures) {
      const { store, object, state, alarms } = createStore(options);
      await store.create("task.a.1", value, { dueAt: 1 });
      await object.alarm();
      const [outcome] = await Promise.allSettled(state.pending);
      // The platform logs the rejected promise.
      assertEquals([outcome?.status, alarms.length], ["rejected", 2]);
    }
  });

  it("does not run the next alarm later because a task runs", async () => {
    const { store, object, state } = createStore({
      store: () => store,
      recover: () => new Promise(() => {}),
    });
    await store.create("task.a.1", value, { dueAt: 1 });
    await object.alarm();
    assertEquals(state.pending.length, 1);
  });

  it("sets no alarm for other entries, nor if nothing resumes tasks", async () => {
    const { store, alarms } = createStore();
    await store.create("task.a.1", value, { dueAt: 1 });
    assertEquals(alarms, []);
    const other = createStore({ store: () => store, recover() {} });
    await other.store.create("dead.a.1", value, { dueAt: 1 });
    await other.object.alarm();
    assertEquals([other.alarms, other.state.pending], [[], []]);
  });

  it("rejects invalid options", () => {
    class Base {}
    assertThrows(
      () => callStoreObject(Base, { recover: () => {} }),
      TypeError,
      "Cannot make the class of the store's objects: recover needs the option store",
    );
    assertThrows(() => callStoreObject(Base, { other: 1 } as object), TypeError, "other");
    assertThrows(() => callStoreObject(undefined as unknown as typeof Base), TypeError, "base");
  });
});

describe("durableObjectStore()", () => {
  const namespace = { idFromName: (name: string) => name, get: () => ({}) };

  it("rejects invalid options", () => {
    const open = (options: object) => () => durableObjectStore(namespace, options);
    assertThrows(open({ shards: 0 }), RangeError, "shards");
    assertThrows(open({ name: "a:b" }), TypeError, "name");
    assertThrows(open({ maxOwnerBytes: 0 }), RangeError, "maxOwnerBytes");
    assertThrows(open({ clock: Date }), TypeError, "clock");
    assertThrows(() => durableObjectStore({} as typeof namespace), TypeError, "idFromName");
  });
});
