/**
 * An HTTP server on Bun, Deno and Node.
 *
 * @module
 */

import type { Socket } from "node:net";
import process from "node:process";
import { usageError } from "../terminal.ts";

/** A server that listens. */
export interface Listening {
  readonly port: number;
  /** Closes all connections, which aborts their calls. */
  close(): Promise<void>;
}

/** Responds to requests; `server` is the runtime's own second argument. */
export type FetchHandler = (
  request: Request,
  server?: unknown,
) => Response | Promise<Response>;

/** The part of Deno that is used. */
interface DenoServe {
  serve(
    options: { hostname: string; port: number; signal: AbortSignal; onListen(): void },
    handler: FetchHandler,
  ): { readonly addr: { readonly port: number }; readonly finished: Promise<void> };
}

/**
 * Listens.
 *
 * @throws {CommandError} If the operating system rejects it. The message describes the remedy.
 */
export async function listen(
  fetch: FetchHandler,
  { host: hostname, port }: { readonly host: string; readonly port: number },
): Promise<Listening> {
  try {
    if (process.versions["bun"] !== undefined) return listenOnBun(fetch, hostname, port);
    const { Deno } = globalThis as { readonly Deno?: DenoServe };
    if (Deno !== undefined) return listenOnDeno(Deno, fetch, hostname, port);
    return await listenOnNode(fetch, hostname, port);
  } catch (cause) {
    const { code } = cause as { readonly code?: unknown };
    const why = code === "EADDRINUSE"
      ? "the port is in use; choose another one with --port or PORT"
      : code === "EACCES"
      ? "the operating system forbids the port; choose one above 1023 with --port or PORT"
      : `the operating system answered ${String(code)}; is HOST an address of this machine?`;
    throw usageError(`Cannot serve on ${hostname}, port ${port}: ${why}`, { cause });
  }
}

function listenOnBun(fetch: FetchHandler, hostname: string, port: number): Listening {
  const server = Bun.serve({
    ...{ hostname, port },
    // Far above the handler's own limit, so that the handler sends its message.
    maxRequestBodySize: 64 * 1024 * 1024,
    // A silent connection is closed. The handler lifts this for a call that runs, and streams have a
    // heartbeat.
    idleTimeout: 10,
    fetch,
  });
  return { port: server.port ?? port, close: () => server.stop(true) };
}

function listenOnDeno(
  deno: DenoServe,
  fetch: FetchHandler,
  hostname: string,
  port: number,
): Listening {
  const closing = new AbortController();
  const { signal } = closing;
  const server = deno.serve({ hostname, port, signal, onListen() {} }, fetch);
  return {
    port: server.addr.port,
    async close() {
      closing.abort();
      await server.finished.catch(() => {});
    },
  };
}

/** The time after which Node disconnects a silent connection, in milliseconds. */
const SILENCE_MS = 10_000;

async function listenOnNode(
  fetch: FetchHandler,
  hostname: string,
  port: number,
): Promise<Listening> {
  const { serve } = await import("@hono/node-server");
  return await new Promise((resolve, reject) => {
    const server = serve({
      ...{ hostname, port },
      fetch(request, env) {
        // A client that does not read is disconnected, and not one whose call is silent.
        env.outgoing.on("timeout", ({ writableLength }: Socket) => {
          if (writableLength > 0) env.outgoing.destroy();
        });
        return fetch(request, env);
      },
      // Slow clients are disconnected, in milliseconds.
      serverOptions: {
        headersTimeout: 10_000,
        requestTimeout: 40_000,
        connectionsCheckingInterval: 5_000,
      },
    }, (bound) =>
      resolve({
        port: bound.port,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            if ("closeAllConnections" in server) server.closeAllConnections();
          }),
      }));
    server.on("error", reject);
    server.setTimeout(SILENCE_MS);
  });
}

/** Where a request comes from, to count failed logins by. */
export function clientAddress(request: Request, server: unknown): string | undefined {
  const { requestIP, remoteAddr, incoming } = (server ?? {}) as {
    readonly requestIP?: (request: Request) => { readonly address: string } | null;
    readonly remoteAddr?: { readonly hostname: string };
    readonly incoming?: { readonly socket: { readonly remoteAddress?: string } };
  };
  return requestIP?.call(server, request)?.address ?? remoteAddr?.hostname ??
    incoming?.socket.remoteAddress;
}
