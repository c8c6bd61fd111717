/** Serves a fetch handler on whichever runtime the test runs on, on a free port of the loopback. */

import process from "node:process";

export type Served = { readonly url: string; stop(): Promise<void> };

type FetchHandler = (request: Request) => Response | Promise<Response>;

interface DenoServe {
  serve(
    options: { hostname: string; port: number; onListen(): void },
    handler: FetchHandler,
  ): { readonly addr: { readonly port: number }; shutdown(): Promise<void> };
}

/** Port 0 is any free one. */
export async function serve(fetch: FetchHandler, port = 0): Promise<Served> {
  if (process.versions["bun"] !== undefined) {
    const server = Bun.serve({ hostname: "127.0.0.1", port, fetch });
    return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
  }
  const { Deno } = globalThis as { readonly Deno?: DenoServe };
  if (Deno !== undefined) {
    const server = Deno.serve({ hostname: "127.0.0.1", port, onListen() {} }, fetch);
    return { url: `http://127.0.0.1:${server.addr.port}`, stop: () => server.shutdown() };
  }
  const { serve: serveNode } = await import("@hono/node-server");
  return await new Promise((resolve) => {
    const server = serveNode({ hostname: "127.0.0.1", port, fetch }, (bound) =>
      resolve({
        url: `http://127.0.0.1:${bound.port}`,
        stop: () =>
          new Promise((stopped) => {
            server.close(() => stopped());
            if ("closeAllConnections" in server) server.closeAllConnections();
          }),
      }));
  });
}
