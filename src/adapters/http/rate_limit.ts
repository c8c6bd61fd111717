/** Limits the requests and calls of one caller, and the failed logins of one address. */

import * as check from "../../tool/mod.ts";
import { describeThrown, fail, systemClock, TIME_OVER, within } from "../../tool/mod.ts";
import { checkCount, checkOptions, having, parseUrl } from "./options.ts";
import type { Authorize, Caller } from "./identity.ts";
import {
  MemoryRateLimitStore,
  type RateLimitCount,
  type RateLimitStore,
  type RateLimitWindow,
} from "./request_counts.ts";
import * as responses from "./responses.ts";

interface StoredLimit extends RateLimitWindow {
  /**
   * Stores the counts, by default in this process. Two handlers with the same store share the counts.
   *
   * @default {new MemoryRateLimitStore()}
   */
  readonly store?: RateLimitStore;
  /**
   * The time within which the store must answer, in milliseconds. Otherwise the request gets 503.
   *
   * @default {5_000}
   */
  readonly storeTimeoutMs?: number;
}

/** The limit on the requests of one caller. A request with several calls counts each call. */
export interface RateLimitOptions extends StoredLimit {
  /**
   * Returns a request's key. Requests with the same key share a window. By default, the key is the
   * principal, and callers without a principal share a window.
   */
  readonly keyOf?: (caller: Caller, request: Request) => string;
}

/** The decision of a limiter about one request. */
export interface RateLimitVerdict {
  /** Headers for the response, even if the request is admitted. */
  readonly headers: readonly responses.Header[];
  /** The problem of a rejected request; `undefined` if it is admitted. */
  readonly problem: responses.Problem | undefined;
}

/**
 * Counts a request of a caller, and rejects it beyond the limit.
 *
 * @param amount 1 for the request itself; for a second count, the number of calls beyond the first.
 * @default {1}
 */
export type RateLimiter = (
  caller: Caller,
  request: Request,
  amount?: number,
) => Promise<RateLimitVerdict>;

/**
 * Makes the part that limits the requests and calls of one caller. Responses have the headers of the
 * IETF draft: `RateLimit-Policy` and `RateLimit`.
 *
 * @throws {TypeError | RangeError} If an option is unknown or invalid.
 */
export function limitRate(options: RateLimitOptions): () => { readonly charge: RateLimiter } {
  checkOptions("limit the rate", options, CHECKS);
  const { take, window } = readLimit("limit the rate", options);
  const { limit, windowMs } = window;
  const { keyOf = ({ principal }) => principal ?? "" } = options;
  const policy = `"default";q=${limit};w=${Math.ceil(windowMs / 1000)}`;
  const charge: RateLimiter = async (caller, request, amount = 1) => {
    // A key that is not a string, such as a promise, would differ for each request.
    const answer = check.assertSync(keyOf(caller, request));
    const key = check.checkText("limit the rate", answer, "the result of keyOf");
    const { count, resetMs } = await take(key, amount, window);
    const isTaken = count <= limit;
    const left = Math.max(0, limit - count + (isTaken ? 0 : amount));
    const seconds = secondsOf(resetMs);
    return {
      headers: [
        ["ratelimit-policy", policy],
        ["ratelimit", `"default";r=${left};t=${seconds}`],
      ],
      problem: isTaken ? undefined : limited(
        amount === 1
          ? `More than ${limit} requests in ${windowMs / 1000} s: try again in ${seconds} s`
          : `None of the ${amount + 1} calls ran: only ${left} are allowed in the next ` +
            `${seconds} s, and ${limit} in every ${windowMs / 1000} s`,
        seconds,
        amount < limit,
      ),
    };
  };
  return () => ({ charge });
}

const WINDOW_CHECKS = {
  limit: checkCount,
  windowMs: checkCount,
  storeTimeoutMs: check.numberFrom(1, check.MAX_TIMEOUT_MS),
  store: having("take", "a store, with a function take"),
} satisfies { readonly [Option in keyof StoredLimit]-?: check.Check };

