/**
 * An authorization server (`oidc-provider`) whose people agree immediately, and an API that records the
 * tokens of its requests.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { generateKeyPair, jwtVerify, SignJWT } from "jose";
import Provider, { errors, type InteractionResults } from "oidc-provider";

export const CLIENT = {
  clientId: "plue",
  clientSecret: "the secret of the client, never seen elsewhere",
};
type Params = Readonly<Record<string, string>>;
type Grant = { readonly client: object; readonly params: Params };
const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TYPE = "urn:ietf:params:oauth:token-type:";
/** Signs the assertions of all servers. */
const SIGNING = await generateKeyPair("ES256");
const SCOPES = ["repo", "user"];

/** A request to the API: its token, the token's owner, and the path. */
export interface ApiRequest {
  readonly token: string;
  readonly account: string | undefined;
  readonly path: string;
}

export interface OAuthServer extends AsyncDisposable {
  readonly url: string;
  readonly redirectUri: string;
  readonly api: ApiRequest[];
  /** The number of requests to the token endpoint, by type of grant. */
  readonly grants: Map<string, number>;
  /** The tokens and codes that the server has issued. */
  readonly issued: Set<string>;
  /** The lifetime of new access tokens, in seconds. */
  lifetimeS: number;
  /** The issuer whose assertions the server accepts (ID-JAG). */
  trusted: string;
  /** True if the server issues an access token instead of an assertion. */
  ignoresType: boolean;
  invalidate(token: string): Promise<void>;
  /** Issues an access token for a person, without a browser. */
  issue(account: string): Promise<string>;
  /**
   * Opens a URL as a person, and follows the redirects, at last to the callback.
   *
   * @param choice "deny": the person declines.
   * @returns The URL of the callback, which was not opened.
   */
  open(url: string, account: string, choice?: "deny"): Promise<string>;
}

/** @param redirectUri The callback that the client has registered. */
export async function startOAuthServer(
  redirectUri = "http://127.0.0.1:9/oauth/callback",
): Promise<OAuthServer> {
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const http = createServer((request, response) => handle(request, response));
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", () => resolve()));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const server = new TestServer(url, redirectUri, http);
  handle = (request, response) => void server.answer(request, response);
  return server;
}

class TestServer implements OAuthServer {
  readonly url: string;
  readonly redirectUri: string;
  readonly api: ApiRequest[] = [];
  readonly grants: Map<string, number> = new Map();
  readonly issued: Set<string> = new Set();
  lifetimeS = 3_600;
  trusted = "";
  ignoresType = false;
  readonly #http: Server;
  readonly #provider: Provider;
  readonly #callback: (request: IncomingMessage, response: ServerResponse) => void;

