/**
 * An issuer's public keys, fetched and kept.
 *
 * @module
 */

import {
  atOnce,
  type Check,
  checkFunction,
  MAX_TIMEOUT_MS,
  numberFrom,
  systemClock,
  TIME_OVER,
  within,
} from "../../tool/mod.ts";
import { checkOptions } from "./options.ts";
import { type Problem, ProblemError } from "./responses.ts";
import { boundedText, IS_WORKERS } from "./runtime.ts";

/** A public key, with its name in tokens. */
export interface NamedKey extends JsonWebKey {
  readonly kid?: string;
}

/** Gives the keys that may have signed a token. `kid` is the name of the key in the token. */
export type KeySource = (kid: string | undefined) => Promise<readonly NamedKey[]>;

/** Options for {@linkcode remoteKeys}. */
export interface RemoteKeysOptions {
  /**
   * The time limit of a fetch, in milliseconds.
   *
   * @default {5_000}
   */
  readonly timeoutMs?: number;
  /** Fetches. @default {globalThis.fetch} */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Tells the time, in milliseconds. It must not go back. @default {performance.now} */
  readonly now?: () => number;
}

const CHECKS = {
  timeoutMs: numberFrom(1, MAX_TIMEOUT_MS),
  fetch: checkFunction,
  now: checkFunction,
} satisfies { readonly [Option in keyof RemoteKeysOptions]-?: Check };

/** The time after which keys are fetched again, in milliseconds. */
const CACHE_MS = 600_000;
/** The time after a fetch in which an unknown key does not cause another one, in milliseconds. */
const COOLDOWN_MS = 30_000;

/**
 * The time after a failed first fetch in which callers are rejected without another one, in
 * milliseconds.
 */
const RETRY_MS = 1_000;

/** The maximum number of concurrent fetches in one Worker. */
const MAX_FETCHES = 4;

const BUSY: Problem = {
  status: 503,
  code: "issuer_unavailable",
  detail: "Cannot check the token: the keys of its issuer are being fetched",
  retryable: true,
  headers: { "retry-after": "1" },
};

/** An issuer has a handful of keys; this is room for hundreds. */
const MAX_BYTES = 262_144;

/**
 * Makes a source of the keys at a URL, such as an issuer's `jwks_uri`.
 *
 * Keys are fetched on first use, when they are old, and when a token names an unknown one. If a later
 * fetch fails, the old keys stay in use.
 *
 * @throws {TypeError} If the URL is not `https:`, nor on this machine, or an option is unknown or
 * wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function remoteKeys(url: string, options: RemoteKeysOptions = {}): KeySource {
  checkOptions("fetch keys", options, CHECKS);
  const {
    timeoutMs = 5_000,
    now = systemClock.now,
  } = options;
  if (!isSafe(url)) {
    throw new TypeError(
      `Cannot fetch keys from "${url}": it must be a URL that begins with https:`,
    );
  }
  let keys: readonly NamedKey[] | undefined;
  let triedAt = -Infinity;
  let failure: unknown;
  let loading: Promise<readonly NamedKey[]> | undefined;
  /** The start times of fetches on Workers. A fetch older than its time limit has ended. */
  let begun: number[] = [];

  async function load(): Promise<readonly NamedKey[]> {
    triedAt = atOnce(now());
    // In workerd, a fetch belongs to the request that began it, and others cannot wait for it.
    if (!IS_WORKERS) return await (loading ??= fetchKeys().finally(() => loading = undefined));
    begun = begun.filter((time) => triedAt - time < timeoutMs);
    if (begun.length >= MAX_FETCHES) throw new ProblemError(BUSY);
    const began = triedAt;
    begun.push(began);
    try {
      return await fetchKeys();
    } finally {
      const index = begun.indexOf(began);
      if (index !== -1) begun.splice(index, 1);
    }
  }

  async function fetchKeys(): Promise<readonly NamedKey[]> {
    const text = await within(systemClock, timeoutMs, fetchText());
    if (text === TIME_OVER) {
      throw new Error(`Cannot fetch keys from "${url}": it did not answer within ${timeoutMs} ms`);
    }
    return keys = readKeys(text, url);
  }

  async function fetchText(): Promise<string> {
    const response = await (options.fetch ?? fetch)(url, {
      headers: { accept: "application/json" },
      // Workers do not support "error". A redirect fails because its status is not 200.
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`Cannot fetch keys from "${url}": it answered ${response.status}`);
    }
    const text = await boundedText(response.body, MAX_BYTES);
    if (text === undefined) {
      throw new Error(`Cannot read the keys: they have more than ${MAX_BYTES} bytes`);
    }
    return text;
  }

  return async (kid) => {
    const age = atOnce(now()) - triedAt;
    if (keys === undefined) {
      if (failure !== undefined && age < RETRY_MS) throw failure;
      return await load().catch((error: unknown) => {
        // Another fetch is under way, and may still bring the keys.
        if (!(error instanceof ProblemError)) failure = error;
        throw error;
      });
    }
    const isKnown = kid === undefined || keys.some((key) => key.kid === kid);
    if (age < CACHE_MS && (isKnown || age < COOLDOWN_MS)) return keys;
    const old = keys;
    // Requests that come meanwhile see a recent fetch, and use the old keys.
    return await load().catch(() => old);
  };
}

function isSafe(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" ||
    (protocol === "http:" &&
      /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname));
}

function readKeys(text: string, url: string): readonly NamedKey[] {
  const set: unknown = JSON.parse(text);
  const keys: unknown = typeof set === "object" && set !== null && "keys" in set
    ? set.keys
    : undefined;
  if (!Array.isArray(keys)) {
    throw new Error(`Cannot read the keys of "${url}": there is no list`);
  }
  return keys.filter((key): key is NamedKey => typeof key === "object" && key !== null);
}
