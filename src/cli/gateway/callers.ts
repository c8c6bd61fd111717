/** The callers of `plue.json`: tokens, and issuers of JSON Web Tokens. */

import { type Authorize, bearerAuth, type Caller, jwtAuth } from "../../adapters/hono/mod.ts";
import { problemResponse } from "../../adapters/http/mod.ts";
import { describeThrown, isText, pointerStep } from "../../tool/mod.ts";
import type { CallerSettings, IssuerSettings, PlueFile } from "./file.ts";

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
    const caller = { ...callerOf(settings), principal: name };
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
  return jwtAuth({
    ...{ issuer, audience },
    ...(jwksUrl !== undefined && { jwksUrl }),
    ...(secret !== undefined && { secret }),
    ...(requiredScopes !== undefined && { requiredScopes }),
    toCaller({ sub, scope, role }) {
      if (!isText(sub) || sub === "") return undefined;
      const held = isText(scope) ? scope.split(" ").filter(Boolean) : [];
      const caller = callerOf(own);
      return {
        ...caller,
        scopes: [...held, ...caller.scopes ?? []],
        role: caller.role ?? (isText(role) && role !== "" ? role : undefined),
        // Two issuers may have users of the same name.
        principal: `${issuer}|${sub}`,
      };
    },
  });
}

function callerOf({ role, scopes = [], maxRisk, explain, tenant }: CallerSettings): Caller {
  return {
    scopes,
    ...(role !== undefined && { role }),
    ...(maxRisk !== undefined && { maxRisk }),
    ...(explain !== undefined && { explain }),
    ...(tenant !== undefined && { tenant }),
  };
}

/** Returns `authorize` for the callers of one tenant only; without a tenant, for those without one. */
export function forTenant(authorize: Authorize, tenant: string | undefined): Authorize {
  return async (request, env) => {
    const caller = await authorize(request, env);
    // The answer is the same for a tenant that does not exist.
    return caller instanceof Response || caller.tenant === tenant ? caller : problemResponse({
      ...{ status: 404, code: "not_found" },
      detail: "The caller has no such tenant: the path of a tenant is /t/<tenant>/mcp",
    });
  };
}
