/**
 * The edge server, the same on every runtime: a registry, and who may call it.
 *
 * Whoever presents the token may list and call. Without a token being configured, everybody may
 * list, and nobody may call.
 *
 * @module
 */

import type { Hono } from "hono";
import { ToolRegistry } from "../../mod.ts";
import { createToolHandler } from "../../src/adapters/hono/mod.ts";
import { edgeTools } from "./tools.ts";

const registry = new ToolRegistry({ tools: edgeTools });
// A worker may generate code while its module loads, and not while it answers a request.
registry.compile();

/**
 * Makes the app.
 *
 * @param token What callers must present as `Authorization: Bearer …`.
 */
export function createEdgeApp(token: string | undefined): Hono {
  return createToolHandler(registry, {
    selection: { maxRisk: "low" },
    // The platform routes only its own names here, and what counts is the token, not the name.
    allowedHosts: "any",
    ...(token === undefined || token === "" ? {} : {
      authorize: async (request) => await presents(request, token) ? {} : unauthorized(),
    }),
  });
}

/** What `bearerAuth` answers too, which has more to it than one token takes. */
function unauthorized(): Response {
  const detail = 'This server wants its token: "authorization: Bearer …"';
  return Response.json(
    { type: "about:blank", title: "Unauthorized", status: 401, code: "unauthorized", detail },
    {
      status: 401,
      headers: {
        "content-type": "application/problem+json",
        "cache-control": "no-store",
        "www-authenticate": "Bearer",
      },
    },
  );
}

/** Compares digests, all of them: the time says nothing about how much was right. */
async function presents(request: Request, token: string): Promise<boolean> {
  const header = request.headers.get("authorization") ?? "";
  const given = header.startsWith("Bearer ") && header.length <= 1_100 ? header.slice(7) : "";
  const [left, right] = await Promise.all([digest(given), digest(token)]);
  let difference = 0;
  for (const [index, byte] of left.entries()) difference |= byte ^ (right[index] ?? 0);
  return difference === 0;
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}
