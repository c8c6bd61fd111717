import { describe, it } from "bun:test";
import { assert, assertEquals, assertGreater, assertLess, assertThrows } from "@std/assert";
import { isSuspended, ToolDispatcher, ToolRegistry } from "../../../../mod.ts";
import * as durable from "../../../../src/execute/durable/mod.ts";
import { describeCallTickets } from "../../../contract/call_tickets_contract.ts";

describe("storedTickets()", () => {
  it("rejects an invalid store", () => {
    for (const store of [undefined, null, {}, { get: () => {} }]) {
      assertThrows(
        () => durable.storedTickets(store as never),
        TypeError,
        "Cannot make tickets: store must",
      );
    }
  });

  it("are replaced by a small mark after their call was resumed", async () => {
    const store = durable.memoryCallStore({ maxBytes: 1_000_000, maxOwnerBytes: 1_000_000 });
    const registry = new ToolRegistry({
      tools: [{
        name: "write",
        description: "Writes.",
        parameters: { type: "object", properties: { text: { type: "string" } } },
        async execute(_, { ask }) {
          await ask("sure", { message: "?" });
          return "written";
        },
      }],
    });
    const dispatcher = new ToolDispatcher(registry, { tickets: durable.storedTickets(store) });
    for (let turn = 0; turn < 10; turn++) {
      const call = { name: "write", arguments: { text: "x".repeat(400_000) } };
      const waiting = await dispatcher.dispatch(call);
      assert(isSuspended(waiting), JSON.stringify(waiting));
      const result = await dispatcher.resume(waiting.ticket, { sure: { action: "accept" } });
      assertEquals(result.ok, true);
    }
    let bytes = 0;
    const owned = `ticket.${await durable.ownerDigest(undefined)}`;
    for await (const { value } of store.list(owned)) bytes += value.byteLength;
    assertGreater(bytes, 0);
    assertLess(bytes, 10_000);
  });
});

describeCallTickets("storedTickets()", () => {
  const store = durable.memoryCallStore({ clock: { timestamp: () => 1_800_000_000_000 } });
  return (options) => durable.storedTickets(store, options);
});
