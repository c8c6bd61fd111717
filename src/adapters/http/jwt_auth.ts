/** Admits callers by JSON Web Tokens of an issuer. `jose` checks the signature and the times. */

import type { JWK, JWSHeaderParameters, LocalJWKSet, RemoteJWKSet } from "jose";
import * as check from "../../tool/mod.ts";
import { assertSync, fail, isListOf, isObject, isWord } from "../../tool/mod.ts";
import * as bearer from "./bearer_auth.ts";
import { checkOptions, parseUrl } from "./options.ts";
import { type Authorize, type Caller, requireCaller } from "./identity.ts";
import { ProblemError, unavailable } from "./responses.ts";

/** The algorithm of a signature: with a private key, or (HS…) with a shared secret. */
export type JwtAlgorithm = `${"RS" | "PS" | "ES" | "HS"}${256 | 384 | 512}` | "EdDSA";

/** The claims of a token whose signature and times were checked. */
export type JwtClaims = Readonly<Record<string, unknown>>;

/** A public key, with the name (`kid`) by which tokens refer to it. */
export interface NamedKey extends JsonWebKey {
  readonly kid?: string;
}

/** Options for {@linkcode jwtAuth}: one of `keys`, `jwksUrl` and `secret`. */
export interface JwtAuthOptions extends bearer.ChallengeOptions {
  /** The issuer's public keys. If tokens name their key (`kid`), each key must have its `kid`. */
  readonly keys?: readonly NamedKey[];
  /**
   * The URL of the issuer's public keys: its `jwks_uri`. Keys are fetched on first use, when they are
   * old, and when a token names an unknown key. If a later fetch fails, the old keys remain valid.
   */
  readonly jwksUrl?: string;
  /** A secret that the issuer shares with this server: 32 or more characters. */
  readonly secret?: string;
  /** The issuer of tokens: their `iss`. Required with `keys` and `jwksUrl`. */
  readonly issuer?: string;
  /** The audience of tokens. Their `aud` must contain one of these values. */
  readonly audience: string | readonly string[];
  /**
   * The accepted algorithms.
   *
   * @default {["RS256", "PS256", "ES256", "EdDSA"] with keys, ["HS256"] with a secret}
   */
  readonly algorithms?: readonly JwtAlgorithm[];
  /** The tolerated difference of the issuer's clock, in seconds. @default {5} */
  readonly clockToleranceS?: number;
  /** Scopes that every caller must hold. */
  readonly requiredScopes?: readonly string[];
  /**
   * Makes the caller from the claims, by default from `scope` and `role`. If the caller has no
   * `principal`, `sub` provides it. `undefined` rejects the token.
   */
  toCaller?(claims: JwtClaims): Caller | undefined | Promise<Caller | undefined>;
  /** Returns the time, in milliseconds since 1970. @default {Date.now} */
  readonly now?: () => number;
}

const ACTION = "check JSON Web Tokens";

const CHECKS = {
  ...bearer.CHALLENGE_CHECKS,
  keys: check.createCheck(
    "a list of keys",
    (value): value is NamedKey[] => isListOf(value, isObject),
  ),
  jwksUrl: check.checkText,
  secret: check.checkText,
  issuer: check.checkWord,
  audience: (action, value, place) => check.checkTexts(action, [value].flat(), place),
  algorithms: check.checkTexts,
  clockToleranceS: check.numberFrom(0, 300),
  requiredScopes: check.checkTexts,
  toCaller: check.checkFunction,
  now: check.checkFunction,
} satisfies { readonly [Option in keyof JwtAuthOptions]-?: check.Check };

const ALGORITHM = /^([RPEH]S(256|384|512)|EdDSA)$/;

const MAX_TOKEN = 8_192;

/**
 * Three parts in Base64url as RFC 7515 requires: without padding, and with zeros in unused bits.
 * Libraries also accept other spellings of the same token.
 */
