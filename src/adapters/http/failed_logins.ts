/**
 * Limits how often one address may show wrong credentials.
 *
 * @module
 */

import {
  atOnce,
  type Check,
  checkFunction,
  checkWord,
  describeThrown,
  isWord,
  must,
  refuse,
} from "../../tool/mod.ts";
import { checkOptions } from "./checks.ts";
import type { Authorize } from "./identity.ts";
import { limited, readWindow, secondsOf, takerOf, WINDOW_CHECKS } from "./rate_limit.ts";
import type { RateLimitStore, RateLimitWindow } from "./request_counts.ts";
import { isResponse, problemResponse } from "./responses.ts";

/** Options for {@linkcode limitFailedLogins}: `limit` failures in a window. */
export interface FailedLoginsOptions extends RateLimitWindow {
  /**
   * The address of the client, which only the runtime or the proxy in front of it knows. Behind a
   * proxy, the address of the connection is the proxy's, and would limit all clients together. A
   * request with an unknown address, `undefined`, is not limited. If it throws or returns something
   * else, the request is answered 500 and the handler's log is told.
   *
   * @param env What the runtime gives a handler beside the request.
   */
  readonly clientAddress: (request: Request, env: unknown) => string | undefined;
  /**
   * The header with the credentials. A request without it does not count as an attempt: clients ask
   * without credentials to learn which ones are wanted.
   *
   * @default {"authorization"}
   */
  readonly header?: string;
  /**
   * Holds the counts, by default in this process.
   *
   * @default {new MemoryRateLimitStore()}
   */
  readonly store?: RateLimitStore;
  /**
   * How long the store may take to answer, in milliseconds. Then requests are answered 503.
   *
   * @default {5_000}
   */
  readonly storeTimeoutMs?: number;
}

const ACTION = "limit failed logins";

const LOGIN_CHECKS = {
  ...WINDOW_CHECKS,
  clientAddress: checkFunction,
  header: checkWord,
} satisfies { readonly [Option in keyof FailedLoginsOptions]-?: Check };

/**
 * Limits how often an address may fail to authenticate. Requests of an address that failed too often
 * in this window are answered 429, and `authorize` is not asked. Other addresses are not affected.
 * Addresses of IPv6 are counted by their /64, because one client usually has a whole /64, and those
 * of one /48 may together fail 16 times as often: a site has a whole /48.
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
  const window = readWindow(ACTION, options);
  const siteWindow = { ...window, limit: window.limit * NETWORKS_OF_SITE };
  const takeOf = takerOf(options);
  checkFunction(ACTION, authorize, "authorize");
  checkFunction(ACTION, clientAddress, "its option clientAddress");
  const turnAway = (resetMs: number): Response =>
    problemResponse(limited(
      `Too many attempts to log in from this address failed: try again in ${secondsOf(resetMs)} s`,
      secondsOf(resetMs),
    ));
  const checkAddress = must(
    "a string that is not empty, or undefined where it is not known",
    (address): address is string | undefined => address === undefined || isWord(address),
  );
  /** Fails if the function does: otherwise a wrong one would switch the limit off. */
  function addressOf(request: Request, env: unknown): string | undefined {
    let address: unknown;
    try {
      address = atOnce(clientAddress(request, env));
    } catch (cause) {
      refuse(ACTION, `clientAddress threw. ${describeThrown(cause)}`, cause);
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
      // A look, of amount 0, asks whether one more would still fit.
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

/** How many /64 of one /48 may fail as often as they can: more would fill the store with one site. */
const NETWORKS_OF_SITE = 16;

/** Longer than any address: a longer one may come from a header that the client wrote. */
const MAX_ADDRESS = 64;

/** Where an address is. */
interface NetworkPlace {
  /** What one client has: an address of IPv4 without its port, or a /64. */
  readonly network: string;
  /** What one site has: a /48. */
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
