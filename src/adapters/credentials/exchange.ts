/** Credentials that a server gives in exchange for a token of the caller, without a person. */

import { digestOf } from "../../execute/durable/mod.ts";
import * as check from "../../tool/mod.ts";
import { createClients, type OAuthProvider, ProviderClient, type Tokens } from "./provider.ts";
import type { CredentialRequest, CredentialSource } from "./source.ts";

/** Options for {@linkcode exchangeTokens}. */
export interface TokenExchangeOptions {
  /** The authorization servers, by the names of the credentials in tools. */
  readonly providers: { readonly [name: string]: OAuthProvider };
  /** Returns the token with which the caller has called; `undefined` for a caller without one. */
  readonly subjectToken: (
    request: CredentialRequest,
  ) => string | undefined | Promise<string | undefined>;
  /** By default, the type of an access token; with `identityProvider`, of an ID token. */
  readonly subjectTokenType?: string | undefined;
  /**
   * The identity provider that exchanges the caller's token for an assertion, with which a server
   * issues its token (ID-JAG, Enterprise-Managed Authorization of MCP). The audience is the `issuer`
   * of the server. The `parameters` of the server, such as `resource`, are sent to both.
   */
  readonly identityProvider?: OAuthProvider | undefined;
}

const ACTION = "exchange tokens";
const TYPE = "urn:ietf:params:oauth:token-type:";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/**
 * Makes a source that exchanges the caller's token for a token of another server (RFC 8693). A new
 * token is used until shortly before its expiry, as long as the caller's token stays the same. It is
 * in memory only. Needs the package `oauth4webapi`.
 *
 * @throws {TypeError} If an option is invalid or missing.
 */
export function exchangeTokens(options: TokenExchangeOptions): CredentialSource {
  const names = ["providers", "subjectToken", "subjectTokenType", "identityProvider"];
  check.rejectUnknownFields(ACTION, options, names);
  const { providers, subjectToken, identityProvider: idp } = options;
  const { subjectTokenType = `${TYPE}${idp === undefined ? "access_token" : "id_token"}` } =
    options;
  check.checkFunction(ACTION, subjectToken, "subjectToken");
  const clients = createClients(ACTION, providers);
  const issuer = idp && new ProviderClient(ACTION, "identityProvider", idp);
  const exchange = async (client: ProviderClient, subject: string, scopes: readonly string[]) => {
    const fields = { subject_token: subject, subject_token_type: subjectTokenType };
    if (issuer === undefined) return await client.grant(EXCHANGE, fields, scopes);
    const { options: { parameters }, server: { issuer: audience } } = client;
    const wanted = { ...parameters, ...fields, audience, requested_token_type: `${TYPE}id-jag` };
    const { token: assertion } = await issuer.grant(EXCHANGE, wanted, scopes);
    return await client.grant(JWT_BEARER, { assertion }, scopes);
  };
  // The keys are digests, so that they do not contain the callers' tokens.
  const known = new check.BoundedMap<string, Promise<Tokens>>({ maxEntries: 1_000 });
  return {
    async get(name, request) {
      const client = clients.get(name);
      const subject = client && await subjectToken(request);
      if (client === undefined || subject === undefined) return undefined;
      const { principal = null, tenant = null, scopes } = request;
      const key = await digestOf(JSON.stringify([name, tenant, principal, scopes, subject]));
      const stored = known.get(key);
      const { staleAt = 0 }: Partial<Tokens> = await stored?.catch(check.noop) ?? {};
      // Another call may have begun an exchange meanwhile.
      if (staleAt < Date.now() && known.get(key) === stored) known.delete(key);
      const tokens = await check.once(
        known,
        key,
        () => exchange(client, subject, client.scopesWith(...scopes)),
      );
      return { ...tokens, reject: () => void known.delete(key) };
    },
  };
}
