import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { describe, it } from "bun:test";
import { type CallStore, memoryCallStore } from "@plue/tools/calls";
import { journal, readJournal, storeSink, verifyJournal } from "@plue/tools/journal";
import { losingStore, type Loss } from "../../contract/losing_store.ts";
import { recorded } from "./support.ts";

const TOOLS = [{ name: "ping", execute: () => "pong" }];

const keysIn = (store: CallStore): Promise<string[]> =>
  Array.fromAsync(store.list("journal.calls"), ({ key }) => key);
const verified = (store: CallStore) => verifyJournal(storeSink(store).pages("oldest first"));

describe("storeSink()", () => {
  it("stores records in few entries, which can be read and verified, and continues them", async () => {
    const store = memoryCallStore();
    for (let times = 0; times < 3; times++) {
      const { call, journal: kept } = recorded(TOOLS, { sink: storeSink(store) });
      for (let calls = 0; calls < 60; calls++) {
        await call("ping");
        await kept.flush();
      }
      await kept.close();
    }
    const { ok, records, first, interrupted } = await verified(store);
    assertEquals([ok, records, first, interrupted], [true, 186, 1, []]);
    const numbers = await Array.fromAsync(readJournal(storeSink(store)), (one) => one.sequence);
    assertEquals(numbers, Array.from({ length: 186 }, (_, at) => 186 - at));
    assertEquals((await keysIn(store)).length, 2);
  });

  it("fails the writes of a process when another one has opened the journal", async () => {
    const store = memoryCallStore();
    const [first, second] = [storeSink(store), storeSink(store)].map((sink) =>
      recorded(TOOLS, { sink })
    );
    assert(first !== undefined && second !== undefined);
    await first.journal.flush();
    await second.journal.flush();
    await first.call("ping");
    await assertRejects(() => first.journal.flush(), TypeError, "another process writes");
    await second.call("ping");
    await second.journal.close();
    const { ok, records, interrupted } = await verified(store);
    assertEquals([ok, records, interrupted], [true, 4, [1]]);
    await assertRejects(() => first.journal.close(), TypeError, "another process writes");
  });

  it("fails the writes of the first process also if its next record needs a new entry", async () => {
    const store = memoryCallStore();
    const [first, second] = [storeSink(store), storeSink(store)].map((sink) =>
      recorded(TOOLS, { sink, arguments: "full" })
    );
    assert(first !== undefined && second !== undefined);
    const text = "x".repeat(40_000);
    await first.call("ping", { text });
    await first.journal.flush();
    await second.journal.flush();
    await first.call("ping", { text });
    await assertRejects(() => first.journal.flush(), TypeError, "another process writes");
    await second.call("ping", { text });
    await second.journal.close();
    const { ok, records, problem } = await verified(store);
    assertEquals([ok, records, problem], [true, 5, undefined]);
    await assertRejects(() => first.journal.close(), TypeError, "another process writes");
  });

  for (const loss of ["answer", "write"] as const) {
    it(`writes each record once if the store loses each second ${loss}`, async () => {
      const store = memoryCallStore();
      let writes = 0;
      const losing = losingStore(store, (): Loss | undefined => ++writes % 2 ? loss : undefined);
      const { call, journal: kept } = recorded(TOOLS, { sink: storeSink(losing) });
      for (let calls = 0; calls < 10; calls++) {
        await call("ping");
        await kept.flush().catch(() => kept.flush()).catch(() => {});
      }
      await kept.flush().catch(() => {});
      await kept.close().catch(() => {});
      const { ok, problem } = await verified(store);
      const kinds = await Array.fromAsync(readJournal(storeSink(store)), ({ kind }) => kind);
      assertEquals([ok, problem], [true, undefined]);
      assertEquals(kinds.filter((kind) => kind === undefined).length, 10);
    });
  }

  it("stores a record without its arguments if they are too long for an entry", async () => {
    const store = memoryCallStore();
    const sink = storeSink(store);
    const { call, journal: kept } = recorded(TOOLS, { sink, arguments: "full" });
    await call("ping", { text: "x".repeat(400_000) });
    await call("ping", { text: "x".repeat(300_000) });
    await kept.close();
    const [, short, long] = await Array.fromAsync(readJournal(sink));
    assertEquals([long?.tool, long?.outcome, long?.arguments], ["ping", "ok", undefined]);
    assertEquals((short?.arguments as { text: string }).text.length, 300_000);
  });

  it("begins a new entry when the newest one has expired", async () => {
    const clock = { time: 1_000, timestamp: () => clock.time };
    const store = { ...memoryCallStore({ clock }), now: () => clock.time };
    const sink = storeSink(store, { name: "short", keepMs: 100 });
    const { call, journal: kept } = recorded(TOOLS, { sink });
    await kept.flush();
    clock.time += 200;
    await call("ping");
    await kept.close();
    const kinds = await Array.fromAsync(readJournal(sink), ({ kind, tool }) => kind ?? tool);
    assertEquals(kinds, ["end", "ping"]);
  });

  it("rejects options that are invalid", () => {
    const store = memoryCallStore();
    assertThrows(() => storeSink({} as never), TypeError, "store");
    assertThrows(() => storeSink(store, { name: "a b" }), TypeError, "key");
    assertThrows(() => storeSink(store, { keepMs: 0 }), RangeError, "keepMs");
    assertThrows(() => journal({ sink: storeSink(store) } as never), TypeError, "onFailure");
  });
});
