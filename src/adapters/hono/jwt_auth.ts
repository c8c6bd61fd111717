/**
 * Callers who show a JSON Web Token of an issuer that this server trusts. Hono's helpers check the
 * signature; what a token must say is checked here.
 *
 * @module
 */

import { decode, verify } from "hono/jwt";
import {
  type Check,
  checkFunction,
  checkText,
  checkWord,
  must,
  numberFrom,
} from "../../tool/mod.ts";
import {
  bearerToken,
  CHALLENGE_CHECKS,
  type ChallengeOptions,
  createChallenger,
} from "./challenge.ts";
import { checkOptions, checkTexts } from "./checks.ts";
import type { Authorize, Caller } from "./identity.ts";
import { ProblemError } from "./problem.ts";
import { type KeySource, type NamedKey, remoteKeys } from "./remote_keys.ts";

/** How a token may be signed: with a private key, or (HS…) with a shared secret. */
export type JwtAlgorithm = keyof typeof KEY_TYPES;

/** What a token says, its signature and its times checked. */
export type JwtClaims = Readonly<Record<string, unknown>>;

/** Options for {@linkcode jwtAuth}: one of `keys`, `jwksUrl` and `secret`. */
export interface JwtAuthOptions extends ChallengeOptions {
  /** The issuer's public keys, or where they come from: {@linkcode remoteKeys} with options. */
  readonly keys?: readonly NamedKey[] | KeySource;
  /** Where the issuer's public keys are: its `jwks_uri`. */
  readonly jwksUrl?: string;
  /** A secret that the issuer shares, 32 or more characters. Whoever has it can make tokens. */
  readonly secret?: string;
  /** Who made the token: its `iss`. With keys, it is required. */
  readonly issuer?: string;
  /** Whom the token is for: one of these must be in its `aud`. A token for others is refused. */
  readonly audience: string | readonly string[];
  /**
   * How tokens may be signed.
   *
   * @default {["RS256", "PS256", "ES256", "EdDSA"] with keys, ["HS256"] with a secret}
   */
  readonly algorithms?: readonly JwtAlgorithm[];
  /**
   * How far the issuer's clock may differ, in seconds.
   *
   * @default {5}
   */
  readonly clockToleranceS?: number;
  /** Scopes that every caller must hold. */
  readonly requiredScopes?: readonly string[];
  /**
   * The claim that has the scopes: words in a string, or a list.
   *
   * @default {"scope"}
   */
  readonly scopeClaim?: string;
  /**
   * The claim that has the role: a string.
   *
   * @default {"role"}
   */
  readonly roleClaim?: string;
  /**
   * The claim that names the caller: a string. A token without one does not count: callers without a
   * name would share their idempotency keys and their running calls.
   *
   * @default {"sub"}
   */
  readonly principalClaim?: string;
  /**
   * Makes the caller, in place of the claims. Without a `principal`, it is named by `principalClaim`
   * all the same. Nothing: the token does not count.
   */
  toCaller?(
    claims: JwtClaims,
  ): Caller | undefined | Promise<Caller | undefined>;
  /** Tells the time, in milliseconds since 1970. */
  readonly now?: () => number;
}

const ACTION = "check JSON Web Tokens";

const CHECKS = {
  ...CHALLENGE_CHECKS,
  keys: must(
    "a list of keys or a function",
    (value): value is readonly unknown[] | KeySource =>
      Array.isArray(value) || typeof value === "function",
  ),
  jwksUrl: checkText,
  secret: checkText,
  issuer: checkWord,
  audience: (action, value, place) => checkTexts(action, [value].flat(), place),
  algorithms: checkTexts,
  clockToleranceS: numberFrom(0, 300),
  requiredScopes: checkTexts,
  scopeClaim: checkWord,
  roleClaim: checkWord,
  principalClaim: checkWord,
  toCaller: checkFunction,
  now: checkFunction,
} satisfies { readonly [Option in keyof JwtAuthOptions]-?: Check };

/** Which kind of key each algorithm takes. `oct` is a shared secret. */
const KEY_TYPES = {
  RS256: "RSA",
  RS384: "RSA",
  RS512: "RSA",
  PS256: "RSA",
  PS384: "RSA",
  PS512: "RSA",
  ES256: "EC",
  ES384: "EC",
  ES512: "EC",
  EdDSA: "OKP",
  HS256: "oct",
  HS384: "oct",
  HS512: "oct",
} as const;

