/** The page to which an authorization server sends a caller's browser. */

import {
  callHook,
  checkFlag,
  checkFunction,
  cleanText,
  fail,
  noop,
  readFields,
} from "../../tool/mod.ts";
import { digestOf, tenantOf } from "../../execute/durable/mod.ts";
import { type Authorize, checkAnswered, withTenant } from "../http/identity.ts";
import { type AuthorizationState, type OAuthCredentials, OAuthSource } from "./oauth.ts";

/** Options for {@linkcode oauthCallback}: `authorize` or `confirm`. */
export interface OAuthCallbackOptions {
  /**
   * Identifies the caller of a browser's request, by a cookie for example. The link works only for
   * the caller whose call has asked for the permission.
   */
  readonly authorize?: Authorize | undefined;
  /**
   * True if browsers cannot be identified. The page then names the caller to whom the permission
   * goes, and the person must confirm it. Anybody can send a person such a link: prefer `authorize`.
   *
   * @default {false}
   */
  readonly confirm?: boolean | undefined;
  /** Receives errors, such as the failure of a server that cannot be reached. */
  onError?(error: unknown): void;
}

/** Answers the requests to one path. */
export interface OAuthCallback {
  (request: Request, env?: unknown): Promise<Response>;
  /** The path that it must be served at. */
  readonly path: string;
}

type Page = readonly [status: number, text: string];

const CALL_AGAIN = "Call the tool again for a new link.";
const PAGES = {
  stored: [200, "You can close this page. A waiting call continues."],
  used: [400, `This link was used before. ${CALL_AGAIN}`],
  invalid: [400, `This link is invalid or has expired. ${CALL_AGAIN}`],
  refused: [403, `The permission was refused. ${CALL_AGAIN}`],
  other: [403, "This link is another caller's."],
  failed: [502, `The server gave no token. ${CALL_AGAIN}`],
} as const satisfies Record<string, Page>;

const CONFIRMED = "confirmed";
const ACTION = "serve the callback of OAuth";
const CHECKS = { authorize: checkFunction, confirm: checkFlag, onError: checkFunction };

/**
 * Makes the route for the callback of {@linkcode oauthCredentials}: `app.get(callback.path, (c) =>
 * callback(c.req.raw))`. The state in a link is encrypted, can be used once within ten minutes, and
 * is bound to the principal and the tenant of the call.
 *
 * @throws {TypeError} If neither `authorize` nor `confirm` is set, or an option is invalid.
 */
export function oauthCallback(
  source: OAuthCredentials,
  options: OAuthCallbackOptions,
): OAuthCallback {
  readFields(ACTION, options, CHECKS, String);
  if (!(source instanceof OAuthSource)) fail(ACTION, "the source must be oauthCredentials()");
  const { authorize, confirm = false, onError = noop } = options;
  if ((authorize === undefined) !== confirm) fail(ACTION, "set either authorize or confirm");
  const answer = async (request: Request, env?: unknown): Promise<Response> => {
    const { searchParams } = new URL(request.url);
    const state = await source.openState(searchParams.get("state") ?? "");
    // A request for the headers alone must not use the link up.
    const isAnswer = searchParams.has("code") || searchParams.has("error");
    if (state === undefined || request.method !== "GET" || !isAnswer) return page(PAGES.invalid);
    if (authorize !== undefined) {
      const caller = await authorize(request, env);
      if (caller instanceof Response) return caller;
      checkAnswered(caller);
      const { principal, callContext } = withTenant(caller);
      const isSame = state.principal === principal && state.tenant === tenantOf(callContext);
      if (!isSame) return page(PAGES.other);
    } else if (searchParams.has("code")) {
      // Nobody can put the digest of a code into a link before the server has issued the code.
      const confirmed = await digestOf(searchParams.get("code") ?? "");
      const given = searchParams.get(CONFIRMED);
      searchParams.delete(CONFIRMED);
      if (given !== confirmed) return confirmation(state, searchParams, confirmed);
    }
    return page(PAGES[await source.complete(state, searchParams)]);
  };
  const callback = (request: Request, env?: unknown): Promise<Response> =>
    answer(request, env).catch((error) => {
      callHook(() => onError(error), noop);
      return page(PAGES.failed);
    });
  return Object.assign(callback, { path: source.callbackPath });
}

/** Returns the page on which a person confirms the caller to whom the permission goes. */
function confirmation(
  { name, principal, tenant }: AuthorizationState,
  params: URLSearchParams,
  confirmed: string,
): Response {
  const caller = [principal ?? "this program", tenant].filter(Boolean).join(" of ");
  params.set(CONFIRMED, confirmed);
  const fields = [...params].map(([name, value]) =>
    `<input type="hidden" name="${escape(name)}" value="${escape(value)}">`
  ).join("");
  const text =
    `Then ${caller} can act as you at ${name}. Close this page if you did not ask for it.`;
  const form = `<form>${fields}<button>Connect</button></form>`;
  return page([200, text], `Connect ${name} to ${caller}?`, form);
}

function page(
  [status, text]: Page,
  title: string = status === 200 ? "Connected" : "Not connected",
  form: string = "",
): Response {
  const shown = [title, text].map((words) => escape(cleanText(words, 1_000)));
  const body = `<!doctype html><meta name="viewport" content="width=device-width">
<title>${shown[0]}</title><h1>${shown[0]}</h1><p>${shown[1]}</p>${form}
`;
  return new Response(body, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      // The address contains the code.
      "referrer-policy": "no-referrer",
      "content-security-policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
    },
  });
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
