/**
 * The connection to NATS of `plue serve`, `plue doctor` and `plue nats`. Secrets are variables, because
 * other users can read command lines.
 *
 * | variable | meaning |
 * |---|---|
 * | `PLUE_NATS` | the servers, as `--nats`: `nats://host:4222`, several are separated by commas |
 * | `PLUE_NATS_SECRET` | the secret of all callers and workers; of several, separated by spaces, the first signs |
 * | `PLUE_NATS_SEED` | the seed of this process's key, which signs as a worker or as a caller |
 * | `PLUE_NATS_CALLERS` | the public keys of all callers, separated by spaces |
 * | `PLUE_NATS_WORKERS` | the public keys of all workers |
 * | `PLUE_NATS_CREDS` | a file with the user's credentials, or with its seed |
 * | `PLUE_NATS_REPLICAS` | the number of servers that store each missing stream or bucket: 1 to 5 |
 * | `PLUE_NATS_MAX_BYTES` | the maximum size of each of these, in bytes |
 *
 * @module
 */

import { Buffer } from "node:buffer";
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
import type { NatsKeys } from "../adapters/nats/mod.ts";
import { describeThrown, systemClock } from "../tool/mod.ts";
import { type CommandIo, usageError } from "./terminal.ts";

/** Settings of the connection to NATS. */
export interface NatsSettings {
  /** The servers, without credentials. */
  readonly shown: string;
  /** The secrets of callers and workers, if they are set. */
  readonly secret: readonly string[] | undefined;
  /** The keys of callers and workers, if they are set. */
  readonly keys: NatsKeys | undefined;
  /** The settings of missing streams and buckets. */
  readonly storage: { readonly replicas?: number; readonly maxBytes?: number };
  readonly connection: ConnectionOptions;
}

/** The timeout of the first connection, in milliseconds. */
const CONNECT_MS = 10_000;
/** The interval of pings, in milliseconds. After two failures, the client connects again. */
const PING_MS = 10_000;
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
    const place = part.trim();
    const url = URL.canParse(place) ? new URL(place) : undefined;
    const isServer = url !== undefined && /^(?:nats|tls):$/.test(url.protocol) &&
      url.hostname !== "" &&
      /^\/?$/.test(url.pathname) && url.search + url.hash === "" &&
      (url.username !== "" || url.password === "");
    return isServer ? url : wrong(`${name} ${WANTED}`);
  });
  const users = urls.filter(({ username }) => username !== "");
  if (
    users.some(({ username, password }) =>
      username !== users[0]?.username || password !== users[0]?.password
    )
  ) {
    wrong(`${name} must have the same user for all servers`);
  }
  const file = env["PLUE_NATS_CREDS"]?.trim() || undefined;
  if (file !== undefined && users.length > 0) {
    wrong(`${name} has a user, and PLUE_NATS_CREDS is set: leave one of them out`);
  }
  const user = users[0] && {
    name: decoded(users[0].username) ?? wrong(`${name} ${WANTED}`),
    pass: decoded(users[0].password) ?? wrong(`${name} ${WANTED}`),
  };
  return {
    shown: urls.map(({ protocol, host }) => `${protocol}//${host}`).join(","),
    secret: secretsIn(action, env),
    keys: keysIn(action, env),
    storage: {
      ...numberIn(action, env, "PLUE_NATS_REPLICAS", "replicas", 1, 5),
      ...numberIn(action, env, "PLUE_NATS_MAX_BYTES", "maxBytes", 1_048_576),
    },
    connection: {
      name: "plue",
      servers: urls.map(({ host }) => host),
      timeout: CONNECT_MS,
      maxReconnectAttempts: -1,
      pingInterval: PING_MS,
      ...(urls.some(({ protocol }) => protocol === "tls:") && { tls: {} }),
      // A user without a password is a token, as in other clients of NATS.
      ...(user && (user.pass === "" ? { token: user.name } : { user: user.name, pass: user.pass })),
      ...(file !== undefined && { authenticator: await credentialsIn(action, file) }),
    },
  };
}

/**
 * Connects.
 *
 * @throws {CommandError} If the connection fails, with the cause.
 */
