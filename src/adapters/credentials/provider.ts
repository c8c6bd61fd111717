/** The requests to an authorization server, by `oauth4webapi`, which is loaded on first use. */

import type { AuthorizationServer, ClientAuth, TokenEndpointResponse } from "oauth4webapi";
import * as check from "../../tool/mod.ts";
import { fail } from "../../tool/mod.ts";
import { boundedText } from "../http/runtime.ts";
import { fitsHeader } from "./source.ts";

/** An authorization server, and this program as its client. */
export interface OAuthProvider {
  /** The URL for browsers. Not needed to exchange tokens. */
  readonly authorizationEndpoint?: string | undefined;
  readonly tokenEndpoint: string;
  /** If set, each callback must name it (RFC 9207). @default {the origin of tokenEndpoint} */
  readonly issuer?: string | undefined;
  readonly clientId: string;
  /** By default, the client is public. */
  readonly clientSecret?: string | undefined;
  /** The place of the secret: the header `authorization`, or the body. @default {"basic"} */
  readonly clientAuthentication?: "basic" | "post" | undefined;
  /** Scopes that are requested in addition to the scopes of the tools. */
  readonly scopes?: readonly string[] | undefined;
  /** Further parameters of the authorization URL or of the token exchange, such as `audience`. */
  readonly parameters?: { readonly [name: string]: string } | undefined;
}

const checkObject = /* @__PURE__ */ check.createCheck("an object", check.isObject);
const CHECKS = {
  authorizationEndpoint: checkUrl,
  tokenEndpoint: checkUrl,
  issuer: checkUrl,
  clientId: check.checkWord,
  clientSecret: check.checkWord,
  clientAuthentication: check.oneOf<"basic" | "post">(["basic", "post"]),
  scopes: check.checkTexts,
  parameters: checkObject as check.Check<Record<string, string>>,
} satisfies { readonly [Field in keyof OAuthProvider]-?: check.Check };

/** Checks that a URL begins with https, or with http and addresses this machine. */
export function checkUrl(action: string, url: unknown, place: string): string {
  const text = String(url);
  const { protocol, hostname } = new URL(URL.canParse(text) ? text : "none:");
  const isLocal = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
  return protocol === "https:" || (protocol === "http:" && isLocal)
    ? text
    : fail(action, `${place} must be a URL that begins with https://`);
}

/** Tokens of a caller. */
export interface Tokens {
  readonly token: string;
  readonly refresh?: string | undefined;
  /** The granted scopes, if the server names them. */
  readonly scopes?: readonly string[] | undefined;
  /** The expiry, in milliseconds since 1970. */
  readonly expiresAt?: number | undefined;
  /** The time from which the token is replaced: half a minute before its expiry, or less. */
  readonly staleAt?: number | undefined;
}

export function isStale({ staleAt = Infinity }: Tokens): boolean {
  return staleAt < Date.now();
}

/** Returns the tokens of a request; `undefined` if the server rejects the grant. */
export function unlessRefused(request: Promise<Tokens>): Promise<Tokens | undefined> {
  return request.catch((error) => error.isRefused ? undefined : Promise.reject(error));
}

type Fields = Readonly<Record<string, string>>;

/** Errors of a busy server, of a firewall, and about this client. Salesforce and Slack have names of their own. */
const NOT_ABOUT_GRANT =
  /unavailable|(server|unknown|internal|fatal)_error|slow_down|limit|timeout|client|forbidden|authorized$/i;

const TIMEOUT_MS = 20_000;
/** The maximum lifetime of a token: 31 years. */
const MAX_LIFETIME_S = 1e9;

/** @throws {TypeError} If an option is invalid or missing. */
export function createClients(
  action: string,
  providers: { readonly [name: string]: OAuthProvider },
): ReadonlyMap<string, ProviderClient> {
  checkObject(action, providers, "providers");
  const clients = Object.entries(providers)
    .map(([name, provider]) => [name, new ProviderClient(action, name, provider)] as const);
  return new Map(clients);
}

export class ProviderClient {
  readonly name: string;
  readonly options: OAuthProvider;
  readonly server: AuthorizationServer;

  constructor(action: string, name: string, options: OAuthProvider) {
    const place = (field: string): string => `${field} of "${name}"`;
    if (!/^[\w-]{1,40}$/.test(name)) fail(action, `"${name}" must be 1 to 40 letters or digits`);
    check.readFields(action, options, CHECKS, place);
    const { clientId, tokenEndpoint } = options;
    check.checkWord(action, clientId, place("clientId"));
    checkUrl(action, tokenEndpoint, place("tokenEndpoint"));
    this.name = name;
    this.options = options;
    this.server = {
      issuer: options.issuer ?? new URL(tokenEndpoint).origin,
      authorization_response_iss_parameter_supported: !!options.issuer,
      token_endpoint: tokenEndpoint,
    };
  }

  scopesWith(...scopes: readonly string[]): readonly string[] {
    return [...new Set([...this.options.scopes ?? [], ...scopes])];
  }

  exchangeCode(params: URLSearchParams, redirect_uri: string, verifier: string): Promise<Tokens> {
    // Without an issuer, the source has one server only, and Google always names its issuer.
    if (!this.options.issuer) params.delete("iss");
    const fields = { redirect_uri, code_verifier: verifier };
    return this.#request("authorization_code", fields, params);
  }

  refresh(refresh_token: string): Promise<Tokens> {
    return this.#request("refresh_token", { refresh_token });
  }