  constructor(url: string, redirectUri: string, http: Server) {
    this.url = url;
    this.redirectUri = redirectUri;
    this.#http = http;
    this.#provider = new Provider(url, {
      clients: [{
        client_id: CLIENT.clientId,
        client_secret: CLIENT.clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code", "refresh_token", GRANT, JWT_BEARER],
        response_types: ["code"],
      }],
      scopes: SCOPES,
      ttl: {
        AccessToken: () => this.lifetimeS,
        AuthorizationCode: 60,
        Grant: 86_400,
        Interaction: 600,
        RefreshToken: 86_400,
        Session: 86_400,
      },
      issueRefreshToken: () => true,
      rotateRefreshToken: () => true,
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
      features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      cookies: { keys: ["a key for cookies"] },
      pkce: { required: () => true },
    });
    this.#provider.registerGrantType(GRANT, async (context) => {
      const { client, params } = context.oidc as Grant;
      const subject = await this.#provider.AccessToken.find(params["subject_token"] ?? "");
      if (subject === undefined) throw new errors.InvalidGrant("unknown subject");
      if (params["requested_token_type"] === `${TYPE}id-jag`) {
        context.body = await this.#assert(subject.accountId, params);
        return;
      }
      const account = `${subject.accountId}@${params["audience"]}`;
      context.body = {
        access_token: await this.#newToken(account, client),
        issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
        token_type: "Bearer",
        expires_in: this.lifetimeS,
      };
    }, [
      ...["audience", "requested_token_type", "resource", "scope"],
      ...["subject_token", "subject_token_type"],
    ]);
    this.#provider.registerGrantType(JWT_BEARER, async (context) => {
      const { client, params } = context.oidc as Grant;
      const { issuer, trusted } = { issuer: this.url, trusted: this.trusted };
      const rules = { issuer: trusted, audience: issuer, typ: "oauth-id-jag+jwt" };
      const { payload } = await jwtVerify(params["assertion"] ?? "", SIGNING.publicKey, rules)
        .catch(() => {
          throw new errors.InvalidGrant("invalid assertion");
        });
      this.issued.add(params["assertion"] ?? "");
      const access_token = await this.#newToken(`${payload.sub}@${payload["resource"]}`, client);
      context.body = { access_token, token_type: "Bearer", expires_in: this.lifetimeS };
    }, ["assertion", "resource", "scope"]);
    const add = ({ jti }: { jti: string }): void => void this.issued.add(jti);
    this.#provider.on("access_token.saved", add).on("refresh_token.saved", add)
      .on("authorization_code.saved", add);
    this.#callback = this.#provider.callback();
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    if (path.startsWith("/api/")) return await this.#answerApi(path, request, response);
    if (path.startsWith("/interaction/")) {
      return await this.#agree(request, response);
    }
    if (path === "/token") {
      const chunks: Uint8Array[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = new TextDecoder().decode(Buffer.concat(chunks));
      const grant = new URLSearchParams(body).get("grant_type") ?? "";
      this.grants.set(grant, (this.grants.get(grant) ?? 0) + 1);
      // `oidc-provider` takes a body that was read before.
      Object.assign(request, { body });
    }
    this.#callback(request, response);
  }

  async issue(account: string): Promise<string> {
    return await this.#newToken(account, undefined);
  }

  async invalidate(token: string): Promise<void> {
    await (await this.#provider.AccessToken.find(token))?.destroy();
  }

  async open(url: string, account: string, choice = "allow"): Promise<string> {
    const cookies = new Map([["person", account], ["choice", choice]]);
    for (let place = url; !place.startsWith(this.redirectUri);) {
      const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
      const response = await fetch(place, { redirect: "manual", headers: { cookie } });
      for (const set of response.headers.getSetCookie()) {
        const [name = "", value = ""] = set.split(";", 1)[0]?.split("=") ?? [];
        cookies.set(name, value);
      }
      const location = response.headers.get("location");
      if (location === null) {
        throw new Error(`${place}: ${await response.text()}`);
      }
      place = new URL(location, place).href;
      if (place.startsWith(this.redirectUri)) return place;
    }
    return url;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  /** Issues an assertion about a person for another server. */
  async #assert(sub = "", { audience = "", resource, scope }: Params): Promise<object> {
    const assertion = await new SignJWT({ resource, scope, client_id: CLIENT.clientId })
      .setProtectedHeader({ alg: "ES256", typ: "oauth-id-jag+jwt" })
      .setIssuer(this.url).setAudience(audience).setSubject(sub)
      .setJti(crypto.randomUUID()).setIssuedAt().setExpirationTime("5m")
      .sign(SIGNING.privateKey);
    const issued_token_type = `${TYPE}${this.ignoresType ? "access_token" : "id-jag"}`;
    return { access_token: assertion, issued_token_type, token_type: "N_A", expires_in: 300 };
  }

  async #newToken(accountId: string, client: object | undefined): Promise<string> {
    const token = new this.#provider.AccessToken({
      ...{ accountId, scope: "repo", gty: GRANT, expiresIn: this.lifetimeS },
      ...(client === undefined ? { clientId: CLIENT.clientId } : { client }),
    } as never);
    return await token.save();
  }

  async #answerApi(
    path: string,
    { headers }: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const token = headers.authorization?.replace(/^Bearer /, "") ?? "";
    const found = await this.#provider.AccessToken.find(token);
    const account = found?.isValid ? found.accountId : undefined;
    this.api.push({ token, account, path });
    response.writeHead(account === undefined ? 401 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify({ account, path }));
  }

  /** Logs the person of the cookie in, and accepts or declines. */
  async #agree(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = this.#provider;
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    const cookies = new URLSearchParams(request.headers.cookie?.replaceAll("; ", "&"));
    let result: InteractionResults = { login: { accountId: cookies.get("person") ?? "" } };
    if (cookies.get("choice") === "deny") result = { error: "access_denied" };
    else if (prompt.name === "consent") {
      const { client_id: clientId, scope } = params as Params;
      const grant = new provider.Grant({ clientId, accountId: session?.accountId });
      if (scope) grant.addOIDCScope(scope);
      result = { consent: { grantId: await grant.save() } };
    }
    await provider.interactionFinished(request, response, result, {
      mergeWithLastSubmission: false,
    });
  }
}
