/** The callers of `plue.json`: tokens, and issuers of JSON Web Tokens. */

import { type Authorize, bearerAuth, type Caller, jwtAuth } from "../../adapters/hono/mod.ts";
import { problemResponse } from "../../adapters/http/mod.ts";
import { defined, describeThrown, isText, pointerStep } from "../../tool/mod.ts";
import type { CallerSettings, IssuerSettings, PlueFile } from "./file.ts";

const OPERATORS = new WeakSet<Caller | Request>();

export function isOperator(request: Request): boolean {
  return OPERATORS.has(request);
}

/**
 * Makes the function that identifies the callers of a file.
 *
 * @param token The token in `PLUE_TOKEN`, and its caller.
 * @returns `undefined` if the file has no callers and there is no token.
 * @throws {CommandError} If a token is too short or occurs twice, or an issuer is invalid.
 */
export function authorizeCallers(
  { json, settings: { callers: { tokens = {}, jwt = [] } = {} } }: PlueFile,
  token?: readonly [token: string, caller: Caller],
): Authorize | undefined {
  const known = new Map<string, Caller>(token === undefined ? [] : [token]);
  const checked = <Result>(pointer: string, make: () => Result): Result => {
    try {
      return make();
    } catch (cause) {
      throw json.error(pointer, describeThrown(cause), cause);
    }
  };
  for (const [name, { token: own, ...settings }] of Object.entries(tokens)) {
    const pointer = `/callers/tokens${pointerStep(name)}/token`;
    if (known.has(own)) {
      throw json.error(pointer, "another caller has this token; create a new one");
    }
    const caller = callerOf(settings, { principal: name });
    // Checks each token by itself, so that the message has the line of the caller.
    checked(pointer, () => bearerAuth({ tokens: new Map([[own, caller]]) }));
    known.set(own, caller);
  }
  const issuers = jwt.map((issuer, index) =>
    checked(`/callers/jwt/${index}`, () => authorizeIssuer(issuer))
  );
  const doors = known.size === 0 ? issuers : [bearerAuth({ tokens: known }), ...issuers];
  if (doors.length < 2) return doors[0];
  return async (request, env) => {
    let rejection: Caller | Response | undefined;
    let failure: { readonly error: unknown } | undefined;
    for (const door of doors) {
      try {
        const answer = await door(request, env);
        if (!(answer instanceof Response)) return answer;
        rejection ??= answer;
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
  { issuer, audience, jwksUrl, secret, requiredScopes, ...own }: IssuerSettings,
): Authorize {
  const authorize = jwtAuth({
    ...{ issuer, audience },
    ...defined({ jwksUrl, secret, requiredScopes }),
    toCaller({ sub, scope, role }) {
      if (!isText(sub) || sub === "") return undefined;
      const held = isText(scope) ? scope.split(" ").filter(Boolean) : [];
      return callerOf(own, {
        scopes: [...held, ...own.scopes ?? []],
        role: own.role ?? (isText(role) && role !== "" ? role : undefined),
        // Two issuers may have users of the same name.
        principal: `${issuer}|${sub}`,
      });
    },
  });
  return async (request, env) => {
    const caller = await authorize(request, env);
    // The caller is a copy of the result of `toCaller`.
    if (own.operator === true && !(caller instanceof Response)) OPERATORS.add(caller);
    return caller;
  };
}

function callerOf({ operator, ...rights }: CallerSettings, more: Caller): Caller {
  const caller = { ...rights, ...more };
  if (operator === true) OPERATORS.add(caller);
  return caller;
}

/** Returns `authorize` for the callers of one tenant only; without a tenant, for those without one. */
export function forTenant(authorize: Authorize, tenant: string | undefined): Authorize {
  return async (request, env) => {
    const caller = await authorize(request, env);
    if (caller instanceof Response) return caller;
    if (caller.tenant === tenant) {
      if (OPERATORS.has(caller)) OPERATORS.add(request);
      return caller;
    }
    // The answer is the same for a tenant that does not exist.
    return problemResponse({
      ...{ status: 404, code: "not_found" },
      detail: "The caller has no such tenant: the path of a tenant is /t/<tenant>/mcp",
    });
  };
}
