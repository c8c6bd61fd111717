import { describe, it } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import * as plue from "@plue/tools";
import { ToolDispatcher } from "@plue/tools";
import { memoryCallStore, sealedTickets } from "@plue/tools/calls";
import { ownerDigest } from "../../../src/execute/durable/mod.ts";
import { describeCallTickets } from "../../contract/call_tickets_contract.ts";

const secret = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);

describeCallTickets(
  "sealedTickets()",
  () => (options) => sealedTickets({ keys: [secret(1)], ...options }),
);

describe("sealedTickets()", () => {
  const registry = new plue.ToolRegistry({
    tools: [{
      name: "greet",
      description: "Greets.",
      async execute(_, { ask }) {
        const answer = await ask("name", { message: "Who?", schema: { type: "string" } });
        return answer.action === "accept" ? `Hello ${answer.content}` : "Hello";
      },
    }],
  });
  const ANN = { name: { action: "accept", content: "Ann" } } as const;
  const withKeys = (...keys: (string | Uint8Array)[]): ToolDispatcher =>
    new ToolDispatcher(registry, { tickets: sealedTickets({ keys }) });
  async function suspend(dispatcher: ToolDispatcher): Promise<plue.SuspendedCall> {
    const waiting = await dispatcher.dispatch({ name: "greet" });
    assert(plue.isSuspended(waiting));
    return waiting;
  }

  it("may be used again during its lifetime without a store", async () => {
    const dispatcher = withKeys(secret(1));
    const { ticket } = await suspend(dispatcher);
    const again = async (): Promise<boolean> => (await dispatcher.resume(ticket, ANN)).ok;
    assertEquals([await again(), await again()], [true, true]);
  });

  it("opens the tickets of all its keys, and seals with the first", async () => {
    const old = withKeys(secret(1));
    const { ticket } = await suspend(old);
    const rotated = withKeys(secret(2), secret(1));
    const result = await rotated.resume(ticket, ANN);
    assertEquals(result.ok && result.content, "Hello Ann");
    const refused = await old.resume((await suspend(rotated)).ticket, ANN);
    assertStringIncludes(
      refused.ok ? "" : refused.error.message,
      "its ticket was sealed with an unknown key",
    );
  });

  it("rejects a ticket of another key with the name of its own key", async () => {
    const [mine] = (await suspend(withKeys(secret(1)))).ticket.split(".");
    const [, ...other] = (await suspend(withKeys(secret(2)))).ticket.split(".");
    const result = await withKeys(secret(1)).resume([mine, ...other].join("."), ANN);
    assertStringIncludes(result.ok ? "" : result.error.message, "is damaged");
  });

  it("accepts keys in Base64", async () => {
    const text = btoa(String.fromCharCode(...secret(255)));
    const url = text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const { ticket } = await suspend(withKeys(text));
    const result = await withKeys(`${url}\n`).resume(ticket, ANN);
    assertEquals(result.ok, true);
  });

  it("leaves no timers and listeners for 1,000 suspended calls", async () => {
    let timers = 0;
    const dispatcher = new ToolDispatcher(registry, {
      tickets: sealedTickets({ keys: [secret(1)] }),
      clock: {
        ...plue.systemClock,
        setTimeout(wake, ms) {
          timers++;
          const stop = plue.systemClock.setTimeout(() => (timers--, wake()), ms);
          return () => (timers--, stop());
        },
      },
    });
    const client = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = client.signal;
    client.signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners++;
      addEventListener.apply(client.signal, args);
    };
    client.signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners--;
      removeEventListener.apply(client.signal, args);
    };
    for (let round = 0; round < 10; round++) {
      const greet = () => dispatcher.dispatch({ name: "greet" }, { signal: client.signal });
      await Promise.all(Array.from({ length: 100 }, greet));
    }
    const { inFlight, tools: [tool] } = dispatcher.metrics();
    assertEquals([inFlight, tool?.suspended, tool?.abandoned], [0, 1_000, 0]);
    assertEquals([timers, listeners], [0, 0]);
  }, 60_000);

  it("stores nothing for a suspended call, and one mark for a resumed call", async () => {
    const store = memoryCallStore();
    const dispatcher = new ToolDispatcher(registry, {
      tickets: sealedTickets({ keys: [secret(1)], store }),
    });
    const keys = async (): Promise<number> => {
      let count = 0;
      for await (const _ of store.list(`used.${await ownerDigest(undefined)}`)) count++;
      return count;
    };
    const { ticket } = await suspend(dispatcher);
    assertEquals(await keys(), 0);
    await dispatcher.resume(ticket, ANN);
    assertEquals(await keys(), 1);
  });

  it("rejects invalid keys without showing them", () => {
    for (const keys of [undefined, [], "x", ["secret"], [new Uint8Array(16)], [secret(1), 7]]) {
      const error = assertThrows(() => sealedTickets({ keys } as never), TypeError);
      assertEquals(/Cannot seal tickets: keys/.test(error.message), true);
      assertEquals(error.message.includes('secret"'), false);
    }
    assertThrows(() => sealedTickets({ keys: [secret(1)], ttlMs: 0 }), RangeError, "ttlMs");
    assertThrows(() => sealedTickets({ keys: [secret(1)], ttl: 1 } as never), TypeError, "ttl");
  });
});
