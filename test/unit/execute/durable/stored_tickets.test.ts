import { memoryCallStore, storedTickets } from "../../../../src/execute/durable/mod.ts";
import { describeCallTickets } from "../../../contract/call_tickets_contract.ts";

describeCallTickets("storedTickets()", () => {
  const store = memoryCallStore({ clock: { timestamp: () => 1_800_000_000_000 } });
  return (options) => storedTickets(store, options);
});
