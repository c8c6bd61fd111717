/**
 * The smallest worker: the tools over HTTP, without the rest of the service in `app.ts`.
 * `scripts/size.ts` limits its size.
 *
 * Callers with the token may list and call. If no token is configured, all callers may list, but
 * not call.
 */

import { Registry } from "../../src/core.ts";
import {
  composeToolHandler,
  type HttpHandler,
  serveExecution,
  serveListing,
} from "../../src/adapters/hono/mod.ts";
import { typeboxEngine } from "../../mod.ts";
import { edgeTools } from "./tools.ts";
import type { Environment, ExecutionContext } from "./worker.ts";

// `hardened(engine)` would protect the registry from patterns and schemas that were made to take
// much time. All schemas here are the program's own.
const registry = new Registry({ engine: typeboxEngine(), tools: edgeTools });
// A worker may generate code while its module loads, but not during a request.
registry.compile();

// The token comes with the first request; it does not change while the worker lives.
let handler: HttpHandler | undefined;

export default {
  fetch(
    request: Request,
    environment: Pick<Environment, "PLUE_TOKEN">,
    context: ExecutionContext,
  ): Response | Promise<Response> {
    handler ??= createHandler(environment.PLUE_TOKEN);
    return handler.fetch(request, environment, context);
  },
};

function createHandler(token: string | undefined): HttpHandler {
  return composeToolHandler(registry, {
    // The bundle contains only these parts.
    parts: [serveExecution(), serveListing()],
    selection: { maxRisk: "low" },
    // The platform routes only its own names to this app, and the token authorizes callers.
    allowedHosts: "any",
    ...(token === undefined || token === "" ? {} : {
      authorize: async (request) =>
        await presents(request, token)
          ? {}
          : new Response(null, { status: 401, headers: { "www-authenticate": "Bearer" } }),
    }),
  });
}

/** Compares whole digests, so that the time does not depend on the number of equal characters. */
async function presents(request: Request, token: string): Promise<boolean> {
  const header = request.headers.get("authorization") ?? "";
  const sent = header.startsWith("Bearer ") && header.length <= 1_100 ? header.slice(7) : "";
  const [left, right] = await Promise.all([digest(sent), digest(token)]);
  let difference = 0;
  for (const [index, byte] of left.entries()) difference |= byte ^ (right[index] ?? 0);
  return difference === 0;
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}
