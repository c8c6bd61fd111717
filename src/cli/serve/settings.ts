/**
 * The settings of `plue serve`, and the HTTP server that listens at their address on Bun, Deno and
 * Node. `PLUE_TOKEN` has no flag, because other users see command lines.
 */

import { isIPv6, type Socket } from "node:net";
import process from "node:process";
import { Hono } from "hono";
import type { OAuthCallback } from "../../adapters/credentials/mod.ts";
import { cleanText, describeThrown } from "../../tool/mod.ts";
import { isRiskLevel, RISK_LEVELS, type RiskLevel } from "../../tool/mod.ts";
import type { Flags } from "../show.ts";
import { type Terminal, usageError } from "../terminal.ts";

export interface ServeFlags extends Flags {
  readonly port?: string;
  readonly host?: string;
  readonly stdio?: boolean;
  readonly open?: boolean;
  readonly state?: string;
  readonly store?: string;
  readonly bridge?: boolean;
  readonly code?: boolean;
  readonly rules?: string;
  readonly journal?: string;
  readonly skills?: string;
  readonly nats?: string;
  readonly watch: boolean;
  readonly config?: string;
}

export interface ServeSettings {
  readonly port: number;
  readonly host: string;
  /** True if only programs on this machine can reach the server. */
  readonly isLoopback: boolean;
  readonly maxRisk: RiskLevel;
  /** The role of every caller. By default, callers see the tools without roles. */
  readonly role: string | undefined;
  /** The token that callers must send. By default, none is needed. */
  readonly token: string | undefined;
}

type Setting = readonly [
  flag: string,
  variable: string,
  otherwise: string | undefined,
  isValid: (text: string) => boolean,
  wanted: string,
];

const SETTINGS = {
  port: [
    ...["--port", "PORT", "8787"] as const,
    (text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535,
    "must be a whole number from 0 to 65535",
  ],
  host: [
    ...["--host", "HOST", "127.0.0.1"] as const,
    (text) => isHost(bareHost(text)),
    "must be a host name or an address to listen on, such as 127.0.0.1",
  ],
  maxRisk: [
    ...["--max-risk", "PLUE_MAX_RISK", "medium"] as const,
    isRiskLevel,
    `must be one of ${RISK_LEVELS.join(", ")}`,
  ],
  role: [
    ...["--role", "PLUE_ROLE", undefined] as const,
    (text) => /^[\w.:-]{1,128}$/.test(text),
    "must be a role's name: letters, digits, _ . : or -",
  ],
} as const satisfies Readonly<Record<string, Setting>>;

type SettingsFlags = { readonly [Name in keyof typeof SETTINGS]?: string };

interface FileSettings {
  readonly values: SettingsFlags;
  /** True if the file describes callers, so that `PLUE_TOKEN` is not needed. */
  readonly hasCallers: boolean;
  error(setting: keyof SettingsFlags, why: string): Error;
}

/** Reads the settings from the flags, the file, or the variables. An empty one counts as unset. */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
  flags: SettingsFlags & Pick<ServeFlags, "stdio"> = {},
  file?: FileSettings,
): ServeSettings {
  const wrong = (setting: keyof SettingsFlags, text: string, wanted: string): never => {
    if (flags[setting] === undefined && file?.values[setting] !== undefined) {
      throw file.error(setting, `it is ${JSON.stringify(text.slice(0, 100))}, and ${wanted}`);
    }
    const name = SETTINGS[setting][flags[setting] === undefined ? 1 : 0];
    throw usageError(
      `Cannot serve: ${name} is ${JSON.stringify(text.slice(0, 100))}, and ${wanted}`,
    );
  };
  const read = (setting: keyof SettingsFlags): string | undefined => {
    const [, variable, otherwise, isValid, wanted]: Setting = SETTINGS[setting];
    const text = flags[setting] ?? file?.values[setting] ??
      (environment[variable]?.trim() || otherwise);
    return text === undefined || isValid(text) ? text : wrong(setting, text, wanted);
  };
  // The caller over stdio is the program that has started plue, and has no place for a token.
  const isStdio = flags.stdio === true;
  // A message must not contain the token, even an invalid one.
  const token = (!isStdio && environment["PLUE_TOKEN"]?.trim()) || undefined;
  const port = Number(read("port"));
  const host = bareHost(read("host") ?? "");
  const maxRisk = read("maxRisk") as RiskLevel;
  const role = read("role");
  if (token !== undefined && !/^[\x21-\x7e]{16,1024}$/.test(token)) {
    throw usageError(
      "Cannot serve: PLUE_TOKEN must be 16 to 1024 visible ASCII characters without spaces",
    );
  }
  const isLoopback = isLoopbackHost(host);
  if (!isLoopback && !isStdio && token === undefined && file?.hasCallers !== true) {
    const advice = file === undefined ? "" : 'add "callers" to the file, ';
    wrong(
      "host",
      host,
      `others can reach it; ${advice}set PLUE_TOKEN to a secret that callers must present, or ` +
        "leave it at 127.0.0.1",
    );
  }
  return { port, host, isLoopback, maxRisk, role, token };
}

