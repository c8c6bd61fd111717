/** Call stores whose connection breaks before an answer arrives. */

import { assert, assertEquals } from "@std/assert";
import { isSuspended, ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { type CallStore, SettledStore, storedTickets } from "../../src/execute/durable/mod.ts";
import { CutProxy } from "../support/cut_proxy.ts";

/**
 * A test of a store behind a proxy that loses the answer to a write.
 *
 * @param port The port of the server.
 * @param open Opens a store by the port of the proxy.
 */
export async function loseAnswers(
  port: number,
  open: (port: number) => CallStore | Promise<CallStore>,
): Promise<void> {
  await using proxy = await CutProxy.start(port);
  const store = await open(proxy.port);
  const registry = new ToolRegistry({
    tools: [{
      name: "pay",
      description: "Pays.",
      execute: async (_, { ask }) => (await ask("sure", { message: "Pay?" })).action,
    }],
  });
  const dispatcher = new ToolDispatcher(registry, { tickets: storedTickets(store) });
  for (let round = 0; round < 3; round++) {
    const waiting = await dispatcher.dispatch({ name: "pay" });
    assert(isSuspended(waiting), JSON.stringify(waiting));
    const resume = () => dispatcher.resume(waiting.ticket, { sure: { action: "accept" } });
    const settled = new SettledStore(store);
    proxy.cut();
    assertEquals(typeof await settled.create(`t.a.${round}`, new Uint8Array(1)), "number");
    assertEquals(await settled.create(`t.a.${round}`, new Uint8Array(1)), undefined);
    const result = await resume();
    assert(result.ok, JSON.stringify(result));
    const again = await resume();
    assertEquals(!again.ok && again.error.code, "ticket_refused");
  }
  assertEquals(proxy.lost, 3);
}
