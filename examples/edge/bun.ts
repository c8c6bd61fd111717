/**
 * The entry for Bun: `bun examples/edge/bun.ts`. Listens on `PORT`, or 8787, of this machine
 * alone unless `HOST` is another address.
 */

import process from "node:process";
import { createEdgeApp } from "./app.ts";

const app = createEdgeApp({ token: process.env["PLUE_TOKEN"] });

export default {
  port: Number(process.env["PORT"] ?? 8787),
  hostname: process.env["HOST"] ?? "127.0.0.1",
  // Silent connections are closed after ten seconds. Bun passes its server as the second argument,
  // with which the app lifts that limit for a running call.
  fetch: app.fetch,
};