  grant(type: string, fields: Fields, scopes: readonly string[] = []): Promise<Tokens> {
    const scope = scopes.length === 0 ? {} : { scope: scopes.join(" ") };
    return this.#request(type, { ...this.options.parameters, ...scope, ...fields });
  }

  async #request(type: string, fields: Fields, callback?: URLSearchParams): Promise<Tokens> {
    const { clientId, clientSecret, clientAuthentication, parameters: { resource } = {} } =
      this.options;
    const authenticate: ClientAuth = (_server, _client, body, headers) => {
      if (clientSecret && clientAuthentication !== "post") {
        // Encodes fewer characters than the library: many servers do not decode the header.
        const pair = [clientId, clientSecret].map(encodeURIComponent).join(":");
        return headers.set("authorization", `Basic ${btoa(pair)}`);
      }
      body.set("client_id", clientId);
      if (clientSecret) body.set("client_secret", clientSecret);
    };
    const to = [this.server, { client_id: clientId }] as const;
    try {
      // Names each function, because a bundle would contain the whole package otherwise.
      const {
        allowInsecureRequests,
        customFetch,
        validateAuthResponse,
        genericTokenEndpointRequest,
        processGenericTokenEndpointResponse,
      } = await import("oauth4webapi");
      const params = callback && validateAuthResponse(...to, callback, callback.get("state") ?? "");
      // Of the parameters of an authorization, MCP servers need this one again (RFC 8707).
      const code = params?.get("code") ?? undefined;
      const all = check.defined({ resource, ...fields, code });
      const options = {
        // `checkUrl` has admitted http for this machine only.
        [allowInsecureRequests]: true,
        [customFetch]: boundedFetch,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      };
      const request = [...to, authenticate, type, all, options] as const;
      const response = await genericTokenEndpointRequest(...request);
      const answer = await processGenericTokenEndpointResponse(...to, response);
      const { requested_token_type: wanted } = fields;
      // Another token must not be sent to another server as an assertion.
      if (wanted && answer["issued_token_type"] !== wanted) throw { code: "it has another type" };
      return tokensOf(answer);
    } catch (error) {
      // The errors of the library contain the response, which may have tokens.
      const { error: answer, code, message, cause, status = cause?.status } = Object(error);
      const isAnswer = check.isText(answer);
      // Another text than the name of an error may be a token that the server repeats.
      const name = /^[a-z_]+$/i.test(answer) ? answer : "an error without a name";
      const isMissing = /oauth4webapi/.test(message);
      // The code of a timeout is a number. An invalid callback has its reason in the message.
      const other = check.isText(code) ? /INVALID/.test(code) ? message : code : "no answer";
      const failed = isMissing ? 'run "npm install oauth4webapi" first' : other;
      const why = check.cleanText(isAnswer ? name : failed, 100);
      // Jira rejects a grant with this error of a client, and status 403.
      const isJira = status === 403 && why === "unauthorized_client";
      // Strava and HubSpot reject a grant with status 400, without the name of an error. A status such
      // as 429, for too many requests, is not about the grant.
      const isRefused = (isAnswer || status === 400) && !(status > 403) &&
        (isJira || !NOT_ABOUT_GRANT.test(why));
      const failure = new Error(`Cannot get a token of "${this.name}": ${why}`);
      throw Object.assign(failure, { isRefused });
    }
  }
}

async function boundedFetch(url: string, request: RequestInit): Promise<Response> {
  // Of a text, Deno could send the refresh token twice.
  const sent = { ...request, body: new Blob([`${request.body}`]) };
  const { status, body } = await fetch(url, sent);
  // A response that is too large is not JSON either.
  const text = await boundedText(body, 1_048_576, request.signal) ?? "";
  // The library would reject null, lists, empty texts, lifetimes below 0, and an ID token, whose issuer
  // may be unknown here.
  const clean = (name: string, value: unknown): unknown => {
    const isWrong = value === "" || typeof value === "object" || name === "id_token" ||
      name === "expires_in" && Number(value) < 0;
    return name && isWrong ? undefined : value;
  };
  const answer = check.attemptOr(undefined, () => JSON.parse(text, clean));
  // Without the headers: GitLab sends WWW-Authenticate, which would hide the name of the error.
  // Tokens of Slack have the type "bot" or "user", and assertions have "N_A".
  return Response.json({ ...answer, token_type: "bearer" }, {
    // GitHub sends errors with status 200, and Harvest sends tokens with status 201. A proxy sends pages.
    status: !answer ? 502 : status > 201 ? status : answer.error ? 400 : 200,
  });
}

function tokensOf(response: TokenEndpointResponse): Tokens {
  const { access_token: token, refresh_token: refresh, scope, expires_in } = response;
  // An unsuitable token would be stored, and all later calls would fail.
  if (!fitsHeader(token)) throw { code: "its token is invalid" };
  // Some servers send 0 for a token that does not expire. A token that is stale immediately, or forever
  // because JSON has no such number, would be refreshed without end.
  const seconds = expires_in ? Math.min(Math.max(expires_in, 1), MAX_LIFETIME_S) : undefined;
  const expiresAt = seconds && Date.now() + seconds * 1_000;
  const staleAt = expiresAt && expiresAt - Math.min(30, seconds / 2) * 1_000;
  // GitHub separates scopes by commas.
  const scopes = scope?.split(/[\s,]+/).filter(Boolean);
  return { token, refresh, scopes, expiresAt, staleAt };
}
