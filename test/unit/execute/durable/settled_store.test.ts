import { describe, it } from "bun:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { isSuspended } from "../../../../mod.ts";
import { sealedTickets } from "../../../../src/adapters/calls/mod.ts";
import * as durable from "../../../../src/execute/durable/mod.ts";
import { memoryCallStore, SettledStore } from "../../../../src/execute/durable/mod.ts";
import { describeCallStore } from "../../../contract/call_store_contract.ts";
import { BROKEN, losesOften, losingStore, type Loss } from "../../../contract/losing_store.ts";
import { fixture } from "../support.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describeCallStore("SettledStore over a store that loses writes and answers", {
  create: (clock) => new SettledStore(losingStore(memoryCallStore({ clock }), losesOften())),
  maxBytes: durable.MAX_STORED_BYTES - 16,
});

/** Returns a store in memory that loses the writes of this name, as long as there are losses. */
function losing(name: "create" | "update" | "delete", ...losses: Loss[]): durable.CallStore {
  return losingStore(memoryCallStore(), (write) => write === name ? losses.shift() : undefined);
}

describe("SettledStore", () => {
  it("rejects after four attempts, and if the store rejects the value", async () => {
    const down = new SettledStore(losing("create", "write", "write", "write", "write"));
    assertEquals(await assertRejects(() => down.create("a.b", bytes("x"))), BROKEN);
    assertEquals(typeof await down.create("a.b", bytes("x")), "number");
    const full = new SettledStore(memoryCallStore({ maxBytes: 300 }));
    await assertRejects(() => full.create("a.b", new Uint8Array(400)), RangeError);
  });

  it("distinguishes its own value from the equal value of another process", async () => {
    const shared = memoryCallStore();
    const first = await new SettledStore(shared).create("a.b", bytes(""));
    const losses: Loss[] = ["write"];
    const other = new SettledStore(losingStore(shared, () => losses.shift()));
    assertEquals([typeof first, await other.create("a.b", bytes(""))], ["number", undefined]);
  });

  it("reports a write that another process has replaced as not made", async () => {
    const shared = memoryCallStore();
    const settled = new SettledStore(shared);
    const first = await settled.create("a.b", bytes("1")) ?? 0;
    const replacing: durable.CallStore = {
      ...losingStore(shared, () => "answer"),
      async update(key, value, revision) {
        const mine = await shared.update(key, value, revision) ?? 0;
        await settled.update(key, bytes("theirs"), mine);
        throw BROKEN;
      },
    };
    assertEquals(await new SettledStore(replacing).update("a.b", bytes("2"), first), undefined);
  });
});

describe("a call over a store that loses an answer", () => {
  for (const loss of ["answer", "write"] as const) {
    it(`runs once for its idempotency key (${loss})`, async () => {
      for (const name of ["create", "update"] as const) {
        let runs = 0;
        const kept = durable.storedKeys(losing(name, loss));
        const { call } = fixture([{ name: "pay", execute: () => ++runs }], {
          idempotency: { kept },
        });
        for (let tries = 0; tries < 2; tries++) {
          const result = await call("pay", {}, { idempotencyKey: "order-7" });
          assertEquals(result.ok && result.content, 1);
        }
      }
    });

    for (const kind of ["stored", "sealed"] as const) {
      it(`resumes once with its ${kind} ticket (${loss})`, async () => {
        const store = losing(kind === "stored" ? "update" : "create", loss);
        const keys = [new Uint8Array(32).fill(7)];
        const tickets = kind === "stored"
          ? durable.storedTickets(store)
          : sealedTickets({ keys, store });
        const { dispatcher } = fixture([{
          name: "rm",
          execute: async (_, { ask }) => (await ask("sure", { message: "?" })).action,
        }], { tickets });
        const waiting = await dispatcher.dispatch({ name: "rm" });
        assert(isSuspended(waiting));
        const resume = () => dispatcher.resume(waiting.ticket, { sure: { action: "accept" } });
        const result = await resume();
        assertEquals(result.ok && result.content, "accept");
        const again = await resume();
        assertEquals(!again.ok && again.error.code, "ticket_refused");
      });
    }
  }
});
