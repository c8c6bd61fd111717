/**
 * Refuses callers without a good bearer token (RFC 6750), and says how to get one: the metadata of
 * the protected resource (RFC 9728), which MCP clients look for too.
 *
 * @module
 */

import { type Check, checkText } from "../../tool/mod.ts";
import { checkOptions, checkTexts } from "./checks.ts";
import type { HttpPart } from "./part.ts";
import { json, type ProblemCode, problemResponse } from "./responses.ts";

/** Options of the responses that reject a caller. */
export interface ChallengeOptions {
  /**
   * The URL of the protected resource. The responses then name its metadata, from which clients learn
   * the authorization server; `protectedResource` of the handler serves it.
   */
  readonly resource?: string;
}

/** The checks of the options. {@linkcode createChallenger} checks their form. */
export const CHALLENGE_CHECKS: { readonly [Option in keyof ChallengeOptions]-?: Check } = {
  resource: checkText,
};

/** Makes the responses that refuse a caller. */
export interface Challenger {
  /** The request has no token. */
  missing(): Response;
  /** The header is not a bearer token. */
  malformed(): Response;
  /** The token is wrong. The response does not say why: that would help to guess one. */
  invalid(): Response;
  /** The token is good, but does not hold all the scopes that are wanted. */
  insufficient(scopes: readonly string[]): Response;
}

/**
 * Makes the responses that reject a caller.
 *
 * @throws {TypeError} If the resource is not a URL.
 */
export function createChallenger(options: ChallengeOptions): Challenger {
  const { resource } = options;
  const metadata = resource === undefined ? undefined : metadataUrl(resource);
  const refuse = (
    status: number,
    code: ProblemCode,
    detail: string,
    about: Readonly<Record<string, string>> = {},
  ): Response => {
    const parameters = Object.entries({ resource_metadata: metadata, ...about })
      .flatMap(([name, value]) => value === undefined ? [] : [`${name}="${value}"`]);
    const challenge = `Bearer ${parameters.join(", ")}`.trimEnd();
    return problemResponse({ status, code, detail, headers: { "www-authenticate": challenge } });
  };
  return {
    missing: () =>
      refuse(401, "unauthorized", 'This server wants a token: "authorization: Bearer …"'),
    malformed: () =>
      refuse(400, "bad_request", 'The header must be "authorization: Bearer …", with one token', {
        error: "invalid_request",
      }),
    invalid: () =>
      refuse(401, "unauthorized", "The token is not valid here, or has expired", {
        error: "invalid_token",
      }),
    insufficient: (scopes) =>
      refuse(
        403,
        "insufficient_scope",
        `The token needs all of these scopes: ${scopes.join(" ")}`,
        {
          error: "insufficient_scope",
          scope: scopes.join(" "),
        },
      ),
  };
}

/** The longest `Authorization` header that is read. */
const MAX_HEADER = 16_384;
const BEARER = /^bearer ([\x21-\x7e]+)$/i;

/** The token of a request, or the response that refuses it. */
export function bearerToken(request: Request, challenger: Challenger): string | Response {
  const header = request.headers.get("authorization");
  // Another scheme counts as no token.
  if (header === null || !/^bearer(\s|$)/i.test(header)) {
    return challenger.missing();
  }
  const token = header.length > MAX_HEADER ? undefined : BEARER.exec(header)?.[1];
  return token ?? challenger.malformed();
}

/** Describes what is protected. */
export interface ProtectedResource {
  /**
   * The URL that identifies what is protected, such as `https://tools.example.com/mcp`. Tokens name it
   * as their audience.
   */
  readonly resource: string;
  /** The issuers of tokens, as URLs. */
  readonly authorizationServers: readonly string[];
  /** The scopes that a token may hold. */
  readonly scopes?: readonly string[];
  /** The name of the resource, for people. */
  readonly name?: string;
  /** Where people read about it. */
  readonly documentation?: string;
}

const CHECKS = {
  resource: checkText,
  authorizationServers: checkTexts,
  scopes: checkTexts,
  name: checkText,
  documentation: checkText,
} satisfies { readonly [Option in keyof ProtectedResource]-?: Check };

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/**
 * Where the metadata of a resource is.
 *
 * @throws {TypeError} If the resource is not a URL, or has a query or a fragment.
 */
export function metadataUrl(resource: string): string {
  const { origin } = urlOf(resource);
  return origin + metadataPaths(resource)[0];
}

/** The paths that serve the metadata: the resource's own, and that of its host. */
export function metadataPaths(resource: string): readonly [string, ...string[]] {
  const { pathname } = urlOf(resource);
  return pathname === "/" ? [WELL_KNOWN] : [WELL_KNOWN + pathname, WELL_KNOWN];
}

/**
 * The metadata, as JSON.
 *
 * @throws {TypeError} If a URL is none, there is no authorization server, or a field is unknown.
 */
export function resourceMetadata(options: ProtectedResource): Record<string, unknown> {
  checkOptions("describe the resource", options, CHECKS);
  const { resource, authorizationServers, scopes, name, documentation } = options;
  urlOf(resource);
  if (authorizationServers.length === 0) {
    throw new TypeError("Cannot describe the resource: it needs an authorization server");
  }
  for (const server of authorizationServers) urlOf(server);
  return {
    resource,
    authorization_servers: authorizationServers,
    ...(scopes === undefined ? {} : { scopes_supported: scopes }),
    bearer_methods_supported: ["header"],
    ...(name === undefined ? {} : { resource_name: name }),
    ...(documentation === undefined ? {} : { resource_documentation: documentation }),
  };
}

/**
 * The part that tells clients how to get a token (RFC 9728), at
 * `/.well-known/oauth-protected-resource`. The handler must then be at the root of its host.
 *
 * @throws {TypeError} As {@linkcode resourceMetadata}.
 */
export function serveProtectedResource(resource: ProtectedResource): HttpPart {
  const metadata = resourceMetadata(resource);
  return () => ({
    routes: metadataPaths(resource.resource).map((path) => ({
      method: "GET",
      path,
      answerPublic: () => json(metadata),
    })),
  });
}

function urlOf(text: string): URL {
  if (URL.canParse(text)) {
    const url = new URL(text);
    if (/^https?:$/.test(url.protocol) && url.search === "" && url.hash === "") return url;
  }
  throw new TypeError(
    `Cannot describe the resource: "${text}" must be a URL without a query, such as ` +
      '"https://tools.example.com"',
  );
}
