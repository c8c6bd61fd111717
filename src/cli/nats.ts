/**
 * The connection to NATS of `plue serve`, `plue doctor` and `plue nats`. Its settings are the variables
 * `PLUE_NATS…` (`docs/scale.md`), because other users can read command lines.
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
import type { NatsKeys } from "../adapters/nats/mod.ts";
import { describeThrown } from "../tool/mod.ts";
import { type CommandIo, usageError } from "./terminal.ts";

export interface NatsSettings {
  /** The servers, without credentials. */
  readonly shown: string;
  readonly secret: readonly string[] | undefined;
  readonly keys: NatsKeys | undefined;
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
  const [first, ...others] = urls.filter(({ username }) => username !== "");
  if (
    others.some(({ username, password }) =>
      username !== first?.username || password !== first.password
    )
  ) {
    wrong(`${name} must have the same user for all servers`);
  }
  const file = env["PLUE_NATS_CREDS"]?.trim() || undefined;
  if (file !== undefined && first !== undefined) {
    wrong(`${name} has a user, and PLUE_NATS_CREDS is set: leave one of them out`);
  }
  const [user, pass] = [first?.username, first?.password].map((part = "") =>
    decoded(part) ?? wrong(`${name} ${WANTED}`)
  );
  return {
    shown: urls.map(({ protocol, host }) => `${protocol}//${host}`).join(","),
    secret: secretsIn(action, env),
    keys: keysIn(action, env),
    connection: {
      name: "plue",
      servers: urls.map(({ host }) => host),
      timeout: CONNECT_MS,
      maxReconnectAttempts: -1,
      pingInterval: PING_MS,
      ...(urls.some(({ protocol }) => protocol === "tls:") && { tls: {} }),
      // A user without a password is a token, as in other clients of NATS.
      ...(user && (pass ? { user, pass } : { token: user })),
      ...(file !== undefined && { authenticator: await credentialsIn(action, file) }),
    },
  };
}

/** @throws {CommandError} If the connection fails, with the cause. */
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
    return `the certificate of NATS at ${shown} is not trusted; set NODE_EXTRA_CA_CERTS to the ` +
      `file with its authority's certificate (${said})`;
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

/** Reads the words of a variable. They may be secrets, so the message does not show them. */
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
function keysIn(action: string, env: CommandIo["env"]): NatsKeys | undefined {
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
    // Throws if the seed is damaged. The server checks everything else.
    nkeys.fromSeed(bytes);
    return jwt === undefined ? nkeyAuthenticator(bytes) : credsAuthenticator(text);
  } catch (cause) {
    throw usageError(
      `Cannot ${action}: PLUE_NATS_CREDS is ${JSON.stringify(file)}, and cannot be used: ` +
        describeThrown(cause, 300),
      { cause },
    );
  }
}
