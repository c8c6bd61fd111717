/**
 * A worker of the cluster: it offers tools, and drains its calls at SIGTERM.
 *
 *     worker.ts nats://127.0.0.1:4222 [version]
 *
 * Each run of a tool first adds a line to the file in PLUE_LEDGER, so that a run counts even if the
 * process is killed.
 */

import { appendFileSync } from "node:fs";
import process from "node:process";
import { connect } from "@nats-io/transport-node";
import { defineTool, type ToolContext, ToolRegistry, ToolResult } from "@plue/tools";
import { attemptOf, serveTools } from "@plue/tools/nats";
import { LEASE_MS, SECRET } from "./cluster.ts";

const [, , servers = "nats://127.0.0.1:4222", version = "1"] = process.argv;
const runtime = "Deno" in globalThis ? "deno" : "Bun" in globalThis ? "bun" : "node";

const parameters = {
  type: "object",
  properties: { number: { type: "integer" } },
  required: ["number"],
} as const;

interface Arguments {
  readonly number: number;
}

/** Writes a line for the run, and works for 5 ms. */
async function work({ number }: Arguments, context: ToolContext) {
  const { PLUE_LEDGER: ledger } = process.env;
  if (ledger !== undefined) appendFileSync(ledger, `${context.callId}\n`);
  await new Promise((resolve) => setTimeout(resolve, 5));
  return { square: number * number, by: runtime, attempt: attemptOf(context) ?? 0 };
}

/** Yields five numbers. */
async function* stream(params: Arguments, context: ToolContext) {
  for (let at = 0; at < 5; at++) yield params.number + at;
  return await work(params, context);
}

const described = { description: `Squares a number, version ${version}.`, parameters };
const registry = new ToolRegistry({
  tools: [
    // May run once only.
    defineTool({ name: "once", ...described, execute: work }),
    defineTool({ name: "stream", ...described, execute: stream }),
    // May run again.
    defineTool({ name: "again", idempotent: true, ...described, execute: work }),
    // Idempotent: it may run more than once, and must run at least once.
    defineTool({ name: "task", idempotent: true, execution: "task", ...described, execute: work }),
    // It must run at most once, and is sometimes overloaded.
    defineTool({
      ...{ name: "busy", execution: "task", ...described },
      execute: (params, context) =>
        Math.random() < 0.3 ? ToolResult.error("overloaded", "Too busy") : work(params, context),
    }),
    defineTool({
      ...{ name: "add", idempotent: true, ...described },
      execute: ({ number }) => number + 1,
    }),
    // Like `add`, but each call waits for its caller's confirmation.
    defineTool({ name: "count", ...described, execute: ({ number }) => number + 1 }),
  ],
});

const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
const served = await serveTools(registry, connection, { secret: SECRET, leaseMs: LEASE_MS });
console.log("ready");
process.once("SIGTERM", () => {
  void served.close().then(() => connection.drain()).then(() => process.exit(0));
});