const CHECKS = {
  ...WINDOW_CHECKS,
  keyOf: check.checkFunction,
} satisfies { readonly [Option in keyof RateLimitOptions]-?: check.Check };

function readLimit(
  action: string,
  { limit, windowMs, store = new MemoryRateLimitStore(), storeTimeoutMs = 5_000 }: StoredLimit,
) {
  const window = {
    limit: checkCount(action, limit, "the option limit"),
    windowMs: checkCount(action, windowMs, "the option windowMs"),
  };
  const take = async (...request: Parameters<RateLimitStore["take"]>): Promise<RateLimitCount> => {
    const reply = store.take(...request);
    // The store in this process returns synchronously.
    const answer = check.isThenable(reply)
      ? await within(systemClock, storeTimeoutMs, Promise.resolve(reply))
      : reply;
    // Another value could admit a request, and would be sent in the headers.
    if (answer !== TIME_OVER && isCount(answer?.count) && isCount(answer.resetMs)) return answer;
    const why = answer === TIME_OVER
      ? `did not answer within ${storeTimeoutMs} ms`
      : "must return two numbers, count and resetMs";
    throw new responses.ProblemError(NO_STORE, { cause: new Error(`The rate-limit store ${why}`) });
  };
  return { window, take };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}

const NO_STORE = responses.unavailable("overloaded", "Requests cannot be counted now", 1);

function limited(detail: string, seconds: string, retryable: boolean = true): responses.Problem {
  const headers = { "retry-after": seconds };
  return { status: 429, code: "rate_limited", detail, retryable, headers };
}

/** Seconds for a header: a whole number, and never 0. */
function secondsOf(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)) || 1);
}

/** Options for {@linkcode limitFailedLogins}. `limit` is the number of failures in a window. */
export interface FailedLoginsOptions extends StoredLimit {
  /**
   * Returns the address of the client, from the runtime or from the proxy in front of it. A request
   * with an unknown address, `undefined`, is not limited. If the function throws or returns another
   * value, the request gets 500 and the error is logged.
   */
  readonly clientAddress: (request: Request, env: unknown) => string | undefined;
  /**
   * The header with the credentials. A request without it is not an attempt to log in.
   *
   * @default {"authorization"}
   */
  readonly header?: string;
}

const ACTION = "limit failed logins";

const LOGIN_CHECKS = {
  ...WINDOW_CHECKS,
  clientAddress: check.checkFunction,
  header: check.checkWord,
} satisfies { readonly [Option in keyof FailedLoginsOptions]-?: check.Check };

/**
 * Limits the failed logins of an address. Requests of an address with too many failures in this
 * window get 429, and `authorize` is not called. IPv6 addresses are counted by their /64, because one
 * client usually has a whole /64. All addresses of one /48 may together fail 16 times as often.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { bearerAuth, createToolHandler, limitFailedLogins } from "@plue/tools/hono";
 *
 * const tokens = new Map([["correct-horse-battery", { principal: "ann" }]]);
 * const authorize = limitFailedLogins(bearerAuth({ tokens }), {
 *   limit: 2,
 *   windowMs: 60_000,
 *   clientAddress: (request) => request.headers.get("cf-connecting-ip") ?? undefined,
 * });
 * const app = createToolHandler(new ToolRegistry({ tools: [] }), { authorize });
 *
 * for (const status of [401, 401, 429]) {
 *   const headers = { "cf-connecting-ip": "192.0.2.1", authorization: "Bearer guess" };
 *   assert.equal((await app.request("http://localhost/tools", { headers })).status, status);
 * }
 * ```
 *
 * @param authorize Identifies the caller; its 401 is a failure.
 * @throws {TypeError | RangeError} If an option is unknown or invalid.
 */