function isHost(text: string): boolean {
  if (text.includes(":")) return isIPv6(text);
  return /^[A-Za-z0-9._-]{1,253}$/.test(text) && (!/^[\d.]+$/.test(text) || isIpv4(text));
}

/** The address as a URL, with a host that a client on this machine can use. */
export function urlOf(host: string, port: number): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${hostOf(reachable)}:${port}`;
}

/** Writes a host in the form of a URL: an IPv6 address in brackets. */
export function hostOf(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIpv4(host) && host.startsWith("127."));
}

/** Four numbers up to 255, each written in one way only. */
function isIpv4(host: string): boolean {
  return /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(host);
}

function bareHost(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}

interface Listening {
  readonly port: number;
  /** Closes all connections, which aborts their calls. */
  close(): Promise<void>;
}

type FetchHandler = (request: Request, server?: unknown) => Response | Promise<Response>;

interface DenoServe {
  serve(
    options: { hostname: string; port: number; signal: AbortSignal; onListen(): void },
    handler: FetchHandler,
  ): { readonly addr: { readonly port: number }; readonly finished: Promise<void> };
}

/** Listens. @throws {CommandError} If the system rejects it. The message has the remedy. */
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
    // The handler's own limit is lower, so that the handler sends its message.
    maxRequestBodySize: 64 * 1024 * 1024,
    // Closes silent connections. The handler lifts the timeout for running calls, and streams have
    // heartbeats.
    idleTimeout: 10,
    // Without its pages of errors, which have lines of the source. Bun then shares ports by default.
    development: false,
    reusePort: false,
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
        // Disconnects a client that does not read, but not a client whose call is silent.
        env.outgoing.on("timeout", ({ writableLength }: Socket) => {
          if (writableLength > 0) env.outgoing.destroy();
        });
        return fetch(request, env);
      },
      // The timeouts for slow clients, in milliseconds.
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

/**
 * Listens on this machine for callbacks only. Warns if the port is in use.
 *
 * @param callbacks Returns the callbacks at the time of a request.
 */
export async function listenForCallbacks(
  callbacks: () => readonly OAuthCallback[],
  { port, host, isLoopback }: Pick<ServeSettings, "host" | "port" | "isLoopback">,
  terminal: Terminal,
): Promise<AsyncDisposable> {
  const app = new Hono();
  app.get("*", async ({ req, notFound }) => {
    const callback = callbacks().find(({ path }) => path === req.path);
    return await callback?.(req.raw) ?? notFound();
  });
  app.onError((error) => {
    terminal.warn(cleanText(describeThrown(error), 1_000));
    return new Response(null, { status: 500 });
  });
  const warn = ({ message, cause }: Error): void =>
    terminal.warn(
      Object(cause).code === "EADDRINUSE"
        ? `Cannot receive permissions: another process has port ${port}, and must serve the callback`
        : message,
    );
  const listening = callbacks().length > 0
    // Other machines must not reach it: a callback needs no token.
    ? await listen(app.fetch, { host: isLoopback ? host : "127.0.0.1", port }).catch(warn)
    : undefined;
  return { [Symbol.asyncDispose]: async () => await listening?.close() };
}

/** Returns the address of a client, for the limit of failed logins. */
export function clientAddress(request: Request, server: unknown): string | undefined {
  const { requestIP, remoteAddr, incoming } = (server ?? {}) as {
    readonly requestIP?: (request: Request) => { readonly address: string } | null;
    readonly remoteAddr?: { readonly hostname: string };
    readonly incoming?: { readonly socket: { readonly remoteAddress?: string } };
  };
  return requestIP?.call(server, request)?.address ?? remoteAddr?.hostname ??
    incoming?.socket.remoteAddress;
}
