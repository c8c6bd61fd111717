/**
 * The entry for Node: `node examples/edge/node.ts`. Listens on `PORT`, or 8787, of this machine
 * alone unless `HOST` is another address.
 *
 * @module
 */

import process from "node:process";
import { serve } from "@hono/node-server";
import { createEdgeApp } from "./app.ts";

const app = createEdgeApp({ token: process.env["PLUE_TOKEN"] });
const hostname = process.env["HOST"] ?? "127.0.0.1";

serve({ fetch: app.fetch, hostname, port: Number(process.env["PORT"] ?? 8787) }, ({ port }) => {
  console.log(`Serving http://${hostname}:${port}`);
});