/** RFC 7519, and RFC 9068 for access tokens. An ID token has none, or the first. */
const TYPES: ReadonlySet<unknown> = new Set([undefined, "jwt", "at+jwt"]);

/** A token longer than this is not one that an issuer makes. */
const MAX_TOKEN = 8_192;

/**
 * Lets in those who show a JSON Web Token: an `authorize` for `createToolHandler`. A token counts if
 * its signature, issuer, audience and times do, and it says when it ends and, in `sub`, whose it is.
 * The scopes, the role and `sub` become the caller's scopes, role and principal.
 *
 * While the issuer's keys cannot be fetched, callers are answered 503.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { sign } from "hono/jwt";
 * import { ToolRegistry } from "@plue/tools";
 * import { createToolHandler, jwtAuth } from "@plue/tools/hono";
 *
 * const secret = "a secret that has 32 characters.";
 * const app = createToolHandler(new ToolRegistry({ tools: [] }), {
 *   authorize: jwtAuth({ secret, audience: "https://tools.example.com" }),
 * });
 *
 * const exp = Math.floor(Date.now() / 1000) + 60;
 * const token = await sign({ sub: "ann", aud: "https://tools.example.com", exp }, secret);
 * const ask = async (headers: Record<string, string>) =>
 *   (await app.request("http://localhost/tools", { headers })).status;
 * assert.equal(await ask({ authorization: `Bearer ${token}` }), 200);
 * assert.equal(await ask({}), 401);
 * ```
 *
 * @throws {TypeError} If an option is unknown or wrong, or it is not said what is wanted of tokens.
 * @throws {RangeError} If a number is out of range.
 */
export function jwtAuth(options: JwtAuthOptions): Authorize {
  checkOptions(ACTION, options, CHECKS);
  const { issuer, requiredScopes = [], clockToleranceS = 5, now = Date.now } = options;
  const { scopeClaim = "scope", roleClaim = "role", principalClaim = "sub" } = options;
  const audiences = [options.audience].flat();
  const source = keySource(options);
  const algorithms = algorithmsOf(options);
  const challenger = createChallenger(options);
  if (
    audiences.length === 0 ||
    audiences.some((one) => typeof one !== "string" || one === "")
  ) {
    throw refused("audience must say whom tokens are for");
  }
  if (issuer === undefined && options.secret === undefined) {
    throw refused("issuer must say whose keys they are");
  }

  /** The claims of a token that counts. */
  async function claimsOf(token: string): Promise<JwtClaims | undefined> {
    const parsed = parse(token);
    if (parsed === undefined || !algorithms.has(parsed.alg)) return undefined;
    const { alg, kid, typ } = parsed;
    const key = pick(await source(kid).catch(unavailable), kid, alg);
    if (key === undefined) return undefined;
    let claims: JwtClaims;
    try {
      claims = await verify(token, key, {
        alg,
        ...(typ === undefined ? {} : { typ }),
        // Times are checked below, by a clock that can be handed in, and with some tolerance.
        exp: false,
        nbf: false,
        iat: false,
      });
    } catch {
      // A signature that is not right, or a key that cannot be used this way. Not told: the error
      // has the token in it.
      return undefined;
    }
    if (typeof claims !== "object" || claims === null) return undefined;
    const seconds = now() / 1000;
    const { exp, nbf = 0, iat = 0, iss, aud } = claims;
    const isTimely = typeof exp === "number" &&
      seconds < exp + clockToleranceS &&
      typeof nbf === "number" && nbf <= seconds + clockToleranceS &&
      typeof iat === "number" && iat <= seconds + clockToleranceS;
    const isOurs = (issuer === undefined || iss === issuer) &&
      [aud].flat().some((one) => audiences.includes(one as string));
    return isTimely && isOurs ? claims : undefined;
  }

  return async (request) => {
    const token = bearerToken(request, challenger);
    if (typeof token !== "string") return token;
    const claims = await claimsOf(token);
    if (claims === undefined) return challenger.invalid();
    const scopes = words(own(claims, scopeClaim));
    if (!requiredScopes.every((scope) => scopes.includes(scope))) {
      return challenger.insufficient(requiredScopes);
    }
    const caller = options.toCaller === undefined
      ? {
        scopes,
        role: text(own(claims, roleClaim)),
      }
      : await options.toCaller(claims);
    const named: Caller = { principal: text(own(claims, principalClaim)), ...caller };
    if (caller === undefined || named.principal === undefined) return challenger.invalid();
    // A stream of events ends with the token that opened it.
    return { expiresAt: (claims["exp"] as number) * 1000, ...named };
  };
}

