/** Shares reads of a store, refreshes and connections between requests, as a worker. */

import { memoryCallStore } from "@plue/tools/calls";
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
const connections = new CallerConnections(options, {}, () => opener, {}, () => {});

const PATHS: { readonly [path: string]: (signal: AbortSignal) => unknown } = {
  "/healthz": () => {},
  async "/seed"() {
    const stale = { token: "old", refresh: "r", requested: [], staleAt: 0 };
    await tokens.end(KEY, "an authorization", stale);
    // The lock of a refresh that has ended without its end is removed by its expiry.
    const { revision } = await store.get(LOCK) ?? {};
    if (revision !== undefined) await store.delete(LOCK, revision);
  },
  async "/permission"(signal) {
    const arrived = tokens.arrived(KEY, "", signal);
    await fetch(hub);
    await arrived;
  },
  "/refresh": () => tokens.refresh(KEY, () => Promise.resolve({ token: "new" })),
  "/connection": (signal) =>
    connections.use(undefined, { principal: "ann", signal } as never, () => Promise.resolve()),
  "/reconnection"(signal) {
    if (!isReconnecting) connection.connectLater();
    isReconnecting = true;
    return connection.client(signal);
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
