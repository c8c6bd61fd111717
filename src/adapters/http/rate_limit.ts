/** Limits the requests and calls of one caller, and the failed logins of one address. */

import {
  assertSync,
  type Check,
  checkFunction,
  checkText,
  checkWord,
  createCheck,
  describeThrown,
  fail,
  isWord,
  MAX_TIMEOUT_MS,
  numberFrom,
  systemClock,
  TIME_OVER,
  within,
} from "../../tool/mod.ts";
import { checkCount, checkOptions, having } from "./options.ts";
import type { Authorize, Caller } from "./identity.ts";
import {
  MemoryRateLimitStore,
  type RateLimitCount,
  type RateLimitStore,
  type RateLimitWindow,
} from "./request_counts.ts";
import { isResponse, type Problem, ProblemError, problemResponse } from "./responses.ts";

/** A limit whose counts are in a store. */
interface StoredLimit extends RateLimitWindow {
  /**
   * Holds the counts, by default in this process. Two handlers with the same store count together.
   *
   * @default {new MemoryRateLimitStore()}
   */
  readonly store?: RateLimitStore;
  /**
   * The time within which the store must return, in milliseconds. Otherwise requests get 503.
   *
   * @default {5_000}
   */
  readonly storeTimeoutMs?: number;
}

/** The limit on the requests of one caller. A request with several calls counts 1 for each call. */
export interface RateLimitOptions extends StoredLimit {
  /**
   * Names the window that a request counts in. By default it is the principal; callers without one
   * share a window.
   */
  readonly keyOf?: (caller: Caller, request: Request) => string;
}

/** The decision of a limiter about one request. */
export interface RateLimitVerdict {
  /** Headers for the response, even if the request is admitted. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The problem of a rejected request; `undefined` if it is admitted. */
  readonly problem: Problem | undefined;
}

/**
 * Counts a request of a caller, and decides whether it is too many.
 *
 * @param amount 1 for the request itself. Once its calls are known, the number of further calls: if
 * they are rejected, none of the calls may run. @default {1}
 */
export type RateLimiter = (
  caller: Caller,
  request: Request,
  amount?: number,
) => Promise<RateLimitVerdict>;

/**
 * The part that limits how many requests and calls one caller may make. It sets the headers of the IETF
 * draft: `RateLimit-Policy` and `RateLimit`.
 *
 * @throws {TypeError} If an option is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function limitRate(options: RateLimitOptions): () => { readonly charge: RateLimiter } {
  checkOptions("limit the rate", options, CHECKS);
  const { take, window: { limit, windowMs } } = readLimit("limit the rate", options);
  const { keyOf = ({ principal }) => principal ?? "" } = options;
  const policy = `"default";q=${limit};w=${Math.ceil(windowMs / 1000)}`;
  const charge: RateLimiter = async (caller, request, amount = 1) => {
    // A key that is not a string, such as a promise, would differ for each request.
    const key = checkText(
      "limit the rate",
      assertSync(keyOf(caller, request)),
      "what keyOf answers",
    );
    const { count, resetMs } = await take(key, amount, { limit, windowMs });
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
          : `None of the ${amount + 1} calls ran: ${left} are allowed in the next ` +
            `${seconds} s, and ${limit} in every ${windowMs / 1000} s`,
        seconds,
        amount < limit,
      ),
    };
  };
  return () => ({ charge });
}

/** The checks of a window's numbers and its store. */
const WINDOW_CHECKS = {
  limit: checkCount,
  windowMs: checkCount,
  storeTimeoutMs: numberFrom(1, MAX_TIMEOUT_MS),
  store: having("take", "a store, with a function take"),
} satisfies { readonly [Option in keyof StoredLimit]-?: Check };

const CHECKS = {
  ...WINDOW_CHECKS,
  keyOf: checkFunction,
} satisfies { readonly [Option in keyof RateLimitOptions]-?: Check };

/** The window of a limit, and the function that takes from its store within the time limit. */
interface ReadLimit {
  readonly window: RateLimitWindow;
  take(key: string, amount: number, window: RateLimitWindow): Promise<RateLimitCount>;
}

