/**
 * The entry for Node: `node examples/edge/node.ts`. Listens on `PORT`, or 8787, of this machine
 * alone unless `HOST` is another address.
 */

import process from "node:process";
import { serve } from "@hono/node-server";
import { createEdgeApp } from "./app.ts";

const app = createEdgeApp({ token: process.env["PLUE_TOKEN"] });
const hostname = process.env["HOST"] ?? "127.0.0.1";

/** The time limits for the arrival of a request, in ms. Slower clients are disconnected. */
const serverOptions = {
  headersTimeout: 10_000,
  requestTimeout: 40_000,
  connectionsCheckingInterval: 5_000,
};

const port = Number(process.env["PORT"] ?? 8787);
const server = serve({ fetch: app.fetch, hostname, port, serverOptions }, ({ port }) => {
  console.log(`Serving http://${hostname}:${port}`);
});
// A connection without traffic is closed after a time that is longer than any call or heartbeat.
if ("timeout" in server) server.timeout = 120_000;
