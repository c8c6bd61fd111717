/** The callers of `plue.json`: tokens, and issuers of JSON Web Tokens. */

import { type Authorize, bearerAuth, type Caller, jwtAuth } from "../../adapters/hono/mod.ts";
import {
  createChallenger,
  problemResponse,
  type ProtectedResource,
} from "../../adapters/http/mod.ts";
import { defined, isText, pointerStep } from "../../tool/mod.ts";
import type { IssuerSettings, PlueFile } from "./file.ts";

const OPERATORS = new WeakSet<Request>();

export function isOperator(request: Request): boolean {
  return OPERATORS.has(request);
}

/**
 * @param token The token in `PLUE_TOKEN`, and its caller.
 * @returns `undefined` if the file has no callers and there is no token.
 * @throws {CommandError} If a token is too short or occurs twice, or an issuer is invalid.
 */
export function authorizeCallers(
  { json, settings: { callers: { tokens = {}, jwt = [] } = {} } }: PlueFile,
  token?: readonly [token: string, caller: Caller],
): Authorize | undefined {
  const known = new Map<string, Caller>(token === undefined ? [] : [token]);
  const operators = new Map<string, Caller>();
  for (const [principal, { token: own, operator, ...rights }] of Object.entries(tokens)) {
    const pointer = `/callers/tokens${pointerStep(principal)}/token`;
    if (known.has(own) || operators.has(own)) {
      json.reject(pointer, "another caller has this token; create a new one");
    }
    const caller = { ...rights, principal };
    // Checks each token by itself, so that the message has the line of the caller.
    json.attempt(pointer, () => bearerAuth({ tokens: new Map([[own, caller]]) }));
    (operator === true ? operators : known).set(own, caller);
  }
  const doors = [
    ...known.size > 0 ? [bearerAuth({ tokens: known })] : [],
    ...operators.size > 0 ? [asOperator(bearerAuth({ tokens: operators }))] : [],
    ...jwt.map((issuer, index) => {
      const door = json.attempt(`/callers/jwt/${index}`, () => authorizeIssuer(issuer));
      return issuer.operator === true ? asOperator(door) : door;
    }),
  ];
  if (doors.length < 2) return doors[0];
  return async (request, env) => {
    let rejection: Caller | Response | undefined;
    let failure: { readonly error: unknown } | undefined;
    for (const door of doors) {
      try {
        const answer = await door(request, env);
        if (!(answer instanceof Response)) return answer;
        // A response with status 403 names the missing scopes.
        if (rejection === undefined || answer.status === 403) rejection = answer;
      } catch (error) {
        // The keys of one issuer cannot be fetched. The token may be of another issuer.
        failure ??= { error };
      }
    }
    if (failure !== undefined) throw failure.error;
    return rejection as Response;
  };
}

function authorizeIssuer(
  { issuer, audience, jwksUrl, secret, requiredScopes, operator: _, ...own }: IssuerSettings,
): Authorize {
  return jwtAuth({
    ...{ issuer, audience },
    ...defined({ jwksUrl, secret, requiredScopes }),
    toCaller({ sub, scope, role }) {
      if (!isText(sub) || sub === "") return undefined;
      const held = isText(scope) ? scope.split(" ").filter(Boolean) : [];
      return {
        ...own,
        scopes: [...held, ...own.scopes ?? []],
        role: own.role ?? (isText(role) && role !== "" ? role : undefined),
        // Two issuers may have users of the same name.
        principal: `${issuer}|${sub}`,
      };
    },
  });
}

function isBearer({ headers }: Request): boolean {
  return /^bearer /i.test(headers.get("authorization") ?? "");
}

function asOperator(authorize: Authorize): Authorize {
  return async (request, env) => {
    const caller = await authorize(request, env);
    if (!(caller instanceof Response)) OPERATORS.add(request);
    return caller;
  };
}

/** Returns the resources (RFC 9728) of issuers: their audiences that are URLs, by tenant. */
export function resourcesOf(
  { settings: { callers: { jwt = [] } = {} } }: PlueFile,
): ReadonlyMap<string | undefined, ProtectedResource> {
  const isResource = ({ issuer, audience }: IssuerSettings): boolean =>
    [issuer, audience].every((url) => /^https?:[^?#]+$/.test(url) && URL.canParse(url));
  const issuers = jwt.filter(isResource);
  // The first issuer of a tenant is the last entry, which replaces the others.
  return new Map(
    issuers.toReversed().map(({ audience: resource, tenant }) => {
      const same = issuers.filter(({ audience }) => audience === resource);
      return [tenant, { resource, authorizationServers: same.map(({ issuer }) => issuer) }];
    }),
  );
}

/**
 * Returns `authorize` for the callers of one tenant only; without a tenant, for those without one.
 *
 * @param resource Named in responses to callers without a valid token, so that clients can log in.
 */
export function forTenant(
  authorize: Authorize,
  tenant: string | undefined,
  resource: ProtectedResource | undefined,
): Authorize {
  const challenger = resource && createChallenger(resource);
  return async (request, env) => {
    const caller = await authorize(request, env);
    if (caller instanceof Response) {
      if (caller.status !== 401 || challenger === undefined) return caller;
      return challenger(isBearer(request) ? "invalid" : "missing");
    }
    if (caller.tenant === tenant) return caller;
    // The answer is the same for a tenant that does not exist.
    return problemResponse({
      ...{ status: 404, code: "not_found" },
      detail: "The caller has no such tenant: the path of a tenant is /t/<tenant>/mcp",
    });
  };
}
