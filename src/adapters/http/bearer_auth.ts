/**
 * Bearer tokens (RFC 6750) of callers, the responses that reject invalid ones, and the metadata of
 * the protected resource (RFC 9728), from which clients learn how to get a token.
 */

import type { HttpPart } from "./request.ts";
import { type Check, checkFunction, checkText, checkTexts, fail } from "../../tool/mod.ts";
import { checkOptions, having, parseUrl } from "./options.ts";
import { type Authorize, type Caller, checkCaller, requireCaller } from "./identity.ts";
import { isResponse, json, type ProblemCode, problemResponse } from "./responses.ts";

/** Options of the responses that reject a caller. */
export interface ChallengeOptions {
  /**
   * The URL of the protected resource. If set, responses that reject a caller contain the URL of the
   * resource's metadata, which the option `protectedResource` of the handler serves.
   */
  readonly resource?: string;
}

export const CHALLENGE_CHECKS: { readonly [Option in keyof ChallengeOptions]-?: Check } = {
  resource: checkText,
};

type Rejection = "missing" | "malformed" | "invalid" | "insufficient";

/** The status, code, detail and `error` of RFC 6750 of each response that rejects a caller. */
const REJECTIONS: Readonly<Record<Rejection, readonly [number, ProblemCode, string, string?]>> = {
  missing: [401, "unauthorized", 'This server requires a token: "authorization: Bearer …"'],
  malformed: [
    400,
    "bad_request",
    'The header must be "authorization: Bearer …"',
    "invalid_request",
  ],
  // The message gives no reason: a reason would help an attacker to guess a token.
  invalid: [401, "unauthorized", "The token is not valid here, or has expired", "invalid_token"],
  insufficient: [403, "insufficient_scope", "The token needs the scopes: ", "insufficient_scope"],
};

export type Challenger = (why: Rejection, scopes?: readonly string[]) => Response;

export function createChallenger({ resource }: ChallengeOptions): Challenger {
  const metadata = resource === undefined
    ? undefined
    : urlOf(resource).origin + metadataPaths(resource)[0];
  return (why, scopes) => {
    const [status, code, detail, error] = REJECTIONS[why];
    const scope = scopes?.join(" ");
    const parameters = Object.entries({ resource_metadata: metadata, error, scope })
      .flatMap(([name, value]) => value === undefined ? [] : [`${name}="${value}"`]);
    const headers = { "www-authenticate": `Bearer ${parameters.join(", ")}`.trimEnd() };
    return problemResponse({ status, code, detail: detail + (scope ?? ""), headers });
  };
}

const MAX_HEADER = 16_384;
const BEARER = /^bearer ([\x21-\x7e]+)$/i;

export function bearerToken(request: Request, challenger: Challenger): string | Response {
  const header = request.headers.get("authorization");
  // A header of another scheme, such as Basic, counts as a missing token.
  if (header === null || !/^bearer(\s|$)/i.test(header)) {
    return challenger("missing");
  }
  const token = header.length > MAX_HEADER ? undefined : BEARER.exec(header)?.[1];
  return token ?? challenger("malformed");
}

/** The description of a protected resource (RFC 9728). */
export interface ProtectedResource {
  /** The URL of the resource, such as `https://tools.example.com/mcp`: the audience of tokens. */
  readonly resource: string;
  /** The issuers of tokens, as URLs. */
  readonly authorizationServers: readonly string[];
  /** The scopes that a token may hold. */
  readonly scopes?: readonly string[];
}

const RESOURCE_CHECKS = {
  resource: checkText,
  authorizationServers: checkTexts,
  scopes: checkTexts,
} satisfies { readonly [Option in keyof ProtectedResource]-?: Check };

const DESCRIBE = "describe the resource";
const WELL_KNOWN = "/.well-known/oauth-protected-resource";

function metadataPaths(resource: string): readonly [string, ...string[]] {
  const { pathname } = urlOf(resource);
  return pathname === "/" ? [WELL_KNOWN] : [WELL_KNOWN + pathname, WELL_KNOWN];
}

/**
 * Makes the handler's part that serves the metadata for clients that need a token (RFC 9728), at
 * `/.well-known/oauth-protected-resource`. The handler must then be at the root of its host.
 *
 * @throws {TypeError} If a URL or a field is invalid, or there is no authorization server.
 */
export function serveProtectedResource(options: ProtectedResource): HttpPart {
  checkOptions(DESCRIBE, options, RESOURCE_CHECKS);
  const { resource, authorizationServers, scopes } = options;
  if (authorizationServers.length === 0) fail(DESCRIBE, "authorizationServers is empty");
  for (const server of authorizationServers) urlOf(server);
  const metadata = {
    resource,
    authorization_servers: authorizationServers,
    // JSON omits `undefined` members.
    scopes_supported: scopes,
    bearer_methods_supported: ["header"],
  };
  const answerPublic = (): Response => json(metadata);
  return () => ({
    routes: metadataPaths(resource).map((path) => ({ method: "GET", path, answerPublic })),
  });
}

