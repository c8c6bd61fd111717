/**
 * The connection to NATS of `plue serve`, `plue doctor` and `plue nats`. With NATS, `plue serve` is a
 * worker, which offers its tools to edges, or an edge, which serves the tools of all workers to clients.
 * The settings are variables (`docs/scale.md`), because other users can read command lines.
 */

import { readFile } from "node:fs/promises";
import process from "node:process";
import {
  type Authenticator,
  connect,
  type ConnectionOptions,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
  nkeys,
} from "@nats-io/transport-node";
import { storedRateLimits } from "../adapters/hono/mod.ts";
import * as nats from "../adapters/nats/mod.ts";
import type { ToolDispatcher } from "../execute/mod.ts";
import type { Registry } from "../registry/mod.ts";
import type { Selection } from "../select/mod.ts";
import { attemptOr, describeThrown, systemClock, within } from "../tool/mod.ts";
import type { SharedState } from "./serve/state.ts";
import type { LoadedTools } from "./sources/mod.ts";
import { CommandError, type CommandIo, counted, usageError } from "./terminal.ts";

export interface NatsSettings {
  /** The servers, without credentials. */
  readonly shown: string;
  readonly secret: readonly string[] | undefined;
  readonly keys: nats.NatsKeys | undefined;
  readonly connection: ConnectionOptions;
}

/** The timeout of the first connection, in milliseconds. */
const CONNECT_MS = 10_000;
/** The interval of pings, in milliseconds. After two failures, the client connects again. */
const PING_MS = 10_000;
/** The maximum time to send the last messages, in milliseconds: a server may be silent. */
const DRAIN_MS = 2_000;
const WANTED = "must be nats://host:4222, or tls://host:4222, with commas between several";

/**
 * Reads the settings; returns `undefined` if no server is set.
 *
 * @param flag The value of `--nats`, which takes precedence.
 * @throws {CommandError} If a value cannot be used. The message shows no credentials.
 */
export async function readNats(
  action: string,
  env: CommandIo["env"],
  flag?: string,
): Promise<NatsSettings | undefined> {
  const text = flag ?? (env["PLUE_NATS"]?.trim() || undefined);
  if (text === undefined) return undefined;
  const name = flag === undefined ? "PLUE_NATS" : "--nats";
  const wrong = (what: string): never => {
    throw usageError(`Cannot ${action}: ${what}`);
  };
  const urls = text.split(",").map((part) => {
    const url = URL.canParse(part) ? new URL(part) : undefined;
    const isServer = url !== undefined && /^(?:nats|tls):$/.test(url.protocol) &&
      url.hostname !== "" &&
      /^\/?$/.test(url.pathname) && url.search + url.hash === "" &&
      (url.username !== "" || url.password === "");
    return isServer ? url : wrong(`${name} ${WANTED}`);
  });
  const [first, ...others] = urls.filter(({ username }) => username !== "");
  const isFirst = ({ username, password }: URL): boolean =>
    username === first?.username && password === first.password;
  if (!others.every(isFirst)) wrong(`${name} must have the same user for all servers`);
  const file = env["PLUE_NATS_CREDS"]?.trim() || undefined;
  if (file !== undefined && first !== undefined) {
    wrong(`${name} has a user, and PLUE_NATS_CREDS is set: leave one of them out`);
  }
  const [user, pass] = [first?.username, first?.password].map((part = "") =>
    attemptOr(undefined, () => decodeURIComponent(part)) ?? wrong(`${name} ${WANTED}`)
  );
  return {
    shown: urls.map(({ protocol, host }) => `${protocol}//${host}`).join(","),
    secret: secretsIn(action, env),
    keys: keysIn(action, env),
    connection: {
      ...{ name: "plue", servers: urls.map(({ host }) => host) },
      ...{ timeout: CONNECT_MS, maxReconnectAttempts: -1, pingInterval: PING_MS },
      ...(urls.some(({ protocol }) => protocol === "tls:") && { tls: {} }),
      // A user without a password is a token, as in other clients of NATS.
      ...(user && (pass ? { user, pass } : { token: user })),
      ...(file !== undefined && { authenticator: await credentialsIn(action, file) }),
    },
  };
}