const TOKEN = new RegExp(
  `^${Array(3).fill("(?:[\\w-]{4})*(?:[\\w-][AQgw]|[\\w-]{2}[AEIMQUYcgkosw048])?").join("\\.")}$`,
);

/**
 * Makes an `authorize` for `createToolHandler` that admits JSON Web Tokens. The signature, issuer,
 * audience and times of a token must be valid. The token must have an expiry (`exp`) and a subject
 * (`sub`). The scopes, the role and `sub` become the caller's scopes, role and principal.
 *
 * Needs the package `jose`. While the issuer's keys cannot be fetched, callers receive 503.
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
 * const headers = { authorization: `Bearer ${token}` };
 * assert.equal((await app.request("http://localhost/tools", { headers })).status, 200);
 * ```
 *
 * @throws {TypeError | RangeError} If an option is unknown or invalid, or a required one is missing.
 */
export function jwtAuth(options: JwtAuthOptions): Authorize {
  checkOptions(ACTION, options, CHECKS);
  const { issuer, requiredScopes = [], clockToleranceS = 5, now = Date.now } = options;
  const audiences = [options.audience].flat();
  const keyOf = keyFinder(options);
  const algorithms = algorithmsOf(options);
  const challenger = bearer.createChallenger(options);
  if (audiences.length === 0 || !audiences.every(isWord)) {
    refuse("audience is required");
  }
  if (issuer === undefined && options.secret === undefined) {
    refuse("issuer is required with keys");
  }

  async function claimsOf(token: string, library: Jose): Promise<JwtClaims | undefined> {
    if (token.length > MAX_TOKEN || !TOKEN.test(token)) return undefined;
    const time = assertSync(now());
    try {
      const { payload } = await library.jwtVerify(token, (header) => {
        if (!isTokenHeader(header)) refuse("the token is of another type");
        return keyOf(header, library);
      }, {
        algorithms,
        audience: audiences,
        ...(issuer === undefined ? {} : { issuer }),
        clockTolerance: clockToleranceS,
        currentDate: new Date(time),
        requiredClaims: ["exp"],
      });
      const { iat = 0 } = payload;
      return iat <= time / 1000 + clockToleranceS ? payload : undefined;
    } catch (error) {
      if (error instanceof ProblemError) throw error;
      // The error is not logged, because it contains the claims of the token.
      return undefined;
    }
  }

  return async (request) => {
    // Loaded before the token is read: without the package, invalid tokens would be rejected with 401.
    const library = jose ??= await loadJose();
    const token = bearer.bearerToken(request, challenger);
    if (typeof token !== "string") return token;
    const claims = await claimsOf(token, library);
    if (claims === undefined) return challenger("invalid");
    const scopes = words(claims["scope"]);
    if (!requiredScopes.every((scope) => scopes.includes(scope))) {
      return challenger("insufficient", requiredScopes);
    }
    const caller = options.toCaller === undefined
      ? { scopes, role: text(claims["role"]) }
      : await options.toCaller(claims);
    // The spread below would turn `false` into a valid caller without rights.
    if (caller !== undefined) requireCaller(caller);
    const named: Caller = { principal: text(claims["sub"]), ...caller };
    if (caller === undefined || named.principal === undefined) return challenger("invalid");
    return { expiresAt: (claims["exp"] as number) * 1000, ...named };
  };
}

/** True for the header of an access token: its type is of RFC 7519 or RFC 9068, or absent. */
function isTokenHeader({ typ = "jwt", kid = "" }: JWSHeaderParameters): boolean {
  return /^(application\/)?(at\+)?jwt$/i.test(typ) && typeof kid === "string";
}

/** The functions of `jose` that are used. With the whole package, a bundle is six times as large. */
type Jose = Pick<
  typeof import("jose"),
  "createLocalJWKSet" | "createRemoteJWKSet" | "jwtVerify"
>;

let jose: Jose | undefined;

async function loadJose(): Promise<Jose> {
  try {
    const [local, remote, verify] = await Promise.all([
      import("jose/jwks/local"),
      import("jose/jwks/remote"),
      import("jose/jwt/verify"),
    ]);
    return { ...local, ...remote, ...verify };
  } catch (cause) {
    throw new Error(`Cannot ${ACTION}: run "npm install jose" first`, { cause });
  }
}

