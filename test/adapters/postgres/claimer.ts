// A process of the race: runs calls with tickets and with idempotency keys, in an order of its own.
// The calls are numbered; the input has the ticket of each even number. Prints "ran <number>" for each
// run of the tool, "unsettled <number>" for a call that has failed while its claim may have been
// stored, and unexpected results.

import process from "node:process";
import { createInterface } from "node:readline";
import pg from "pg";
import { ToolDispatcher, ToolRegistry, type ToolResult } from "../../../mod.ts";
import { storedKeys, storedTickets } from "../../../src/execute/durable/mod.ts";
import { postgresCallStore } from "../../../src/adapters/postgres/mod.ts";

const pool = new pg.Pool({
  connectionString: process.argv[2] ?? "",
  connectionTimeoutMillis: 5_000,
  max: 4,
});
const store = await postgresCallStore(pool);
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

async function claim(number: number, ticket: string): Promise<void> {
  for (let tries = 0;; tries++) {
    const result: ToolResult = ticket === ""
      ? await dispatcher.dispatch({ name: "pay", arguments: { number } }, {
        idempotencyKey: `order-${number}`,
      })
      : await dispatcher.resume(ticket, { sure: { action: "accept" } });
    if (result.ok) return;
    const { code, ran, retryable, message } = result.error;
    // Another process has run it or runs it, and may have failed to store its result.
    if (code === "ticket_refused" || ran !== "no") {
      return tries === 0 ? undefined : await print(`unsettled ${number}`);
    }
    if (!retryable) return await print(`unexpected ${number}: ${message}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

await print("ready");
const [line = "[]"] = await new Promise<string[]>((resolve) =>
  createInterface(process.stdin).once("line", (line) => resolve([line]))
);
const tickets: readonly string[] = JSON.parse(line);
const order = tickets.map((_, number) => number).sort(() => Math.random() - 0.5);
await Promise.all([0, 1, 2, 3].map(async (lane) => {
  for (let at = lane; at < order.length; at += 4) {
    const number = order[at] ?? 0;
    await claim(number, tickets[number] ?? "");
  }
}));
await print("end");
process.exit(0);