export async function connectNats(action: string, settings: NatsSettings): Promise<NatsConnection> {
  ignoreResets();
  try {
    return await connect(settings.connection);
  } catch (cause) {
    throw usageError(`Cannot ${action}: ${problemOf(cause, settings)}`, { cause });
  }
}

let ignoresResets = !("Deno" in globalThis);

/**
 * Ignores resets of sockets that the client has abandoned. Deno reports them as uncaught errors, which
 * would end the process after the relevant error.
 */
function ignoreResets(): void {
  if (ignoresResets) return;
  ignoresResets = true;
  process.on("uncaughtException", (error: Error & { readonly code?: string }) => {
    if (error.code !== "ECONNRESET") throw error;
  });
}

function problemOf(error: unknown, { shown, connection }: NatsSettings): string {
  const { name, message } = error as Error;
  const reason = describeThrown(error, 300);
  if (name === "AuthorizationError" || name === "UserAuthenticationExpiredError") {
    const { authenticator, token, user } = connection;
    const why = authenticator !== undefined
      ? "rejects the credentials in PLUE_NATS_CREDS"
      : (user ?? token) !== undefined
      ? "rejects the user or the token in its URL"
      : "requires a user: set it in the URL in PLUE_NATS, or set PLUE_NATS_CREDS to a file";
    return `NATS at ${shown} ${why} (${reason})`;
  }
  if (/altname|not valid for name/i.test(message)) {
    return `the certificate of NATS at ${shown} is for another host (${reason})`;
  }
  if (/certificate|issuer/i.test(message)) {
    return `the certificate of NATS at ${shown} is not trusted; set NODE_EXTRA_CA_CERTS to the ` +
      `file with its authority's certificate (${reason})`;
  }
  if (/tls/i.test(message)) return `no TLS with NATS at ${shown} (${reason})`;
  return `no NATS server answers at ${shown} (${reason})`;
}

/** Reads the words of a variable. Error messages do not contain the words, which may be secrets. */
function wordsIn(
  action: string,
  text: string | undefined,
  form: RegExp,
  rule: string,
): readonly string[] {
  const words = text?.split(/\s+/).filter(Boolean) ?? [];
  if (words.every((word) => form.test(word))) return words;
  throw usageError(`Cannot ${action}: ${rule}`);
}

function secretsIn(action: string, env: CommandIo["env"]): readonly string[] | undefined {
  const secrets = wordsIn(
    action,
    env["PLUE_NATS_SECRET"],
    /^[\x21-\x7e]{16,1024}$/,
    "PLUE_NATS_SECRET must be 16 to 1024 visible ASCII characters, with spaces between several " +
      "secrets",
  );
  return secrets.length === 0 ? undefined : secrets;
}

/** Reads the keys: either all three variables are set, or no variable. */
function keysIn(action: string, env: CommandIo["env"]): nats.NatsKeys | undefined {
  const read = (name: string, form: RegExp, what: string): readonly string[] =>
    wordsIn(action, env[name], form, `${name} must be ${what}; "plue nats keys" prints both`);
  const keys = "public keys (U…) with spaces between them";
  const [seed, ...seeds] = read("PLUE_NATS_SEED", /^SU[A-Z2-7]{56}$/, "the seed of a key (SU…)");
  const callers = read("PLUE_NATS_CALLERS", /^U[A-Z2-7]{55}$/, keys);
  const workers = read("PLUE_NATS_WORKERS", /^U[A-Z2-7]{55}$/, keys);
  if (seed === undefined && callers.length + workers.length === 0) return undefined;
  if (seed !== undefined && seeds.length === 0 && callers.length > 0 && workers.length > 0) {
    return { seed, callers, workers };
  }
  throw usageError(
    `Cannot ${action}: set all of PLUE_NATS_SEED (one seed), PLUE_NATS_CALLERS and ` +
      "PLUE_NATS_WORKERS, or none",
  );
}

