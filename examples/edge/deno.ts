/**
 * The entry for Deno: `deno serve --host 127.0.0.1 --allow-env=PLUE_TOKEN examples/edge/deno.ts`.
 * Without `--host` it listens on every address of the machine. Deno does not disconnect slow
 * clients: `docs/http.md` says what to put in front.
 */

import process from "node:process";
import { createEdgeApp } from "./app.ts";

const app = createEdgeApp({ token: process.env["PLUE_TOKEN"] });

export default {
  fetch: (request: Request): Response | Promise<Response> => app.fetch(request),
};
