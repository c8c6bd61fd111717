/** Serves a fetch handler on whichever runtime the test runs on, on a free port of the loopback. */

import process from "node:process";

export type Served = { readonly url: string; stop(): Promise<void> };

type FetchHandler = (request: Request) => Response | Promise<Response>;

interface DenoServe {
  serve(
    options: { hostname: string; port: number; signal: AbortSignal; onListen(): void },
    handler: FetchHandler,
  ): { readonly addr: { readonly port: number }; readonly finished: Promise<void> };
}

/** Port 0 is any free one. */
export async function serve(fetch: FetchHandler, port = 0): Promise<Served> {
  if (process.versions["bun"] !== undefined) {
    // Like the others, it waits longer than 10 seconds for a response.
    const server = Bun.serve({ hostname: "127.0.0.1", port, fetch, idleTimeout: 0 });
    return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
  }
  const { Deno } = globalThis as { readonly Deno?: DenoServe };
  if (Deno !== undefined) {
    const stop = new AbortController();
    const options = { hostname: "127.0.0.1", port, signal: stop.signal, onListen() {} };
    const { addr, finished } = Deno.serve(options, fetch);
    // Like the others, it does not wait for the streams of clients.
    return { url: `http://127.0.0.1:${addr.port}`, stop: () => (stop.abort(), finished) };
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
