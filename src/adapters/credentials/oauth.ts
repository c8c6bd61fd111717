/** Credentials that callers permit at an authorization server. */

import {
  type CallStore,
  checkStore,
  digestOf,
  encodeJson,
  newId,
  parseJson,
} from "../../execute/durable/mod.ts";
import { CallFailure } from "../../execute/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail } from "../../tool/mod.ts";
import { tenantPrefix } from "../http/identity.ts";
import { createSealer, type Sealer } from "../http/sealing.ts";
import {
  checkUrl,
  createClients,
  isStale,
  type OAuthProvider,
  type ProviderClient,
  type Tokens,
  unlessRefused,
} from "./provider.ts";
import type { CredentialAnswer, CredentialRequest, CredentialSource } from "./source.ts";
import { TokenStore } from "./token_store.ts";

/** Options for {@linkcode oauthCredentials}. */
export interface OAuthCredentialsOptions {
  /**
   * The authorization servers, by the names of the credentials in tools. Several servers need the
   * option `issuer`, or else a source with a `redirectUri` of its own each. A server could otherwise
   * receive the codes of another one.
   */
  readonly providers: { readonly [name: string]: OAuthProvider };
  /** The public URL of the route of `oauthCallback`, as it is registered at the servers. */
  readonly redirectUri: string;
  /** Stores the tokens. Processes with the same store and keys share them. */
  readonly store: CallStore;
  /**
   * Secrets of 32 bytes each, as bytes or in Base64 (`openssl rand -base64 32`). The first secret
   * encrypts; all secrets decrypt. Callers whose secret was removed give permission again.
   */
  readonly keys: readonly (string | Uint8Array)[];
  /**
   * True if all callers without a principal share one credential, for a program with one user. With
   * `false`, their calls are denied.
   *
   * @default {false}
   */
  readonly allowAnonymous?: boolean | undefined;
}

/** The source that {@linkcode oauthCredentials} makes. */
export interface OAuthCredentials extends CredentialSource {
  /**
   * Deletes the tokens of a caller. The next call asks the caller again. The tokens stay valid at the
   * server: the caller revokes them there.
   *
   * @returns False if there were none.
   */
  revoke(
    name: string,
    owner: { readonly principal?: string | undefined; readonly tenant?: string | undefined },
  ): Promise<boolean>;
}

type Owner = Partial<Pick<CredentialRequest, "principal" | "tenant">>;

/** The content of the parameter `state` of an authorization URL, where it is encrypted. */
export interface AuthorizationState extends Owner {
  readonly id: string;
  readonly name: string;
  readonly server: string;
  readonly scopes: readonly string[];
  readonly verifier: string;
  readonly expiresAt: number;
}

const ACTION = "make OAuth credentials";
const STATE_MS = 600_000;
const MAX_STATE = 8_192;
const OPTIONS = ["providers", "redirectUri", "store", "keys", "allowAnonymous"];

/**
 * Makes a source of credentials that callers permit in their browsers: authorization code with PKCE,
 * and refresh. Each principal of each tenant has tokens of its own. The tokens are encrypted in the
 * store, read at each call, and refreshed by one process at a time. A server must answer the
 * callback: {@linkcode oauthCallback}. Needs the packages `oauth4webapi` and `jose`.
 *
 * @example Usage
 * ```ts
 * import { memoryCallStore } from "@plue/tools/calls";
 * import { oauthCallback, oauthCredentials } from "@plue/tools/credentials";
 * import assert from "node:assert/strict";
 *
 * const github = oauthCredentials({
 *   providers: {
 *     github: {
 *       authorizationEndpoint: "https://github.com/login/oauth/authorize",
 *       tokenEndpoint: "https://github.com/login/oauth/access_token",
 *       clientId: "Iv1.0123456789abcdef",
 *     },
 *   },
 *   redirectUri: "https://tools.example.com/oauth/callback",
 *   store: memoryCallStore(),
 *   keys: [crypto.getRandomValues(new Uint8Array(32))],
 * });
 * assert.equal(oauthCallback(github, { confirm: true }).path, "/oauth/callback");
 * ```
 *
 * @throws {TypeError} If an option is invalid or missing.
 */
export function oauthCredentials(options: OAuthCredentialsOptions): OAuthCredentials {
  check.rejectUnknownFields(ACTION, options, OPTIONS);
  checkStore(ACTION, options.store);
  checkUrl(ACTION, options.redirectUri, "redirectUri");
  return new OAuthSource(options);
}

export class OAuthSource implements OAuthCredentials {
  readonly callbackPath: string;
  readonly #options: OAuthCredentialsOptions;
  readonly #clients: ReadonlyMap<string, ProviderClient>;
  readonly #sealer: Sealer;
  readonly #store: TokenStore;

  constructor(options: OAuthCredentialsOptions) {
    const { providers, redirectUri, keys, store } = options;
    this.callbackPath = new URL(redirectUri).pathname;
    this.#options = options;
    this.#clients = createClients(ACTION, providers);
    const all = Object.entries(providers);
    const servers = new Set(all.map(([, { tokenEndpoint }]) => tokenEndpoint));
    if (servers.size > 1 && all.some(([, { issuer }]) => !issuer)) {
      fail(ACTION, "make a source for each server, or set issuer if they send iss");
    }
    for (const [name, { authorizationEndpoint }] of all) {
      checkUrl(ACTION, authorizationEndpoint, `authorizationEndpoint of "${name}"`);
    }
    this.#sealer = createSealer(ACTION, keys);
    this.#store = new TokenStore(store, this.#sealer);
  }

