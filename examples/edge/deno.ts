/**
 * The entry for Deno: `deno serve --allow-env=PLUE_TOKEN examples/edge/deno.ts`.
 *
 * @module
 */

import process from "node:process";
import { createEdgeApp } from "./app.ts";

const app = createEdgeApp(process.env["PLUE_TOKEN"]);

export default {
  fetch: (request: Request): Response | Promise<Response> => app.fetch(request),
};