export async function connectNats(
  action: string,
  settings: NatsSettings,
): Promise<NatsConnection> {
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

/** Returns the secrets. @throws {CommandError} If none is set. */
export function wantedSecret(action: string, { secret }: NatsSettings): readonly string[] {
  if (secret !== undefined) return secret;
  throw usageError(
    `Cannot ${action}: set PLUE_NATS_SECRET to a secret that callers and workers share, of 16 or ` +
      "more characters",
  );
}

function problemOf(error: unknown, { shown, connection }: NatsSettings): string {
  const { name, message } = error as Error;
  const said = describeThrown(error, 300);
  if (name === "AuthorizationError" || name === "UserAuthenticationExpiredError") {
    const { authenticator, token, user } = connection;
    const why = authenticator !== undefined
      ? "refuses the credentials in PLUE_NATS_CREDS"
      : token !== undefined
      ? "refuses the token in its URL"
      : user !== undefined
      ? "refuses the user in its URL, or the password"
      : "wants a user: put it into the URL in PLUE_NATS, or its credentials' file into PLUE_NATS_CREDS";
    return `NATS at ${shown} ${why} (${said})`;
  }
  if (/altname|not valid for name/i.test(message)) {
    return `the certificate of NATS at ${shown} is for another host (${said})`;
  }
  if (/certificate|issuer/i.test(message)) {
    return `the certificate of NATS at ${shown} is not trusted; the file with its authority's ` +
      `belongs into NODE_EXTRA_CA_CERTS (${said})`;
  }
  if (/tls/i.test(message)) return `no TLS with NATS at ${shown} (${said})`;
  return `no NATS server answers at ${shown} (${said})`;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function secretsIn(action: string, env: CommandIo["env"]): readonly string[] | undefined {
  const secrets = env["PLUE_NATS_SECRET"]?.split(/\s+/).filter(Boolean) ?? [];
  if (secrets.length === 0) return undefined;
  if (secrets.every((one) => /^[\x21-\x7e]{16,1024}$/.test(one))) return secrets;
  // The message must not show it.
  throw usageError(
    `Cannot ${action}: PLUE_NATS_SECRET must be 16 to 1024 visible ASCII characters, with spaces ` +
      "between several secrets",
  );
}

/** Reads the keys: either all three variables are set, or no variable. */
function keysIn(action: string, env: CommandIo["env"]): NatsKeys | undefined {
  const read = (variable: string, form: RegExp, what: string): readonly string[] => {
    const words = env[variable]?.split(/\s+/).filter(Boolean) ?? [];
    if (words.every((word) => form.test(word))) return words;
    // The message must not show it.
    throw usageError(`Cannot ${action}: ${variable} must be ${what}; "plue nats keys" prints both`);
  };
  const [seed, ...seeds] = read("PLUE_NATS_SEED", /^SU[A-Z2-7]{56}$/, "the seed of a key (SU…)");
  const [callers, workers] = ["PLUE_NATS_CALLERS", "PLUE_NATS_WORKERS"].map((variable) =>
    read(variable, /^U[A-Z2-7]{55}$/, "public keys (U…) with spaces between them")
  ) as [readonly string[], readonly string[]];
  if (seed === undefined && callers.length + workers.length === 0) return undefined;
  if (seed !== undefined && seeds.length === 0 && callers.length > 0 && workers.length > 0) {
    return { seed, callers, workers };
  }
  throw usageError(
    `Cannot ${action}: set all of PLUE_NATS_SEED (one seed), PLUE_NATS_CALLERS and ` +
      "PLUE_NATS_WORKERS, or none",
  );
}

function numberIn<Name extends string>(
  action: string,
  env: CommandIo["env"],
  variable: string,
  name: Name,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): { readonly [name in Name]?: number } {
  const text = env[variable]?.trim() ?? "";
  if (text === "") return {};
  const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  if (value >= least && value <= most) return { [name]: value } as { [name in Name]: number };
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`;
  throw usageError(`Cannot ${action}: ${variable} must be a whole number, ${range}`);
}

/** The JWT of a user and its seed in a file of credentials. */
const CREDENTIALS =
  /-----BEGIN NATS USER JWT-----\s+(\S+)\s[^]*-----BEGIN USER NKEY SEED-----\s+(\S+)\s/;

async function credentialsIn(action: string, file: string): Promise<Authenticator> {
  try {
    const text = await readFile(file);
    const [, jwt, seed = String(text).trim()] = CREDENTIALS.exec(String(text)) ?? [];
    if (!/^SU\w+$/.test(seed)) {
      throw new Error("it has no JWT and seed of a user, and is not a seed alone");
    }
    const bytes = new TextEncoder().encode(seed);
    const user = nkeys.fromSeed(bytes).getPublicKey();
    if (jwt === undefined) return nkeyAuthenticator(bytes);
    const { sub, exp } = JSON.parse(String(Buffer.from(jwt.split(".")[1] ?? "", "base64url")));
    if (sub !== user) throw new Error("its seed is not that of its user");
    if (exp * 1_000 < systemClock.timestamp()) {
      throw new Error(`it has expired on ${new Date(exp * 1_000).toISOString()}`);
    }
    return credsAuthenticator(text);
  } catch (cause) {
    throw usageError(
      `Cannot ${action}: PLUE_NATS_CREDS is ${JSON.stringify(file)}, and cannot be used: ` +
        describeThrown(cause, 300),
      { cause },
    );
  }
}
