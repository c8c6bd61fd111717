/**
 * Credentials of callers: a tool acts as the person who calls it, not as the server.
 *
 * @module
 */

export { type OAuthCallback, oauthCallback, type OAuthCallbackOptions } from "./callback.ts";
export { exchangeTokens, type TokenExchangeOptions } from "./exchange.ts";
export { credentials } from "./layer.ts";
export { type OAuthCredentials, oauthCredentials, type OAuthCredentialsOptions } from "./oauth.ts";
export type { OAuthProvider } from "./provider.ts";
export {
  type CredentialAnswer,
  type CredentialRequest,
  type CredentialSource,
  fromContext,
  type GivenCredential,
  type NeededAuthorization,
} from "./source.ts";
export type { ToolCredential } from "../../tool/mod.ts";
