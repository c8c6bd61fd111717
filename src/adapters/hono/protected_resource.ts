/**
 * What a client must know to get a token: the metadata of a protected resource (RFC 9728), which
 * MCP clients look for too.
 *
 * @module
 */

import { type Check, checkText } from "../../tool/mod.ts";
import { checkOptions, checkTexts } from "./checks.ts";

/** Describes what is protected. */
export interface ProtectedResource {
  /**
   * The identifier of what is protected, a URL such as `https://tools.example.com/mcp`: tokens name
   * it as their audience.
   */
  readonly resource: string;
  /** The issuers of tokens, as URLs. */
  readonly authorizationServers: readonly string[];
  /** The scopes that a token may hold. */
  readonly scopes?: readonly string[];
  /** Names the resource, for people. */
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

/** The paths that the metadata is served at: the one of the resource, and that of its host. */
export function metadataPaths(
  resource: string,
): readonly [string, ...string[]] {
  const { pathname } = urlOf(resource);
  return pathname === "/" ? [WELL_KNOWN] : [WELL_KNOWN + pathname, WELL_KNOWN];
}

/**
 * The metadata, as JSON.
 *
 * @throws {TypeError} If a URL is none, there is no authorization server, or a field is unknown.
 */
export function resourceMetadata(
  options: ProtectedResource,
): Record<string, unknown> {
  checkOptions("describe the resource", options, CHECKS);
  const { resource, authorizationServers, scopes, name, documentation } = options;
  urlOf(resource);
  if (authorizationServers.length === 0) {
    throw new TypeError(
      "Cannot describe the resource: it needs an authorization server",
    );
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

function urlOf(text: string): URL {
  if (URL.canParse(text)) {
    const url = new URL(text);
    if (
      /^https?:$/.test(url.protocol) && url.search === "" && url.hash === ""
    ) return url;
  }
  throw new TypeError(
    `Cannot describe the resource: "${text}" must be a URL without a query, such as ` +
      '"https://tools.example.com"',
  );
}
