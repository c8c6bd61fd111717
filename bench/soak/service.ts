/**
 * The service of the soak: tools that wait, stream and fail, over HTTP and MCP, for twenty callers.
 * Prints its address, and then its state as a line of JSON for each line on standard input. Runs on
 * Bun.
 */

import { heapStats } from "bun:jsc";
import { readdirSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";
import { defineTool, ToolDispatcher, ToolRegistry } from "../../mod.ts";
import { bearerAuth, createToolHandler, serveFormats } from "../../src/adapters/hono/mod.ts";
import { createMcpEndpoint } from "../../src/adapters/mcp/mod.ts";
import * as formats from "../../src/formats/mod.ts";
import { CALLERS, tokenOf } from "./callers.ts";

/** The service's counts. */
export interface SoakState {
  /** After a collection, in MiB. */
  readonly heap: number;
  /** Resident memory in MiB. */
  readonly rss: number;
  /** Open files and sockets. */
  readonly descriptors: number;
  /** The numbers of started tool functions and of cleanups. */
  readonly begun: number;
  readonly cleaned: number;
  /** The number of calls that the dispatcher counts as running. */
  readonly running: number;
  /** Unhandled rejections and errors, and reports to `onError`. */
  readonly unhandled: readonly string[];
  readonly reported: number;
}

let begun = 0;
let cleaned = 0;
let reported = 0;
const unhandled: string[] = [];
for (const event of ["unhandledRejection", "uncaughtException"] as const) {
  process.on(event, (error: unknown) => void unhandled.push(String(error)));
}

const wait = defineTool({
  name: "wait",
  description: "Waits, reports progress, and returns the nonce with the name of its caller.",
  parameters: {
    type: "object",
    properties: {
      nonce: { type: "string", maxLength: 64 },
      ms: { type: "integer", minimum: 0, maximum: 10_000 },
      fails: { type: "boolean" },
    },
    required: ["nonce", "ms"],
    additionalProperties: false,
  },
  risk: "safe",
  async execute({ nonce, ms, fails = false }, context) {
    const run = ++begun;
    context.defer(() => void cleaned++);
    for (let step = 1; step <= 3; step++) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          context.signal.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, ms / 3);
        context.signal.addEventListener("abort", done);
      });
      context.throwIfAborted();
      context.progress(step, 3);
      context.metadata({ nonce });
    }
    if (fails) throw new Error(`failed for ${nonce}`);
    return { nonce, principal: context.principal, run };
  },
});

const registry = new ToolRegistry({
  tools: [
    wait,
    ...Array.from({ length: 100 }, (_, index) =>
      defineTool({
        name: `tool_${index}`,
        description: `Does the work of tool ${index}, as one of many that are listed together.`,
        risk: "safe",
        parameters: { type: "object", properties: { path: { type: "string" } } },
        execute: () => null,
      })),
  ],
});
const onError = (): void => void reported++;
const dispatcher = new ToolDispatcher(registry, { onError });
const shared = {
  dispatcher,
  onError,
  authorize: bearerAuth({
    tokens: new Map(CALLERS.map((principal) => [tokenOf(principal), { principal }])),
  }),
};
const mcp = createMcpEndpoint(registry, { ...shared, name: "soak" });
const app = createToolHandler(registry, { ...shared, formats: serveFormats(formats) });
app.all("/mcp", mcp.handle);

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) => app.fetch(request),
});
console.log(String(server.url));

createInterface({ input: process.stdin }).on("line", () => {
  Bun.gc(true);
  const mib = (bytes: number): number => Math.round(bytes / 104_857.6) / 10;
  const state: SoakState = {
    heap: mib(heapStats().heapSize),
    rss: mib(process.memoryUsage.rss()),
    descriptors: readdirSync("/proc/self/fd").length,
    begun,
    cleaned,
    running: dispatcher.metrics().tools.reduce((sum, { inFlight }) => sum + inFlight, 0),
    unhandled,
    reported,
  };
  console.log(JSON.stringify(state));
}).on("close", () => process.exit());
