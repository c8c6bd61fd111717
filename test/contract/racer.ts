// A process of the race: runs the calls in an order of its own. The input has the ticket of each even
// call. Prints "ran <number>" for each run of a tool, "unsettled
// <number>" for a call whose claim may have been lost, and the unexpected results.

import process from "node:process";
import { createInterface } from "node:readline";
import { ToolDispatcher, ToolRegistry, type ToolResult } from "../../mod.ts";
import { openStore } from "../../src/cli/store.ts";
import { storedKeys, storedTickets } from "../../src/execute/durable/mod.ts";

const { store } = await openStore("open the store", process.argv[2] ?? "");
const print = (line: string): Promise<void> =>
  new Promise((resolve) => void process.stdout.write(`${line}\n`, () => resolve()));

const parameters = {
  type: "object",
  properties: { number: { type: "integer" } },
  required: ["number"],
} as const;
const registry = new ToolRegistry({
  tools: [{
    name: "pay",
    description: "Pays.",
    parameters,
    execute: ({ number }) => print(`ran ${number}`),
  }, {
    name: "approved",
    description: "Pays after an approval.",
    parameters,
    async execute({ number }, { ask }) {
      await ask("sure", { message: "?" });
      await print(`ran ${number}`);
    },
  }],
});
const dispatcher = new ToolDispatcher(registry, {
  tickets: storedTickets(store),
  idempotency: { kept: storedKeys(store) },
});

async function call(number: number, ticket: string): Promise<void> {
  for (let tries = 0;; tries++) {
    const result: ToolResult = ticket === ""
      ? await dispatcher.dispatch({ name: "pay", arguments: { number } }, {
        idempotencyKey: `order-${number}`,
      })
      : await dispatcher.resume(ticket, { sure: { action: "accept" } });
    if (result.ok) return;
    const { code, ran, retryable, message } = result.error;
    if (code === "ticket_refused" || ran !== "no") {
      // Another process has or had the call, or the server was unreachable after a claim.
      if (tries > 0) await print(`unsettled ${number}`);
      return;
    }
    if (!retryable) return await print(`unexpected ${number}: ${message}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

await print("ready");
const line = await new Promise<string>((resolve) =>
  createInterface(process.stdin).once("line", resolve)
);
const tickets: readonly string[] = JSON.parse(line);
const order = tickets.map((_, number) => number).sort(() => Math.random() - 0.5);
await Promise.all([0, 1, 2, 3].map(async (lane) => {
  for (let at = lane; at < order.length; at += 4) {
    const number = order[at] ?? 0;
    await call(number, tickets[number] ?? "");
  }
}));
process.exit(0);
