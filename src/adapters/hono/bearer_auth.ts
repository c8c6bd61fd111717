/**
 * Callers who show a token that this server knows.
 *
 * @module
 */

import { type Check, checkFunction } from "../../tool/mod.ts";
import {
  bearerToken,
  CHALLENGE_CHECKS,
  type ChallengeOptions,
  createChallenger,
} from "./challenge.ts";
import { checkOptions, having } from "./checks.ts";
import { type Authorize, type Caller, checkCaller } from "./identity.ts";
import { isResponse } from "./responses.ts";
import { TokenNames } from "./token_names.ts";
import { TokenTable } from "./token_table.ts";

/** Who a token belongs to. Nothing: nobody. A `Response` is sent as it is. */
export type TokenVerifier = (
  token: string,
  request: Request,
) => Caller | Response | undefined | Promise<Caller | Response | undefined>;

/** Options for {@linkcode bearerAuth}: one of `tokens` and `verify`. */
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
 * Lets in those who show a bearer token: an `authorize` for `createToolHandler`. A caller without a
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
  const names = new TokenNames();
  return async (request) => {
    const token = bearerToken(request, challenger);
    if (typeof token !== "string") return token;
    const caller = await find(token, request) ?? challenger.invalid();
    // Two callers without a name would share their idempotency keys and their running calls.
    return isResponse(caller) || caller.principal !== undefined
      ? caller
      : { ...caller, principal: await names.of(token) };
  };
}

function known(tokens: ReadonlyMap<string, Caller> | undefined): TokenVerifier {
  if (!(tokens instanceof Map) || tokens.size === 0) {
    throw new TypeError(
      "Cannot check tokens: a map of tokens, or verify, is wanted",
    );
  }
  for (const [token, caller] of tokens) {
    if (!TOKEN.test(token)) {
      // The token itself is not shown.
      throw new TypeError(
        "Cannot check tokens: each must be 16 to 8192 visible ASCII characters without spaces",
      );
    }
    checkCaller(caller);
  }
  const table = new TokenTable(tokens);
  return (token) => table.find(token);
}