type KeyFinder = (
  header: JWSHeaderParameters,
  jose: Jose,
) => Promise<Awaited<ReturnType<LocalJWKSet>> | Uint8Array>;

function keyFinder({ keys, jwksUrl, secret }: JwtAuthOptions): KeyFinder {
  if ([keys, jwksUrl, secret].filter((one) => one !== undefined).length !== 1) {
    refuse("set exactly one of keys, jwksUrl and secret");
  }
  if (secret !== undefined) {
    if (secret.length < 32) refuse("secret must have 32 characters or more");
    const shared = new TextEncoder().encode(secret);
    return () => Promise.resolve(shared);
  }
  if (jwksUrl !== undefined) return remoteKeys(jwksUrl);
  const list = keys ?? [];
  if (list.length === 0) refuse("keys is empty");
  if (list.some(({ kty }) => kty === "oct")) refuse("use the option secret for a secret");
  let set: LocalJWKSet | undefined;
  return (header, { createLocalJWKSet }) =>
    (set ??= createLocalJWKSet({ keys: list as JWK[] }))(header);
}

/** The pause after a failed fetch, in milliseconds, if there are old keys, and if there are none. */
const PAUSES_MS = { withKeys: 30_000, without: 1_000 };

/** Finds keys at a URL. `jose` alone would drop the old keys when a later fetch fails. */
function remoteKeys(url: string): KeyFinder {
  if (!isSafe(url)) refuse(`jwksUrl must begin with https:, not be "${url}"`);
  let remote: RemoteJWKSet | undefined;
  let failure: unknown;
  let failedAt = -Infinity;
  return async (header, { createLocalJWKSet, createRemoteJWKSet }) => {
    remote ??= createRemoteJWKSet(new URL(url));
    const pauseMs = remote.jwks() === undefined ? PAUSES_MS.without : PAUSES_MS.withKeys;
    // `jose` measures the age of keys by the same clock. This clock may be set back.
    const sinceMs = Math.abs(Date.now() - failedAt);
    if (!remote.fresh && sinceMs >= pauseMs) {
      await remote.reload().catch((error: unknown) => {
        failure = error;
        failedAt = Date.now();
      });
    }
    if (remote.fresh) return await remote(header);
    const keys = remote.jwks();
    if (keys !== undefined) return await createLocalJWKSet(keys)(header);
    // The token may be valid. The cause is logged.
    const detail = "Cannot check the token: the keys of its issuer cannot be fetched now";
    throw new ProblemError(unavailable("issuer_unavailable", detail, 5), { cause: failure });
  };
}

function isSafe(url: string): boolean {
  const { protocol, hostname = "" }: Partial<URL> = parseUrl(url) ?? {};
  return protocol === "https:" ||
    (protocol === "http:" && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname));
}

function algorithmsOf({ algorithms, secret }: JwtAuthOptions): JwtAlgorithm[] {
  const isShared = secret !== undefined;
  const chosen = algorithms ?? (isShared ? ["HS256"] : ["RS256", "PS256", "ES256", "EdDSA"]);
  for (const alg of chosen) {
    // A public key must never be used as a shared secret, because everybody has it.
    if (!ALGORITHM.test(alg) || alg.startsWith("HS") !== isShared) {
      refuse(`algorithm "${alg}" cannot be used with ${isShared ? "a secret" : "public keys"}`);
    }
  }
  if (chosen.length === 0) refuse("algorithms is empty");
  return [...chosen];
}

function refuse(why: string): never {
  fail(ACTION, why);
}

function text(value: unknown): string | undefined {
  return isWord(value) ? value : undefined;
}

function words(value: unknown): readonly string[] {
  const list: unknown = typeof value === "string" ? value.split(" ") : value;
  return Array.isArray(list) ? list.filter(isWord) : [];
}
