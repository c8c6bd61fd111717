import { describe, it } from "bun:test";
import { assertThrows } from "@std/assert";
import { memoryCallStore, storedTickets } from "../../../../src/execute/durable/mod.ts";
import { describeCallTickets } from "../../../contract/call_tickets_contract.ts";

describe("storedTickets()", () => {
  it("refuses what is no store", () => {
    for (const store of [undefined, null, {}, { get: () => {} }]) {
      assertThrows(
        () => storedTickets(store as never),
        TypeError,
        "Cannot make tickets: store must",
      );
    }
  });
});

describeCallTickets("storedTickets()", () => {
  const store = memoryCallStore({ clock: { timestamp: () => 1_800_000_000_000 } });
  return (options) => storedTickets(store, options);
});
