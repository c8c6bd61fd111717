/**
 * A Cloudflare Worker that serves the tools of all NATS workers over HTTP. It reaches NATS over
 * WebSocket. The NATS server needs a `websocket` block, and the Worker needs `nodejs_compat`.
 */

import { wsconnect } from "@nats-io/nats-core";
import { ToolRegistry } from "@plue/tools";
import { bearerAuth, createToolHandler } from "@plue/tools/hono";
import { type PerCallTools, remoteToolsPerCall } from "@plue/tools/nats";

interface Env {
  /** Such as `wss://nats.example.com`. */
  readonly NATS: string;
  readonly PLUE_NATS_SECRET: string;
  /** The token that callers must present. */
  readonly TOKEN: string;
}

// These are reused by later requests. Connections are not: each ends with its request.
const registry = new ToolRegistry();
let tools: PerCallTools | undefined;
let handler: ReturnType<typeof createToolHandler> | undefined;

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    if (new URL(request.url).pathname === "/healthz") return new Response("ok");
    tools ??= remoteToolsPerCall(() => wsconnect({ servers: env.NATS, timeout: 2_000 }), {
      registry,
      secret: env.PLUE_NATS_SECRET,
      onError: (error) => console.error(error),
    });
    handler ??= createToolHandler(registry, {
      authorize: bearerAuth({ tokens: new Map([[env.TOKEN, {}]]) }),
    });
    try {
      await tools.refresh();
    } catch {
      return new Response("The tools cannot be reached now", {
        status: 503,
        headers: { "retry-after": "2" },
      });
    }
    return await handler.fetch(request);
  },
};
