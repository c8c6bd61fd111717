/**
 * How a caller is turned away who did not show who it is, or not well (RFC 6750, RFC 9728).
 *
 * @module
 */

import { type Check, checkText } from "../../tool/mod.ts";
import { type ProblemCode, problemResponse } from "./problem.ts";
import { metadataUrl } from "./protected_resource.ts";

/** What a challenge tells besides what was wrong. */
export interface ChallengeOptions {
  /** Names what is protected, for people. */
  readonly realm?: string;
  /**
   * The identifier of what is protected, a URL: the challenge then names its metadata, from which a
   * client learns where to get a token. It is what `protectedResource` of the handler serves.
   */
  readonly resource?: string;
}

/** What they must be. {@linkcode createChallenger} looks closer. */
export const CHALLENGE_CHECKS: { readonly [Option in keyof ChallengeOptions]-?: Check } = {
  realm: checkText,
  resource: checkText,
};

/** Turns callers away. */
export interface Challenger {
  /** There is no token. */
  missing(): Response;
  /** There is a header that is no bearer token. */
  malformed(): Response;
  /** The token is not one that counts here. It is not said why: that is for its issuer to know. */
  invalid(): Response;
  /** The token counts, and does not say enough. */
  insufficient(scopes: readonly string[]): Response;
}

const QUOTABLE = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/**
 * Makes the answers that turn callers away.
 *
 * @throws {TypeError} If the realm cannot stand in a header, or the resource is no URL.
 */
export function createChallenger(options: ChallengeOptions): Challenger {
  const { realm, resource } = options;
  if (realm !== undefined && !QUOTABLE.test(realm)) {
    throw new TypeError(
      'Cannot make a challenge: the realm must be printable ASCII without quotes and "\\"',
    );
  }
  const fixed: readonly (readonly [string, string | undefined])[] = [
    ["realm", realm],
    [
      "resource_metadata",
      resource === undefined ? undefined : metadataUrl(resource),
    ],
  ];
  const answer = (
    status: number,
    code: ProblemCode,
    detail: string,
    about: readonly (readonly [string, string | undefined])[],
  ): Response => {
    const parameters = [...fixed, ...about]
      .flatMap(([name, value]) => value === undefined ? [] : [`${name}="${value}"`]);
    return problemResponse({
      status,
      code,
      detail,
      headers: {
        "www-authenticate": ["Bearer", parameters.join(", ")].join(" ")
          .trimEnd(),
      },
    });
  };
  return {
    missing: () =>
      answer(
        401,
        "unauthorized",
        'This server wants a token: "authorization: Bearer …"',
        [],
      ),
    malformed: () =>
      answer(
        400,
        "bad_request",
        'The header must be "authorization: Bearer …", with one token',
        [
          ["error", "invalid_request"],
        ],
      ),
    invalid: () =>
      answer(
        401,
        "unauthorized",
        "The token is not one that counts here, or not any more",
        [
          ["error", "invalid_token"],
        ],
      ),
    insufficient: (scopes) =>
      answer(
        403,
        "insufficient_scope",
        `The token lacks a scope of: ${scopes.join(" ")}`,
        [
          ["error", "insufficient_scope"],
          ["scope", scopes.join(" ")],
        ],
      ),
  };
}

/** How long an `Authorization` header may be. */
const MAX_HEADER = 16_384;
const BEARER = /^bearer ([\x21-\x7e]+)$/i;

/** The token of a request, or the answer that turns it away. */
export function bearerToken(
  request: Request,
  challenger: Challenger,
): string | Response {
  const header = request.headers.get("authorization");
  // Another scheme is not ours to judge: it is as if nothing had been shown.
  if (header === null || !/^bearer(\s|$)/i.test(header)) {
    return challenger.missing();
  }
  const token = header.length > MAX_HEADER ? undefined : BEARER.exec(header)?.[1];
  return token ?? challenger.malformed();
}
