/**
 * Callers with a bearer token that this server knows.
 *
 * @module
 */

import { type Check, checkFunction } from "../../tool/mod.ts";
import { BoundedMap } from "./bounded_map.ts";
import {
  bearerToken,
  CHALLENGE_CHECKS,
  type ChallengeOptions,
  createChallenger,
} from "./challenge.ts";
import { checkOptions, having } from "./checks.ts";
import { type Authorize, type Caller, checkCaller, requireCaller } from "./identity.ts";
import { isResponse } from "./responses.ts";

/** Tells who a token belongs to; `undefined` for an unknown token. A `Response` is sent as it is. */
export type TokenVerifier = (
  token: string,
  request: Request,
) => Caller | Response | undefined | Promise<Caller | Response | undefined>;

/** Options for {@linkcode bearerAuth}: either `tokens` or `verify`. */
export interface BearerAuthOptions extends ChallengeOptions {
  /** Tokens, each with its caller. A token is 16 or more visible ASCII characters. */
  readonly tokens?: ReadonlyMap<string, Caller>;
  /** Looks a token up. Compare secrets in constant time. */
  readonly verify?: TokenVerifier;
}

const CHECKS = {
  ...CHALLENGE_CHECKS,
  tokens: having("get", "a Map of tokens"),
  verify: checkFunction,
} satisfies { readonly [Option in keyof BearerAuthOptions]-?: Check };

const TOKEN = /^[\x21-\x7e]{16,8192}$/;

/**
 * Lets in callers with a bearer token: an `authorize` for `createToolHandler`. A caller without a
 * `principal` is named by a digest of its token, so that two tokens are two callers.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { bearerAuth, createToolHandler } from "@plue/tools/hono";
 *
 * const app = createToolHandler(new ToolRegistry({ tools: [] }), {
 *   authorize: bearerAuth({
 *     tokens: new Map([["correct-horse-battery", { principal: "ann", role: "control" }]]),
 *   }),
 * });
 *
 * const ask = async (token: string) =>
 *   (await app.request("http://localhost/tools", { headers: { authorization: `Bearer ${token}` } })).status;
 * assert.equal(await ask("correct-horse-battery"), 200);
 * assert.equal(await ask("correct-horse-batterz"), 401);
 * ```
 *
 * @throws {TypeError} If an option is unknown or wrong, there is neither `tokens` nor `verify`, or
 * both, a token is too weak, or what it stands for is no caller.
 */
export function bearerAuth(options: BearerAuthOptions): Authorize {
  checkOptions("check tokens", options, CHECKS);
  const { tokens, verify } = options;
  const challenger = createChallenger(options);
  const find = verify ?? known(tokens);
  if (tokens !== undefined && verify !== undefined) {
    throw new TypeError(
      "Cannot check tokens: tokens and verify are given, and one of them is wanted",
    );
  }
  const nameOf = tokenNamer();
  return async (request) => {
    const token = bearerToken(request, challenger);
    if (typeof token !== "string") return token;
    const caller = await find(token, request) ?? challenger.invalid();
    if (isResponse(caller)) return caller;
    // A `false` would become a caller below.
    requireCaller(caller);
    // Two callers without a name would share their idempotency keys and their running calls.
    return caller.principal !== undefined ? caller : { ...caller, principal: await nameOf(token) };
  };
}

/**
 * Finds whose token it is. How long that takes does not say how much of a guess was right: digests
 * are compared, to the last byte, with those of all tokens.
 */
function known(tokens: ReadonlyMap<string, Caller> | undefined): TokenVerifier {
  if (!(tokens instanceof Map) || tokens.size === 0) {
    throw new TypeError("Cannot check tokens: a map of tokens, or verify, is wanted");
  }
  for (const [token, caller] of tokens) {
    if (!TOKEN.test(token)) {
      // The message must not show the token.
      throw new TypeError(
        "Cannot check tokens: each must be 16 to 8192 visible ASCII characters without spaces",
      );
    }
    checkCaller(caller);
  }
  const owners = [...tokens];
  let entries: readonly { readonly wanted: Uint8Array; readonly owner: Caller }[] | undefined;
  return async (token) => {
    entries ??= await Promise.all(
      owners.map(async ([token, owner]) => ({ wanted: await digest(token), owner })),
    );
    const given = await digest(token);
    let found: Caller | undefined;
    for (const { wanted, owner } of entries) {
      if (isEqual(given, wanted)) found = owner;
    }
    return found;
  };
}

/** How many names of tokens are kept. */
const MAX_NAMES = 1_024;

/**
 * Names tokens by their digests: the same token has the same name in every process, and the token
 * cannot be told from it.
 */
function tokenNamer(): (token: string) => Promise<string> {
  const names = new BoundedMap<string, string>({ maxEntries: MAX_NAMES });
  return async (token) => {
    let name = names.get(token);
    if (name === undefined) {
      const bytes = [...(await digest(token)).subarray(0, 16)];
      name = `token:${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
      names.set(token, name);
    }
    return name;
  };
}

const encoder = new TextEncoder();

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
}

/** Compares digests, which have one length. */
function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  let difference = 0;
  for (const [index, byte] of left.entries()) difference |= byte ^ (right[index] ?? 0);
  return difference === 0;
}
