/** The port for sources of credentials, and the source for credentials that the host has. */

import { checkFunction, fail, isText, isWord, type Services } from "../../tool/mod.ts";

/** The caller and the tool that need a credential. */
export interface CredentialRequest {
  /** The caller; `undefined` if the host does not identify its callers. */
  readonly principal: string | undefined;
  /** The tenant of the caller, from the host's context of the call. */
  readonly tenant: string | undefined;
  /** The scopes that the tool declares. */
  readonly scopes: readonly string[];
  /** Aborts when the call ends. */
  readonly signal: AbortSignal;
  /** The host's context of the call. Over HTTP, it is `callContext` of the caller. */
  readonly context: unknown;
  /** The services of the call. */
  readonly services: Services;
}

/** A credential of a caller. */
export interface GivenCredential {
  readonly token: string;
  readonly scopes?: readonly string[] | undefined;
  /** The expiry, in milliseconds since 1970. */
  readonly expiresAt?: number | undefined;
  /** Called when a server has rejected the token, so that the next call gets another one. */
  reject?(): void | Promise<void>;
}

/** A permission that the caller must give at a URL before there is a credential. */
export interface NeededAuthorization {
  readonly url: string;
  /** The id of the last authorization. It becomes a part of the ticket, so it must not be secret. */
  readonly after?: string | undefined;
  /**
   * Resolves when the source should be tried again. Rejects when the signal aborts.
   *
   * @param after The `after` of the authorization whose URL the person has.
   */
  arrived(signal: AbortSignal, after?: string): Promise<void>;
}

/**
 * Returns the credentials of callers. It is called once per call and credential, after all decisions
 * about the call, and never for a call that is denied.
 *
 * Contract:
 * - A credential belongs to the principal and the tenant of the request. It is never another one's.
 * - `undefined` means that this source has no such credential, and the next source is tried.
 * - An error fails the call with `unavailable`, and is passed to `onError`. It contains no secret.
 */
export interface CredentialSource {
  get(name: string, request: CredentialRequest): CredentialAnswer | Promise<CredentialAnswer>;
}

/** The answer of a source. */
export type CredentialAnswer = GivenCredential | NeededAuthorization | undefined;

/**
 * Makes a source for credentials that the host already has, such as the token of the request. Put a
 * token that changes behind a function, because a suspended call resumes only with an equal context:
 * `callContext: { token: () => token }`.
 *
 * @example Usage
 * ```ts
 * import assert from "node:assert/strict";
 * import { defineTool, ToolDispatcher, ToolRegistry } from "@plue/tools";
 * import { credentials, fromContext } from "@plue/tools/credentials";
 *
 * const whoami = defineTool({
 *   name: "whoami",
 *   description: "Returns the length of the caller's token.",
 *   credentials: { github: {} },
 *   execute: (_, { credential }) => credential("github").token.length,
 * });
 * const dispatcher = new ToolDispatcher(new ToolRegistry({ tools: [whoami] }), {
 *   credentials: credentials(fromContext((name, { services }) => services[name] as string)),
 * });
 *
 * const result = await dispatcher.dispatch({ name: "whoami" }, { services: { github: "secret" } });
 * assert.equal(result.ok && result.content, 6);
 * ```
 *
 * @param get Returns the token or the credential of a call, or `undefined` if there is none.
 * @throws {TypeError} If `get` is not a function.
 */
export function fromContext(
  get: (
    name: string,
    request: CredentialRequest,
  ) => string | GivenCredential | undefined | Promise<string | GivenCredential | undefined>,
): CredentialSource {
  checkFunction("make a source of credentials", get, "get");
  return {
    async get(name, request) {
      const given = await get(name, request);
      return typeof given === "string" ? { token: given } : given;
    },
  };
}

/** Returns true for a token that fits into the header of a request. */
export function fitsHeader(token: unknown): boolean {
  return isText(token) && /^[\x21-\x7e]+$/.test(token);
}

/** Checks the answer of a source. The error does not contain its values, which may be secret. */
export function checkAnswer(action: string, answer: CredentialAnswer): CredentialAnswer {
  const { token, url }: Partial<GivenCredential & NeededAuthorization> = Object(answer);
  return answer === undefined || fitsHeader(token) !== isWord(url)
    ? answer
    : fail(action, "its source must return a token, a URL or undefined");
}