/** Reads a limit. Its numbers are required: a `RangeError` if one is out of range. */
function readLimit(
  action: string,
  { limit, windowMs, store = new MemoryRateLimitStore(), storeTimeoutMs = 5_000 }: StoredLimit,
): ReadLimit {
  const window = {
    limit: checkCount(action, limit, "its option limit"),
    windowMs: checkCount(action, windowMs, "its option windowMs"),
  };
  const take: ReadLimit["take"] = async (...asked) => {
    const given = store.take(...asked);
    // The store in this process returns synchronously.
    const answer = isCount((given as Partial<RateLimitCount> | undefined)?.count)
      ? given as RateLimitCount
      : await within(systemClock, storeTimeoutMs, Promise.resolve(given));
    if (answer === TIME_OVER) {
      throw new ProblemError(NO_STORE, {
        cause: new Error(`The rate-limit store did not answer within ${storeTimeoutMs} ms`),
      });
    }
    // Any other value could admit a request, and would be sent in its headers.
    if (isCount(answer?.count) && isCount(answer.resetMs)) return answer;
    throw new ProblemError(NO_STORE, {
      cause: new TypeError("The rate-limit store must answer two numbers, count and resetMs"),
    });
  };
  return { window, take };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}

const NO_STORE: Problem = {
  status: 503,
  code: "overloaded",
  detail: "Requests cannot be counted now",
  retryable: true,
  headers: { "retry-after": "1" },
};

/** The problem of a request that is one too many. */
function limited(detail: string, seconds: string, retryable: boolean = true): Problem {
  return {
    status: 429,
    code: "rate_limited",
    detail,
    retryable,
    headers: { "retry-after": seconds },
  };
}

/** Seconds for a header: a whole number, and never 0. */
function secondsOf(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)) || 1);
}

/** Options for {@linkcode limitFailedLogins}: `limit` failures in a window. */
export interface FailedLoginsOptions extends StoredLimit {
  /**
   * Returns the address of the client, which only the runtime or the proxy in front of it can
   * provide. Behind a proxy, the address of the connection belongs to the proxy, and would limit
   * all clients together. A request with an unknown address, `undefined`, is not limited. If it
   * throws or returns another value, the request gets 500 and the error is logged.
   *
   * @param env The runtime's second argument for handlers.
   */
  readonly clientAddress: (request: Request, env: unknown) => string | undefined;
  /**
   * The header with the credentials. A request without it does not count as an attempt: clients ask
   * without credentials to learn which ones are wanted.
   *
   * @default {"authorization"}
   */
  readonly header?: string;
}

const ACTION = "limit failed logins";

const LOGIN_CHECKS = {
  ...WINDOW_CHECKS,
  clientAddress: checkFunction,
  header: checkWord,
} satisfies { readonly [Option in keyof FailedLoginsOptions]-?: Check };