async function credentialsIn(action: string, file: string): Promise<Authenticator> {
  try {
    const text = await readFile(file, "utf8");
    const [seed] = /\bSU[A-Z2-7]{56}\b/.exec(text) ?? [];
    if (seed === undefined) throw new Error("it does not contain the seed of a user");
    const encoder = new TextEncoder();
    // Throws if the seed is damaged. The server checks the rest.
    nkeys.fromSeed(encoder.encode(seed));
    return text.includes("BEGIN NATS USER JWT")
      ? credsAuthenticator(encoder.encode(text))
      : nkeyAuthenticator(encoder.encode(seed));
  } catch (cause) {
    const why = describeThrown(cause, 300);
    throw usageError(
      `Cannot ${action}: PLUE_NATS_CREDS is ${JSON.stringify(file)}, and cannot be used: ${why}`,
      { cause },
    );
  }
}

interface NatsService extends AsyncDisposable {
  readonly about: string;
}

type Log = (error: unknown) => void;

/** Registers the tools of all workers, and shares the stored state of all edges. */
export async function openEdge(
  registry: Registry,
  settings: NatsSettings,
  log: Log,
): Promise<NatsService & { readonly state: SharedState }> {
  return await open(settings, log, async (connection, options) => {
    const { secret, keys } = options;
    const store = await nats.natsCallStore(connection, { secret, ...(keys && { keys }) });
    const remote = await nats.remoteTools(connection, { registry, ...options });
    return {
      end: () => remote.close(),
      about: `The tools are those of ${counted(remote.workers, "worker")} on`,
      state: { store, logins: storedRateLimits(store, { maxPermits: 50 }) },
    };
  });
}

/**
 * Offers tools to the edges. Edges check callers and approvals, so the worker offers the tools of all
 * roles and scopes, unless its operator sets them.
 *
 * @param countedBy The dispatcher of calls over HTTP, whose metrics include these calls.
 */
export async function openWorker(
  { registry, dispatch }: LoadedTools,
  selection: Selection,
  settings: NatsSettings,
  countedBy: ToolDispatcher,
  log: Log,
): Promise<NatsService> {
  const { approve: _callers, ...dispatcher } = dispatch;
  return await open(settings, log, async (connection, options) => {
    const served = await nats.serveTools(registry, connection, {
      ...options,
      ...{ selection, dispatcher, countedBy },
    });
    const { length } = registry.select(selection).tools;
    return {
      end: () => served.close(),
      about: `${counted(length, "tool")} can also be called over`,
    };
  });
}

async function open<T extends { readonly about: string; end(): Promise<void> }>(
  settings: NatsSettings,
  log: Log,
  begin: (connection: NatsConnection, options: nats.NatsOptions) => Promise<T>,
): Promise<T & NatsService> {
  const { secret, keys, shown } = settings;
  if (secret === undefined) {
    throw usageError(
      "Cannot serve: set PLUE_NATS_SECRET to a secret that callers and workers share, of 16 or " +
        "more characters",
    );
  }
  const connection = await connectNats("serve", settings);
  try {
    const begun = await begin(connection, { secret, onError: log, ...(keys && { keys }) });
    void logStatus(connection, shown, log);
    return {
      ...begun,
      about: `${begun.about} ${shown}`,
      async [Symbol.asyncDispose]() {
        await begun.end();
        // The last messages, such as aborts of calls, are still sent.
        await within(systemClock, DRAIN_MS, connection.drain().catch(() => {}));
        await connection.close();
      },
    };
  } catch (cause) {
    await connection.close();
    if (cause instanceof CommandError) throw cause;
    const why = describeThrown(cause, 2_000).replace(/^Cannot [^:]*: /, "");
    throw usageError(`Cannot serve over NATS at ${shown}: ${why}`, { cause });
  }
}

async function logStatus(connection: NatsConnection, shown: string, log: Log): Promise<void> {
  const report = (what: string): void => log(`The connection to NATS at ${shown} ${what}`);
  for await (const { type } of connection.status()) {
    if (type === "disconnect" && !connection.isDraining()) report("is lost; calls are unavailable");
    else if (type === "reconnect") report("is open again");
  }
  const error = await connection.closed();
  if (error) report(`has ended: ${describeThrown(error, 300)}; start this process again`);
}
