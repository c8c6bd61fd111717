/** Credentials that a server gives in exchange for a token of the caller, without a person. */

import { digestOf } from "../../execute/durable/mod.ts";
import * as check from "../../tool/mod.ts";
import { isStale, type OAuthProvider, ProviderClient, type Tokens } from "./provider.ts";
import type { CredentialRequest, CredentialSource } from "./source.ts";

/** Options for {@linkcode exchangeTokens}. */
export interface TokenExchangeOptions {
  /** The authorization servers, by the names of the credentials in tools. */
  readonly providers: { readonly [name: string]: OAuthProvider };
  /** Returns the token with which the caller has called; `undefined` for a caller without one. */
  readonly subjectToken: (
    request: CredentialRequest,
  ) => string | undefined | Promise<string | undefined>;
  /** @default {"urn:ietf:params:oauth:token-type:access_token"} */
  readonly subjectTokenType?: string | undefined;
}

const ACTION = "exchange tokens";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const MAX_TOKENS = 1_000;

/**
 * Makes a source that exchanges the caller's token for a token of another server (RFC 8693). A new
 * token is used until shortly before its expiry, as long as the caller's token stays the same. It is
 * in memory only. Needs the package `oauth4webapi`.
 *
 * @throws {TypeError} If an option is invalid or missing.
 */
export function exchangeTokens(options: TokenExchangeOptions): CredentialSource {
  check.rejectUnknownFields(ACTION, options, ["providers", "subjectToken", "subjectTokenType"]);
  const { providers, subjectToken, subjectTokenType = ACCESS_TOKEN } = options;
  check.checkFunction(ACTION, subjectToken, "subjectToken");
  const clients = new Map(
    Object.entries(providers).map(([name, provider]) =>
      [name, new ProviderClient(ACTION, name, provider)] as const
    ),
  );
  // The keys are digests, so that they do not contain the callers' tokens.
  const known = new check.BoundedMap<string, Promise<Tokens>>({ maxEntries: MAX_TOKENS });
  return {
    async get(name, request) {
      const client = clients.get(name);
      const subject = client && await subjectToken(request);
      if (client === undefined || subject === undefined) return undefined;
      const { principal = null, tenant = null, scopes } = request;
      const key = await digestOf(JSON.stringify([name, tenant, principal, scopes, subject]));
      const stored = known.get(key);
      const before = await stored?.catch(check.noop);
      const isUsable = before?.staleAt !== undefined && !isStale(before);
      // Another call may have begun an exchange meanwhile.
      if (!isUsable && known.get(key) === stored) known.delete(key);
      const fields = { subject_token: subject, subject_token_type: subjectTokenType };
      const { token, scopes: granted, expiresAt } = await check.once(
        known,
        key,
        () => client.grant(GRANT, fields, client.scopesWith(...scopes)),
      );
      return { token, scopes: granted, expiresAt, reject: () => void known.delete(key) };
    },
  };
}