export function limitFailedLogins(authorize: Authorize, options: FailedLoginsOptions): Authorize {
  const { clientAddress, header = "authorization" } = options;
  checkOptions(ACTION, options, LOGIN_CHECKS);
  const { take, window } = readLimit(ACTION, options);
  const siteWindow = { ...window, limit: window.limit * NETWORKS_OF_SITE };
  check.checkFunction(ACTION, authorize, "authorize");
  check.checkFunction(ACTION, clientAddress, "the option clientAddress");
  /** If `clientAddress` throws, the request fails: otherwise an error would disable the limit. */
  function addressOf(request: Request, env: unknown): string | undefined {
    let address: unknown;
    try {
      address = check.assertSync(clientAddress(request, env));
    } catch (cause) {
      fail(ACTION, `clientAddress threw an error. ${describeThrown(cause)}`, cause);
    }
    return checkAddress(ACTION, address, "the result of clientAddress");
  }
  return async (request, env) => {
    const address = request.headers.has(header) ? addressOf(request, env) : undefined;
    if (address === undefined) return await authorize(request, env);
    const networks = networksOf(address);
    /** Counts failures. Returns the response to a client with too many of them. */
    const count = async (amount: 0 | 1): Promise<Response | undefined> => {
      const waits = await Promise.all(networks.map(async (network, index) => {
        const { limit, windowMs } = index === 0 ? window : siteWindow;
        const counted = await take(`login ${network}`, amount, { limit, windowMs });
        // A check (amount 0) fails if the next failure would exceed the limit.
        return counted.count + 1 - amount > limit ? [counted.resetMs] : [];
      }));
      const waitsMs = waits.flat();
      return waitsMs.length === 0 ? undefined : tooManyFailures(Math.max(...waitsMs));
    };
    const refused = await count(0);
    if (refused !== undefined) return refused;
    const answer = await authorize(request, env);
    if (!responses.isResponse(answer) || answer.status !== 401) return answer;
    // Concurrent requests may fail together, but not more than `limit` of them receive a 401.
    return await count(1) ?? answer;
  };
}

const checkAddress: check.Check<string | undefined> = check.createCheck(
  "a string that is not empty, or undefined if the address is unknown",
  (address): address is string | undefined => address === undefined || check.isWord(address),
);

function tooManyFailures(resetMs: number): Response {
  const seconds = secondsOf(resetMs);
  const detail = `Too many failed logins from this address: try again in ${seconds} s`;
  return responses.problemResponse(limited(detail, seconds));
}

/** The number of /64 networks in one /48 that may reach the limit. More would fill the store. */
const NETWORKS_OF_SITE = 16;

/** No address is longer. A longer text may be from a header that the client wrote. */
const MAX_ADDRESS = 64;

/** Returns the network of one client: an IPv4 address without its port, or a /64 and its site's /48. */
function networksOf(text: string): readonly string[] {
  const address = text.slice(0, MAX_ADDRESS).trim();
  const url = parseUrl(`http://[${address.replace(/%.*$/, "")}]/`) ??
    parseUrl(`http://${address}/`);
  const host = url?.hostname;
  if (!host?.startsWith("[")) return [host ?? address];
  const [left = "", right] = host.slice(1, -1).split("::").map((half) =>
    half === "" ? [] : half.split(":")
  );
  const groups = right === undefined
    ? [...left]
    : [...left, ...Array<string>(8 - left.length - right.length).fill("0"), ...right];
  if (groups.slice(0, 6).join(":") !== "0:0:0:0:0:ffff") {
    return [`${groups.slice(0, 4).join(":")}::/64`, `${groups.slice(0, 3).join(":")}::/48`];
  }
  // An IPv4 address in IPv6 notation (`::ffff:192.0.2.1`), from servers that listen on both.
  const bytes = groups.slice(6).flatMap((group) => {
    const two = parseInt(group, 16);
    return [two >> 8, two & 255];
  });
  return [bytes.join(".")];
}
