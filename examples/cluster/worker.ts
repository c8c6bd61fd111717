/**
 * A worker of the cluster: it offers four tools, and stops when it is told to.
 *
 *     worker.ts nats://127.0.0.1:4222 [version]
 *
 * It prints a line for each run of a tool, so that runs can be counted.
 */

import process from "node:process";
import { connect } from "@nats-io/transport-node";
import { defineTool, type ToolContext, ToolRegistry } from "@plue/tools";
import { attemptOf, serveTools } from "@plue/tools/nats";
import { LEASE_MS, SECRET } from "./cluster.ts";

const [, , servers = "nats://127.0.0.1:4222", version = "1"] = process.argv;
const runtime = "Deno" in globalThis ? "deno" : "Bun" in globalThis ? "bun" : "node";

const parameters = {
  type: "object",
  properties: { number: { type: "integer" } },
  required: ["number"],
} as const;

/** Works for 5 ms. */
async function work({ number }: { readonly number: number }, context: ToolContext) {
  console.log(`ran ${context.callId}`);
  await new Promise((resolve) => setTimeout(resolve, 5));
  return { square: number * number, by: runtime, attempt: attemptOf(context) ?? 0 };
}

const described = { description: `Squares a number, version ${version}.`, parameters };
const registry = new ToolRegistry({
  tools: [
    // What is done twice would be wrong.
    defineTool({ name: "once", ...described, execute: work }),
    // May be done again.
    defineTool({ name: "again", idempotent: true, ...described, execute: work }),
    // May be done again, and has to be done.
    defineTool({ name: "task", idempotent: true, execution: "task", ...described, execute: work }),
    defineTool({
      ...{ name: "add", idempotent: true, ...described },
      execute: ({ number }) => number + 1,
    }),
    // The same, but begun only when the caller has said so.
    defineTool({ name: "count", ...described, execute: ({ number }) => number + 1 }),
  ],
});

const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
const served = await serveTools(registry, connection, { secret: SECRET, leaseMs: LEASE_MS });
console.log("ready");
process.once("SIGTERM", () => {
  void served.close().then(() => connection.drain()).then(() => process.exit(0));
});