function urlOf(text: string): URL {
  const url = parseUrl(text);
  if (url?.search === "" && url.hash === "" && /^https?:$/.test(url.protocol)) return url;
  return fail(
    DESCRIBE,
    `"${text}" must be a URL without a query, such as "https://tools.example.com"`,
  );
}

/** Returns the caller of a token, `undefined` for an unknown token, or a `Response` to send unchanged. */
export type TokenVerifier = (
  token: string,
  request: Request,
) => Caller | Response | undefined | Promise<Caller | Response | undefined>;

/** Options for {@linkcode bearerAuth}: either `tokens` or `verify`. */
export interface BearerAuthOptions extends ChallengeOptions {
  /** Tokens, each with its caller. A token is 16 or more visible ASCII characters. */
  readonly tokens?: ReadonlyMap<string, Caller>;
  /** Returns the caller of a token. Compare secrets in constant time. */
  readonly verify?: TokenVerifier;
}

const CHECKS = {
  ...CHALLENGE_CHECKS,
  tokens: having("get", "a Map of tokens"),
  verify: checkFunction,
} satisfies { readonly [Option in keyof BearerAuthOptions]-?: Check };

const TOKEN = /^[\x21-\x7e]{16,8192}$/;

/**
 * Makes an `authorize` for `createToolHandler` that admits callers with a bearer token. A caller
 * without a `principal` gets a digest of its token as principal, so each token is another principal.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { ToolRegistry } from "@plue/tools";
 * import { bearerAuth, createToolHandler } from "@plue/tools/hono";
 *
 * const tokens = new Map([["correct-horse-battery", { principal: "ann", role: "control" }]]);
 * const app = createToolHandler(new ToolRegistry({ tools: [] }), {
 *   authorize: bearerAuth({ tokens }),
 * });
 *
 * const headers = { authorization: "Bearer correct-horse-battery" };
 * assert.equal((await app.request("http://localhost/tools", { headers })).status, 200);
 * ```
 *
 * @throws {TypeError} If an option is unknown or invalid, both or neither of `tokens` and `verify`
 * are set, a token is too weak, or its caller is invalid.
 */
export function bearerAuth(options: BearerAuthOptions): Authorize {
  const { tokens, verify } = options;
  checkOptions("check tokens", options, CHECKS);
  const challenger = createChallenger(options);
  const find = verify ?? known(tokens);
  if (tokens !== undefined && verify !== undefined) {
    fail("check tokens", "set either tokens or verify, not both");
  }
  return async (request) => {
    const token = bearerToken(request, challenger);
    if (typeof token !== "string") return token;
    const caller = await find(token, request) ?? challenger("invalid");
    if (isResponse(caller)) return caller;
    // The spread below would turn `false` into a valid caller without rights.
    requireCaller(caller);
    // Callers without a name would share their idempotency keys and their running calls.
    return caller.principal !== undefined ? caller : { ...caller, principal: await nameOf(token) };
  };
}

/**
 * Makes the function that finds the caller of a token in constant time: it compares the digests of all
 * tokens, each to the last byte.
 */
function known(tokens: ReadonlyMap<string, Caller> | undefined): TokenVerifier {
  if (!(tokens instanceof Map) || tokens.size === 0) {
    fail("check tokens", "set tokens to a Map, or set verify");
  }
  for (const [token, caller] of tokens) {
    if (!TOKEN.test(token)) {
      // The message must not show the token.
      fail("check tokens", "each token must be 16 to 8192 visible ASCII characters");
    }
    checkCaller(caller);
  }
  const owners = [...tokens];
  let entries: readonly { readonly wanted: Uint8Array; readonly owner: Caller }[] | undefined;
  return async (token) => {
    entries ??= await Promise.all(
      owners.map(async ([token, owner]) => ({ wanted: await digest(token), owner })),
    );
    const actual = await digest(token);
    let found: Caller | undefined;
    for (const { wanted, owner } of entries) {
      if (isEqual(actual, wanted)) found = owner;
    }
    return found;
  };
}

/** Names a token by its digest: its name is the same in every process, and does not reveal it. */
async function nameOf(token: string): Promise<string> {
  const bytes = [...(await digest(token)).subarray(0, 16)];
  return `token:${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const encoder = new TextEncoder();

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
}

function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  let difference = 0;
  for (const [index, byte] of left.entries()) difference |= byte ^ (right[index] ?? 0);
  return difference === 0;
}
