/** Shares reads of a store, refreshes and connections between requests, as a worker. */

import { ToolDispatcher, ToolRegistry } from "@plue/tools";
import { memoryCallStore } from "@plue/tools/calls";
import { storedRateLimits } from "@plue/tools/hono";
import { journal } from "@plue/tools/journal";
import { toolPins } from "@plue/tools/pins";
import { breakCircuits } from "@plue/tools/resilience";
import { TokenStore } from "../../src/adapters/credentials/token_store.ts";
import { createSealer } from "../../src/adapters/http/sealing.ts";
import { CallerConnections } from "../../src/adapters/mcp/caller_connections.ts";
import { McpConnection } from "../../src/adapters/mcp/connection.ts";

const KEY = "credential.ann.hub";
const LOCK = "refresh.ann.hub";
const store = memoryCallStore();
let hub = "";
/** The store and the connection wait for the server of the test. */
const waiting = {
  ...store,
  get: async (key: string) => {
    await fetch(hub);
    return await store.get(key);
  },
};
const rates = storedRateLimits(waiting);
const pins = toolPins({ load: async () => void await fetch(hub), save: async () => {} });
const NO_TOOLS = { source: "mcp", tools: [], warnings: [], rejected: [] };
const sink = { append: async () => void await fetch(hub), async *pages() {} };
const records = journal({ sink, onFailure: "refuse-calls" });
let failures = 0;
const registry = new ToolRegistry({
  tools: [
    {
      ...{ name: "ready", description: "Is made ready by a request." },
      init: async () => void await fetch(hub),
      execute: () => "done",
    },
    {
      ...{ name: "failing", description: "Fails once." },
      async execute() {
        if (failures++ === 0) throw new Error("It failed");
        await fetch(hub);
      },
    },
  ],
});
const layers = [records, breakCircuits({ failures: 1, coolDownMs: 1 })];
const dispatcher = new ToolDispatcher(registry, { layers, timeoutMs: 200 });
const tokens = new TokenStore(waiting, createSealer("test", [new Uint8Array(32)]));
const opener = {
  ...{ transport: "http", isOwn: true, describe: (error: unknown) => error } as const,
  open: async () => {
    await fetch(hub);
    return { close: () => Promise.resolve() } as never;
  },
};
const events = { onConnected: () => Promise.resolve(), onError() {}, onState() {} };
const connection = new McpConnection(opener, {}, events);
let isReconnecting = false;
const options = { authorize: () => "the token of ann", sharesList: true };
const connections = new CallerConnections({
  ...{ ...options, http: {}, open: () => opener, reconnect: {} },
  ...{ onError() {}, async onUnlisted() {}, listed: () => undefined },
});

const PATHS: { readonly [path: string]: (signal: AbortSignal) => unknown } = {
  "/healthz": () => {},
  async "/seed"() {
    const stale = { token: "old", refresh: "r", requested: [], staleAt: 0 };
    await tokens.end(KEY, "an authorization", stale);
    // The lock of an interrupted refresh stays until it expires, so it is deleted here.
    const { revision } = await store.get(LOCK) ?? {};
    if (revision !== undefined) await store.delete(LOCK, revision);
  },
  async "/permission"(signal) {
    const arrived = tokens.arrived(KEY, "", signal);
    await fetch(hub);
    await arrived;
  },
  "/refresh": () => tokens.refresh(KEY, () => Promise.resolve({ token: "new" })),
  async "/connection"(signal) {
    const context = { principal: "ann", signal } as never;
    const failure = await connections.use(undefined, context, () => Promise.resolve());
    if (failure !== undefined) throw new Error("It failed");
  },
  "/reconnection"(signal) {
    if (!isReconnecting) connection.connectLater();
    isReconnecting = true;
    return connection.client(signal);
  },
  async "/initialization"() {
    if (!(await dispatcher.dispatch({ name: "ready" })).ok) throw new Error("It failed");
  },
  "/count": () => rates.take("ann", 1, { limit: 100, windowMs: 60_000 }),
  "/check": async () => {
    const { warnings } = await pins.check(NO_TOOLS, "x");
    if (warnings.length > 0) throw new Error("It failed");
  },
  "/record": () => records.flush(),
  async "/trial"() {
    while (!(await dispatcher.dispatch({ name: "failing" })).ok) {
      await new Promise((next) => setTimeout(next, 5));
    }
  },
};

export default {
  async fetch({ url, signal }: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(url);
    hub = searchParams.get("hub") ?? "";
    await PATHS[pathname]?.(signal);
    return new Response("done");
  },
};