interface Header {
  readonly alg: JwtAlgorithm;
  readonly kid: string | undefined;
  readonly typ: string | undefined;
}

/** The header of a token. It is not to be trusted: it only says which key to try. */
function parse(token: string): Header | undefined {
  if (token.length > MAX_TOKEN) return undefined;
  try {
    const header: Readonly<Record<string, unknown>> = {
      ...decode(token).header,
    };
    const { alg, kid, typ } = header;
    if (typeof alg !== "string" || !Object.hasOwn(KEY_TYPES, alg)) {
      return undefined;
    }
    if (kid !== undefined && typeof kid !== "string") return undefined;
    const type = typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : typ;
    if (!TYPES.has(type)) return undefined;
    return { alg: alg as JwtAlgorithm, kid, typ: typ as string | undefined };
  } catch {
    return undefined;
  }
}

/** The key that a token names, or the only one that could have signed it. */
function pick(
  keys: readonly NamedKey[],
  kid: string | undefined,
  alg: JwtAlgorithm,
): NamedKey | undefined {
  const fit = keys.filter((key) =>
    key.kty === KEY_TYPES[alg] && (key.alg ?? alg) === alg && (key.use ?? "sig") === "sig"
  );
  const named = kid === undefined ? [] : fit.filter((key) => key.kid === kid);
  // A key without a name may be the one that the token names, where no other is.
  const left = named.length > 0
    ? named
    : fit.filter((key) => kid === undefined || key.kid === undefined);
  return left.length === 1 ? left[0] : undefined;
}

function keySource({ keys, jwksUrl, secret }: JwtAuthOptions): KeySource {
  if ([keys, jwksUrl, secret].filter((one) => one !== undefined).length !== 1) {
    throw refused("one of keys, jwksUrl and secret is wanted");
  }
  if (secret !== undefined) {
    if (secret.length < 32) {
      throw refused("the secret must have 32 characters or more");
    }
    const shared: NamedKey = { kty: "oct", k: base64Url(secret) };
    return () => Promise.resolve([shared]);
  }
  if (jwksUrl !== undefined) return remoteKeys(jwksUrl);
  if (typeof keys === "function") return keys;
  const list = keys ?? [];
  if (list.length === 0) throw refused("there are no keys");
  if (list.some(({ kty }) => kty === "oct")) {
    throw refused("a shared secret is given as secret");
  }
  return () => Promise.resolve(list);
}

function algorithmsOf(
  { algorithms, secret }: JwtAuthOptions,
): ReadonlySet<JwtAlgorithm> {
  const isShared = secret !== undefined;
  const chosen = algorithms ??
    (isShared ? ["HS256"] : ["RS256", "PS256", "ES256", "EdDSA"]);
  for (const alg of chosen) {
    // A public key must never be taken for a shared secret: everybody has it.
    if (
      !Object.hasOwn(KEY_TYPES, alg) || (KEY_TYPES[alg] === "oct") !== isShared
    ) {
      throw refused(
        `algorithm "${alg}" does not fit ${isShared ? "a secret" : "public keys"}`,
      );
    }
  }
  if (chosen.length === 0) throw refused("there are no algorithms");
  return new Set(chosen);
}

/** A secret as a key: Hono would take a string with certain words in it for a PEM file. */
function base64Url(text: string): string {
  const bytes = String.fromCharCode(...new TextEncoder().encode(text));
  return btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll(
    "=",
    "",
  );
}

/** Whether the token counts is not known. The log is told the cause. */
function unavailable(cause: unknown): never {
  throw new ProblemError({
    status: 503,
    code: "issuer_unavailable",
    detail: "Tokens cannot be checked now: their issuer's keys are not to be had",
    retryable: true,
    headers: { "retry-after": "5" },
  }, { cause });
}

function refused(why: string): TypeError {
  return new TypeError(`Cannot ${ACTION}: ${why}`);
}

function own(claims: JwtClaims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function words(value: unknown): readonly string[] {
  if (typeof value === "string") {
    return value.split(" ").filter((word) => word !== "");
  }
  return Array.isArray(value)
    ? value.filter((word): word is string => typeof word === "string")
    : [];
}
