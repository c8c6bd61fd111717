/**
 * How often an address may show credentials that do not count.
 *
 * @module
 */

import {
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
import { problemResponse } from "./problem.ts";
import {
  limited,
  MemoryRateLimitStore,
  type RateLimitStore,
  type RateLimitWindow,
  readWindow,
  secondsOf,
  WINDOW_CHECKS,
} from "./rate_limit.ts";
import { isResponse } from "./responses.ts";

/** Options for {@linkcode limitFailedLogins}: `limit` failures in a window. */
export interface FailedLoginsOptions extends RateLimitWindow {
  /**
   * Where a request comes from, as only the runtime or the proxy in front of it knows. It must be the
   * client's own address: behind a proxy, that of the connection is everybody's. `undefined`: it is
   * not known, and the request is not limited. Where it throws, or answers something else, the
   * request is answered 500, and the handler's log is told.
   *
   * @param env What the runtime hands to a handler beside the request.
   */
  readonly clientAddress: (request: Request, env: unknown) => string | undefined;
  /**
   * The header that credentials come in. A request without it is no attempt: clients ask without
   * credentials to learn which are wanted.
   *
   * @default {"authorization"}
   */
  readonly header?: string;
  /**
   * Where is counted: in this process, unless told otherwise.
   *
   * @default {new MemoryRateLimitStore()}
   */
  readonly store?: RateLimitStore;
}

const ACTION = "limit failed logins";

const CHECKS = {
  ...WINDOW_CHECKS,
  clientAddress: checkFunction,
  header: checkWord,
} satisfies { readonly [Option in keyof FailedLoginsOptions]-?: Check };

/**
 * Limits how often an address may fail to show who it is. From an address that failed too often in
 * this window, `authorize` is not asked, and the answer is 429; who comes from elsewhere is not
 * touched. Addresses of IPv6 are counted by their /64, which is what one client has.
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
 * @param authorize Says who calls, and answers 401 if that was not shown well.
 * @throws {TypeError} If an option is unknown or wrong.
 * @throws {RangeError} If a number is out of range.
 */
export function limitFailedLogins(authorize: Authorize, options: FailedLoginsOptions): Authorize {
  const { clientAddress, header = "authorization", store = new MemoryRateLimitStore() } = options;
  checkOptions(ACTION, options, CHECKS);
  const window = readWindow(ACTION, options);
  checkFunction(ACTION, authorize, "authorize");
  checkFunction(ACTION, clientAddress, "its option clientAddress");
  const turnAway = (resetMs: number): Response =>
    problemResponse(limited(
      `Too many attempts to log in from this address failed: the next may come in ` +
        `${secondsOf(resetMs)} s`,
      secondsOf(resetMs),
    ));
  const checkAddress = must(
    "a string that is not empty, or undefined where it is not known",
    (address): address is string | undefined => address === undefined || isWord(address),
  );
  /** Nobody is let in unlimited because the function is wrong. */
  function addressOf(request: Request, env: unknown): string | undefined {
    let address: unknown;
    try {
      address = clientAddress(request, env);
    } catch (cause) {
      refuse(ACTION, `clientAddress threw. ${describeThrown(cause)}`, cause);
    }
    return checkAddress(ACTION, address, "what clientAddress answers");
  }
  return async (request, env) => {
    const address = request.headers.has(header) ? addressOf(request, env) : undefined;
    if (address === undefined) return await authorize(request, env);
    const key = `login ${networkOf(address)}`;
    const before = await store.take(key, 0, window);
    // Written so that a count that is no number refuses.
    if (!(before.count < window.limit)) return turnAway(before.resetMs);
    const answer = await authorize(request, env);
    if (!isResponse(answer) || answer.status !== 401) return answer;
    const { count, resetMs } = await store.take(key, 1, window);
    // Of those that came at the same time, no more than the limit are told that they failed.
    return count <= window.limit ? answer : turnAway(resetMs);
  };
}

/** Longer than any address: what is longer comes from a header that anybody may have written. */
const MAX_ADDRESS = 64;

/** What one client has of the network: an address of IPv4, without a port, or a /64 of IPv6. */
function networkOf(text: string): string {
  const address = text.slice(0, MAX_ADDRESS).trim();
  const [host] = [`http://[${address.replace(/%.*$/, "")}]/`, `http://${address}/`]
    .filter((url) => URL.canParse(url)).map((url) => new URL(url).hostname);
  if (host === undefined || !host.startsWith("[")) return host ?? address;
  const [left = "", right] = host.slice(1, -1).split("::").map((half) =>
    half === "" ? [] : half.split(":")
  );
  const groups = right === undefined
    ? [...left]
    : [...left, ...Array<string>(8 - left.length - right.length).fill("0"), ...right];
  if (groups.slice(0, 6).join(":") !== "0:0:0:0:0:ffff") {
    return `${groups.slice(0, 4).join(":")}::/64`;
  }
  // An address of IPv4, as servers that listen on both write it.
  return groups.slice(6).flatMap((group) => {
    const two = parseInt(group, 16);
    return [two >> 8, two & 255];
  }).join(".");
}