/**
 * Limits the failed logins of an address. Requests of an address with too many failures in this
 * window get 429, and `authorize` is not called. Other addresses are not affected. IPv6 addresses
 * are counted by their /64, because one client usually has a whole /64. All addresses of one /48
 * may together fail 16 times as often, because a site has a whole /48.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { bearerAuth, createToolHandler, limitFailedLogins } from "@plue/tools/hono";
 *
 * const authorize = limitFailedLogins(
 *   bearerAuth({ tokens: new Map([["correct-horse-battery", { principal: "ann" }]]) }),
 *   {
 *     limit: 2,
 *     windowMs: 60_000,
 *     clientAddress: (request) => request.headers.get("cf-connecting-ip") ?? undefined,
 *   },
 * );
 * const app = createToolHandler(new ToolRegistry({ tools: [] }), { authorize });
 *
 * const ask = async (address: string, token: string) =>
 *   (await app.request("http://localhost/tools", {
 *     headers: { "cf-connecting-ip": address, authorization: `Bearer ${token}` },
 *   })).status;
 * assert.equal(await ask("192.0.2.1", "guess-1"), 401);
 * assert.equal(await ask("192.0.2.1", "guess-2"), 401);
 * assert.equal(await ask("192.0.2.1", "guess-3"), 429);
 * assert.equal(await ask("192.0.2.2", "correct-horse-battery"), 200);
 * ```
 *
 * @param authorize Decides who calls; its 401 is a failure.
 * @throws {TypeError} If an option is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function limitFailedLogins(authorize: Authorize, options: FailedLoginsOptions): Authorize {
  const { clientAddress, header = "authorization" } = options;
  checkOptions(ACTION, options, LOGIN_CHECKS);
  const { take: takeOf, window } = readLimit(ACTION, options);
  const siteWindow = { ...window, limit: window.limit * NETWORKS_OF_SITE };
  checkFunction(ACTION, authorize, "authorize");
  checkFunction(ACTION, clientAddress, "its option clientAddress");
  const turnAway = (resetMs: number): Response =>
    problemResponse(limited(
      `Too many attempts to log in from this address failed: try again in ${secondsOf(resetMs)} s`,
      secondsOf(resetMs),
    ));
  const checkAddress = createCheck(
    "a string that is not empty, or undefined where it is not known",
    (address): address is string | undefined => address === undefined || isWord(address),
  );
  /** An error of the function fails the request: otherwise it would disable the limit. */
  function addressOf(request: Request, env: unknown): string | undefined {
    let address: unknown;
    try {
      address = assertSync(clientAddress(request, env));
    } catch (cause) {
      fail(ACTION, `clientAddress threw. ${describeThrown(cause)}`, cause);
    }
    return checkAddress(ACTION, address, "what clientAddress answers");
  }
  return async (request, env) => {
    const address = request.headers.has(header) ? addressOf(request, env) : undefined;
    if (address === undefined) return await authorize(request, env);
    const { network, site } = placeOf(address);
    /** Counts so many failures; how long the address has to wait, if there are too many. */
    const take = async (amount: number): Promise<number | undefined> => {
      const counts = await Promise.all([
        takeOf(`login ${network}`, amount, window),
        ...(site === undefined ? [] : [takeOf(`login ${site}`, amount, siteWindow)]),
      ]);
      // With an amount of 0, one more failure must still be possible.
      const full = counts.filter(({ count }, index) =>
        count + (amount === 0 ? 1 : 0) > (index === 0 ? window : siteWindow).limit
      );
      return full.length === 0 ? undefined : Math.max(...full.map(({ resetMs }) => resetMs));
    };
    const waitMs = await take(0);
    if (waitMs !== undefined) return turnAway(waitMs);
    const answer = await authorize(request, env);
    if (!isResponse(answer) || answer.status !== 401) return answer;
    // Requests that run at the same time may fail together: no more than the limit learn that.
    const nowMs = await take(1);
    return nowMs === undefined ? answer : turnAway(nowMs);
  };
}

/** The number of /64 networks in one /48 that may reach the limit: more would fill the store. */
const NETWORKS_OF_SITE = 16;

/** Longer than any address: a longer one may come from a header that the client wrote. */
const MAX_ADDRESS = 64;

interface NetworkPlace {
  /** The network of one client: an IPv4 address without its port, or a /64. */
  readonly network: string;
  /** The network of one site: a /48. */
  readonly site?: string;
}

function placeOf(text: string): NetworkPlace {
  const address = text.slice(0, MAX_ADDRESS).trim();
  const [host] = [`http://[${address.replace(/%.*$/, "")}]/`, `http://${address}/`]
    .filter((url) => URL.canParse(url)).map((url) => new URL(url).hostname);
  if (host === undefined || !host.startsWith("[")) return { network: host ?? address };
  const [left = "", right] = host.slice(1, -1).split("::").map((half) =>
    half === "" ? [] : half.split(":")
  );
  const groups = right === undefined
    ? [...left]
    : [...left, ...Array<string>(8 - left.length - right.length).fill("0"), ...right];
  if (groups.slice(0, 6).join(":") !== "0:0:0:0:0:ffff") {
    return {
      network: `${groups.slice(0, 4).join(":")}::/64`,
      site: `${groups.slice(0, 3).join(":")}::/48`,
    };
  }
  // An address of IPv4, as servers write it that listen on IPv6 too.
  const network = groups.slice(6).flatMap((group) => {
    const two = parseInt(group, 16);
    return [two >> 8, two & 255];
  }).join(".");
  return { network };
}