  async get(name: string, request: CredentialRequest): Promise<CredentialAnswer> {
    const client = this.#clients.get(name);
    if (client === undefined) return undefined;
    if (!request.principal && this.#options.allowAnonymous !== true) {
      throw new CallFailure("denied", `its caller needs a principal for the credential "${name}"`);
    }
    const key = await keyOf(name, request);
    for (;;) {
      request.signal.throwIfAborted();
      const { tokens: stored, record } = await this.#store.read(key);
      // The tokens of a server that had this name before must not be sent to its successor.
      const tokens = stored?.server === client.options.tokenEndpoint ? stored : undefined;
      const isEnough = request.scopes.every((scope) => tokens?.requested.includes(scope));
      const isOver = tokens === undefined || (isStale(tokens) && tokens.refresh === undefined);
      if (isOver || !isEnough) {
        const scopes = client.scopesWith(...request.scopes, ...tokens?.requested ?? []);
        return {
          url: await this.#urlFor(client, request, scopes),
          after: record?.authorization,
          arrived: (signal, after) => this.#store.arrived(key, after, signal),
        };
      }
      if (!isStale(tokens)) {
        const { token, scopes, expiresAt } = tokens;
        return { token, scopes, expiresAt, reject: () => this.#store.reject(key, record?.sealed) };
      }
      await this.#store.refresh(key, (token) => client.refresh(token));
    }
  }

  async revoke(name: string, { principal = "", tenant }: Owner): Promise<boolean> {
    // Over HTTP, the principal of a call contains the tenant.
    const prefixes = tenant === undefined ? [""] : ["", tenantPrefix(tenant)];
    const removed = await Promise.all(prefixes.map(async (prefix) => {
      return await this.#store.remove(await keyOf(name, { principal: prefix + principal, tenant }));
    }));
    return removed.includes(true);
  }

  /** Decrypts a state. Returns `undefined` if it is invalid or has expired. */
  async openState(state: string): Promise<AuthorizationState | undefined> {
    // A longer text is invalid, and a part of it, too.
    const bytes = await this.#sealer.open(state.slice(0, MAX_STATE));
    if (typeof bytes === "string") return undefined;
    // Tokens are encrypted with the same keys, but they are not an authorization.
    const opened: AuthorizationState | undefined = Object(parseJson(bytes)).authorization;
    return opened !== undefined && opened.expiresAt > Date.now() ? opened : undefined;
  }

  /** Ends an authorization: exchanges the code, and stores the tokens. */
  async complete(
    state: AuthorizationState,
    params: URLSearchParams,
  ): Promise<"stored" | "used" | "invalid" | "refused"> {
    const { id, name, server, scopes: requested, verifier, expiresAt } = state;
    const key = await keyOf(name, state);
    const client = this.#clients.get(name);
    if (client?.options.tokenEndpoint !== server) return "invalid";
    // Read first, because a failed read after the exchange would lose the tokens.
    const before = await this.#store.read(key);
    // Before the exchange, so that of two callbacks at once, one exchanges the code.
    if (!await this.#store.use(key.replace("credential", "used") + id, expiresAt)) {
      return "used";
    }
    let given: Tokens | undefined;
    try {
      given = await unlessRefused(client.exchangeCode(params, this.#options.redirectUri, verifier));
    } finally {
      // Also after an error: the link is used up, so a call must not wait for it any longer.
      await this.#store.end(key, id, given && { ...given, requested, server }, before);
    }
    return given === undefined ? "refused" : "stored";
  }

  async #urlFor(
    client: ProviderClient,
    { principal, tenant }: Owner,
    scopes: readonly string[],
  ): Promise<string> {
    const verifier = newId() + newId();
    const { name, options } = client;
    const { authorizationEndpoint = "", tokenEndpoint: server, clientId } = options;
    const authorization: AuthorizationState = {
      ...{ id: newId(), name, server, scopes, verifier, principal, tenant },
      expiresAt: Date.now() + STATE_MS,
    };
    const parameters = {
      ...options.parameters,
      ...(scopes.length > 0 && { scope: scopes.join(" ") }),
      redirect_uri: this.#options.redirectUri,
      state: await this.#sealer.seal(encodeJson({ authorization })),
      client_id: clientId,
      response_type: "code",
      code_challenge: await digestOf(verifier),
      code_challenge_method: "S256",
    };
    const url = new URL(authorizationEndpoint);
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    // Fitbit and Mastodon do not read "+" as a space.
    url.search = url.search.replaceAll("+", "%20");
    return url.href;
  }
}

/** Returns the key of a caller's tokens in the store. */
async function keyOf(name: string, { principal, tenant }: Owner): Promise<string> {
  const owner = await digestOf(JSON.stringify([tenant ?? null, principal || null]));
  return `credential.${owner}.${name}`;
}
